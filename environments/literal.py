"""Makes text from outside harmless: all of it is shown, and nothing in it is obeyed, hidden or put in another order."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

REPLACEMENT = "\ufffd"
TAB = "    "
# What Unicode calls default-ignorable and files under letters and marks: fillers and variation selectors.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Honest text joins letters and emoji with these; alone they are nothing.
_JOINERS = "\u00ad\u200c\u200d\u2060"
_NOT_ASCII = re.compile("[^ -~]")
_LINES = re.compile("[^ -~\n\t]")


@lru_cache(4096)
def shown(character: str) -> str:
    """Return what stands for one character: itself, its control picture, a replacement, or nothing."""
    code = ord(character)
    if character == "\t":
        return TAB
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if character in _JOINERS or _UNSEEN.match(character):
        return ""
    match unicodedata.category(character):
        # Format characters put what stands around them in another order; the rest has no width one can know.
        case "Cc" | "Cf" | "Cs" | "Cn" | "Co":
            return REPLACEMENT
        case "Zl" | "Zp":
            return " "
    return character


def harmless(text: str) -> bool:
    """Whether a terminal, a page and a reader take every character for itself."""
    return text.isprintable() and not _UNSEEN.search(text)


def literal(text: str) -> str:
    """Return `text` as one line or several: line ends and tabs stay, everything else is shown."""
    lines = text.replace("\r\n", "\n")
    return lines if harmless(lines) else _LINES.sub(lambda found: shown(found[0]), lines)


def plain(text: str) -> str:
    """Return `text` as one line; line ends and tabs are shown too."""
    return text if harmless(text) else _NOT_ASCII.sub(lambda found: shown(found[0]), text)


def one_line(text: str) -> str:
    """Return `text` on one line, each stretch of blanks and line ends as one blank."""
    return plain(" ".join(text.split()))
