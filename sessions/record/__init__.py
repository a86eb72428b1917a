"""The truth about a session: events in a chained log, and the state and clock folded from them.

What can happen   events, log, log_copy, signing
What follows      state, clock; summary and visibility read it
Where it lies     store
"""
