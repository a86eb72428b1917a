"""Big digits drawn from seven segments, in half blocks or in plain ASCII."""

from __future__ import annotations

from typing import NamedTuple


class Face(NamedTuple):
    """Proportions of a digit in pixels; two pixel rows make one line of text."""

    width: int
    height: int
    stroke: int
    gap: int

    @property
    def rows(self) -> int:
        return -(-self.height // 2)


LARGE = Face(width=6, height=10, stroke=2, gap=1)
SMALL = Face(width=4, height=6, stroke=1, gap=1)

#                 top, upper left, upper right, middle, lower left, lower right, bottom
_SEGMENTS = {
    "0": "1110111", "1": "0010010", "2": "1011101", "3": "1011011", "4": "0111010",
    "5": "1101011", "6": "1101111", "7": "1010010", "8": "1111111", "9": "1111011",
}  # fmt: skip
_HALVES = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}


def big(text: str, face: Face) -> list[str]:
    """Return the lines of `text` (digits and colons) in a face."""
    columns = [_colon(face) if character == ":" else _digit(character, face) for character in text]
    gap = " " * face.gap
    return [gap.join(column[row] for column in columns) for row in range(face.rows)]


def cells_of(text: str, face: Face) -> int:
    """Return how wide `big` is."""
    colons = text.count(":")
    return (len(text) - colons) * face.width + colons * face.stroke + (len(text) - 1) * face.gap


def _digit(character: str, face: Face) -> list[str]:
    wide, tall, stroke, _ = face
    pixels = [[0] * wide for _ in range(face.rows * 2)]
    middle = (tall - stroke) // 2
    right = wide - stroke
    places = (
        (0, 0, wide, stroke),
        (0, 0, stroke, middle + stroke),
        (right, 0, stroke, middle + stroke),
        (0, middle, wide, stroke),
        (0, middle, stroke, tall - middle),
        (right, middle, stroke, tall - middle),
        (0, tall - stroke, wide, stroke),
    )
    for lit, (x, y, across, down) in zip(_SEGMENTS[character], places, strict=True):
        if lit == "1":
            for row in range(y, y + down):
                pixels[row][x : x + across] = [1] * across
    return _lines(pixels)


def _colon(face: Face) -> list[str]:
    pixels = [[0] * face.stroke for _ in range(face.rows * 2)]
    third = face.height // 3
    for top in (third - face.stroke // 2, face.height - third - face.stroke + face.stroke // 2):
        for row in range(top, top + face.stroke):
            pixels[row] = [1] * face.stroke
    return _lines(pixels)


def _lines(pixels: list[list[int]]) -> list[str]:
    pairs = zip(pixels[::2], pixels[1::2], strict=True)
    return [
        "".join(_HALVES[up, down] for up, down in zip(upper, lower, strict=True)) for upper, lower in pairs
    ]
