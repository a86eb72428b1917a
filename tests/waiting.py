"""Waiting for a condition, in place of a sleep."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float = 30.0, what: str = "") -> None:
    """Look again and again until `condition` holds; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen within {seconds} s: {what or condition}"
        time.sleep(0.01)
