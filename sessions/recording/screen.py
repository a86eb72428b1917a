"""What a terminal shows at one moment: rows of styled text, safe to draw anywhere."""

from __future__ import annotations

from enum import IntFlag

import msgspec


class Look(IntFlag):
    """How a character is drawn."""

    PLAIN = 0
    BOLD = 1
    DIM = 2
    ITALIC = 4
    UNDERLINE = 8
    BLINK = 16
    REVERSE = 32
    HIDDEN = 64
    STRIKE = 128


Colour = int | None
"""None is the terminal's own, 0 to 255 the palette, `TRUE_COLOUR | 0xRRGGBB` any other."""
TRUE_COLOUR = 1 << 24


class Style(msgspec.Struct, frozen=True, array_like=True):
    foreground: Colour = None
    background: Colour = None
    look: int = 0
    """A `Look`, as a number: it is written into keyframes as it stands."""


PLAIN = Style()


class Span(msgspec.Struct, frozen=True):
    """Neighbouring characters of one style; no control characters."""

    text: str
    style: Style


class Screen(msgspec.Struct, frozen=True):
    """A terminal at one moment."""

    rows: int
    cols: int
    lines: tuple[tuple[Span, ...], ...]
    """One per row, each exactly `cols` cells wide."""
    cursor: tuple[int, int]
    """Row and column, from 0."""
    cursor_visible: bool
    exact: bool = True
    """False where it was drawn from the recent past alone, because the whole past would take too long."""
    remark: str = ""
    """What a reviewer should know, e.g. that output is missing here."""

    def text(self) -> str:
        """Return the lines without styles and trailing blanks."""
        return "\n".join("".join(span.text for span in line).rstrip() for line in self.lines).rstrip("\n")


def hex_colour(colour: int) -> str:
    """Return `#rrggbb` for a true colour."""
    return f"#{colour & 0xFFFFFF:06x}"


def sgr(style: Style) -> str:
    """Return the sequence that selects a style from scratch."""
    codes = ["0"]
    codes += [code for look, code in _LOOK_CODES if style.look & look]
    codes += _colour_codes(style.foreground, 30, 90, "38")
    codes += _colour_codes(style.background, 40, 100, "48")
    return f"\x1b[{';'.join(codes)}m"


_LOOK_CODES = (
    (Look.BOLD, "1"), (Look.DIM, "2"), (Look.ITALIC, "3"), (Look.UNDERLINE, "4"), (Look.BLINK, "5"),
    (Look.REVERSE, "7"), (Look.HIDDEN, "8"), (Look.STRIKE, "9"),
)  # fmt: skip


def _colour_codes(colour: Colour, dark: int, bright: int, extended: str) -> list[str]:
    if colour is None:
        return []
    if colour & TRUE_COLOUR:
        return [extended, "2", *(str(colour >> shift & 0xFF) for shift in (16, 8, 0))]
    if colour < 16:
        return [str(dark + colour if colour < 8 else bright + colour - 8)]
    return [extended, "5", str(colour)]
