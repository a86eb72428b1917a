"""What the set-up says on stderr, and how it stops with an explanation."""

import sys
from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of the product that the set-up uses too (docs/exit-codes.md)."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    PREPARE = 4
    INTERRUPTED = 130


class Stopped(Exception):
    """The set-up cannot go on; the text says what was tried, why not, and what to do."""

    def __init__(self, text: str, code: Exit = Exit.REFUSED) -> None:
        super().__init__(text)
        self.code = code


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
