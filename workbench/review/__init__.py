"""Looking back at a record: moments, changes, flags; values only, drawn by others."""
