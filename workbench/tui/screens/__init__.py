"""The pages and dialogs."""
