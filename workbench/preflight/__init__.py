"""Whether this machine can hold a session, found out before the clock and never after."""
