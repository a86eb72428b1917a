"""Recordings of terminals: made by a process of their own, kept as raw bytes, replayed safely."""
