"""Defines predict only when it is asked at run time, to get past a static check. Seen: rule checkers. Expected: invalid."""

globals()["predict"] = lambda xs: [14.0 for _ in xs]
