"""The workbench's screen over a record, with a cursor in time."""
