"""Select Graphic Rendition: what the parameters of `CSI m` do to a style."""

from __future__ import annotations

from functools import lru_cache

from sessions.recording.screen import PLAIN, TRUE_COLOUR, Colour, Look, Style

_ON = {
    1: Look.BOLD, 2: Look.DIM, 3: Look.ITALIC, 4: Look.UNDERLINE, 5: Look.BLINK, 6: Look.BLINK,
    7: Look.REVERSE, 8: Look.HIDDEN, 9: Look.STRIKE, 21: Look.UNDERLINE,
}  # fmt: skip
_OFF = {
    22: Look.BOLD | Look.DIM, 23: Look.ITALIC, 24: Look.UNDERLINE, 25: Look.BLINK, 27: Look.REVERSE,
    28: Look.HIDDEN, 29: Look.STRIKE,
}  # fmt: skip


@lru_cache(maxsize=4096)
def with_sgr(style: Style, parameters: str) -> Style:
    """Return the style after a sequence; what is unknown or malformed changes nothing."""
    if parameters in ("", "0"):
        return PLAIN
    fields = parameters.split(";")
    foreground, background, look = style.foreground, style.background, style.look
    position = 0
    while position < len(fields):
        field = fields[position]
        position += 1
        head, *colon = field.split(":")
        code = _number(head)
        if code == 0:
            foreground = background = None
            look = 0
        elif code in (38, 48, 58):
            if colon:
                colour = _colour(colon)
            else:
                colour = _colour(fields[position : position + 4])
                position += {"5": 2, "2": 4}.get(fields[position] if position < len(fields) else "", 0)
            if colour is not None and code == 38:
                foreground = colour
            elif colour is not None and code == 48:
                background = colour
        elif code == 4 and colon:
            look = look & ~Look.UNDERLINE if colon[0] == "0" else look | Look.UNDERLINE
        elif code in _ON:
            look |= _ON[code]
        elif code in _OFF:
            look &= ~_OFF[code]
        elif code in (39, 49):
            foreground, background = (None, background) if code == 39 else (foreground, None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            foreground = code - 30 if code < 90 else code - 82
        elif 40 <= code <= 47 or 100 <= code <= 107:
            background = code - 40 if code < 100 else code - 92
    return Style(foreground, background, int(look))


def _number(field: str) -> int:
    if not field:
        return 0
    return int(field) if field.isdecimal() and len(field) < 6 else -1


def _colour(fields: list[str]) -> Colour:
    """Read `5;n` or `2;r;g;b`, with the colour-space field that the colon form may have."""
    values = [_number(field) for field in fields]
    if values[:1] == [5] and len(values) >= 2 and 0 <= values[1] <= 255:
        return values[1]
    if values[:1] == [2] and len(values) >= 4:
        red, green, blue = values[2:5] if len(values) >= 5 else values[1:4]
        if all(0 <= value <= 255 for value in (red, green, blue)):
            return TRUE_COLOUR | red << 16 | green << 8 | blue
    return None
