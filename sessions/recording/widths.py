"""How many cells a character takes."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Blocks in which every character takes one cell: Latin, punctuation, arrows, box drawing, braille, private use.
_SIMPLE = re.compile(
    "[ -~\u00a0-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u22ff\u2500-\u25fc\u2800-\u28ff\ue000-\uf8ff\ufffd]*"
).fullmatch


def simple(text: str) -> bool:
    """Whether every character certainly takes one cell."""
    return text.isascii() or _SIMPLE(text) is not None


@lru_cache(maxsize=8192)
def cells_of(char: str) -> int:
    """Return 0 for accents, joiners and the like, 2 for wide characters, else 1."""
    if unicodedata.category(char) in ("Mn", "Me", "Cf", "Cc", "Cs"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
