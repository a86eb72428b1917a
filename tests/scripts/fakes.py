"""Types of the stand-ins in conftest.py."""

from typing import Protocol

from scripts.bootstrap.pip import Pip


class FakePip(Protocol):
    """Makes a Pip that prints `lines` and ends with `code`, or hangs."""

    def __call__(self, lines: list[str], code: int = 0, *, hang: bool = False) -> Pip: ...
