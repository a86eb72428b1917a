"""Imports its function from a module beside it. Seen: usual work. Expected: valid."""

from fast import prefix_sum

__all__ = ["prefix_sum"]
