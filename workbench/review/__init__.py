"""Looking back at a record: moments, changes, flags and reports."""
