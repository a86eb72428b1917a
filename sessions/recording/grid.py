"""The cells of a terminal's screen: rows of characters and styles, and what moves and erases them."""

from __future__ import annotations

from sessions.recording.screen import PLAIN, Style

_MOST_COMBINED = 8
FrozenGrid = tuple[int, int, int, int, list[list[str]], list[list[int]], list[Style], list[int]]


class Row:
    """One line: a character per cell; a wide character is followed by an empty one."""

    __slots__ = ("chars", "styles")

    def __init__(self, cols: int, style: Style = PLAIN) -> None:
        self.chars = [" "] * cols
        self.styles = [style] * cols

    def put(self, col: int, text: str, style: Style) -> None:
        """Write characters one cell wide each; `text` fits."""
        end = col + len(text)
        chars = self.chars
        if not chars[col]:
            chars[col - 1] = " "
        if end < len(chars) and not chars[end]:
            chars[end] = " "
        chars[col:end] = text
        self.styles[col:end] = [style] * len(text)

    def put_wide(self, col: int, char: str, width: int, style: Style) -> None:
        self.put(col, " " * width, style)
        self.chars[col] = char
        if width == 2:
            self.chars[col + 1] = ""

    def combine(self, col: int, char: str) -> None:
        """Add an accent or a joiner to the character at or before `col`."""
        if col >= 0 and not self.chars[col]:
            col -= 1
        if col >= 0 and len(self.chars[col]) < _MOST_COMBINED:
            self.chars[col] += char

    def erase(self, first: int, last: int, style: Style) -> None:
        first, last = max(0, first), min(last, len(self.chars))
        if first < last:
            self.put(first, " " * (last - first), _background(style))

    def insert(self, col: int, count: int, style: Style) -> None:
        cols = len(self.chars)
        count = min(count, cols - col)
        if not self.chars[col]:
            self.chars[col - 1] = self.chars[col] = " "
        self.chars[col:col] = " " * count
        self.styles[col:col] = [_background(style)] * count
        self._cut(cols)

    def delete(self, col: int, count: int, style: Style) -> None:
        cols = len(self.chars)
        count = min(count, cols - col)
        if not self.chars[col]:
            self.chars[col - 1] = " "
        del self.chars[col : col + count]
        del self.styles[col : col + count]
        if col < len(self.chars) and not self.chars[col]:
            self.chars[col] = " "
        self.chars += " " * count
        self.styles += [_background(style)] * count

    def _cut(self, cols: int) -> None:
        if len(self.chars) > cols:
            torn = not self.chars[cols]
            del self.chars[cols:]
            del self.styles[cols:]
            if torn:
                self.chars[-1] = " "

    def resize(self, cols: int) -> None:
        self._cut(cols)
        missing = cols - len(self.chars)
        self.chars += " " * missing
        self.styles += [PLAIN] * missing


class Grid:
    """A screen of rows, with a scrolling region and tab stops."""

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.top, self.bottom = 0, rows - 1
        self.lines = [Row(cols) for _ in range(rows)]
        self.stops = set(range(8, cols, 8))

    def scroll_up(self, count: int, style: Style, *, top: int | None = None) -> None:
        """Move lines up within the region; new ones come in at its bottom."""
        first = self.top if top is None else top
        count = min(count, self.bottom - first + 1)
        del self.lines[first : first + count]
        at = self.bottom - count + 1
        self.lines[at:at] = [Row(self.cols, _background(style)) for _ in range(count)]

    def scroll_down(self, count: int, style: Style, *, top: int | None = None) -> None:
        first = self.top if top is None else top
        count = min(count, self.bottom - first + 1)
        del self.lines[self.bottom - count + 1 : self.bottom + 1]
        self.lines[first:first] = [Row(self.cols, _background(style)) for _ in range(count)]

    def erase(self, first: int, last: int, style: Style) -> None:
        blank = _background(style)
        for number in range(first, last):
            self.lines[number] = Row(self.cols, blank)

    def fill(self, char: str) -> None:
        for row in self.lines:
            row.chars[:] = char * self.cols
            row.styles[:] = [PLAIN] * self.cols

    def next_stop(self, col: int, count: int = 1) -> int:
        later = sorted(stop for stop in self.stops if col < stop < self.cols)
        return later[count - 1] if count <= len(later) else self.cols - 1

    def previous_stop(self, col: int, count: int) -> int:
        earlier = sorted((stop for stop in self.stops if stop < col), reverse=True)
        return earlier[count - 1] if count <= len(earlier) else 0

    def clear_stops(self, col: int | None) -> None:
        if col is None:
            self.stops.clear()
        else:
            self.stops.discard(col)

    def resize(self, rows: int, cols: int, *, keep: int) -> None:
        """Change the size; when it shrinks, lines leave at the top only as far as line `keep` needs."""
        if rows < self.rows:
            above = max(0, min(keep, self.rows - 1) - rows + 1)
            self.lines = self.lines[above : above + rows]
        else:
            self.lines += [Row(cols) for _ in range(rows - self.rows)]
        for row in self.lines:
            row.resize(cols)
        self.stops |= set(range(8, cols, 8)) - set(range(8, self.cols, 8))
        self.rows, self.cols = rows, cols
        self.top, self.bottom = 0, rows - 1

    def freeze(self) -> FrozenGrid:
        """Return plain values for `thaw`."""
        table: dict[Style, int] = {}
        styles = [[table.setdefault(style, len(table)) for style in row.styles] for row in self.lines]
        chars = [row.chars for row in self.lines]
        return self.rows, self.cols, self.top, self.bottom, chars, styles, list(table), sorted(self.stops)

    @classmethod
    def thaw(cls, frozen: FrozenGrid) -> Grid:
        rows, cols, top, bottom, chars, styles, table, stops = frozen
        if not (len(chars) == len(styles) == rows and 0 <= top <= bottom < rows):
            raise ValueError("not a frozen grid: rows do not add up")
        grid = cls(rows, cols)
        grid.top, grid.bottom, grid.stops = top, bottom, set(stops)
        for row, row_chars, row_styles in zip(grid.lines, chars, styles, strict=True):
            if not len(row_chars) == len(row_styles) == cols:
                raise ValueError("not a frozen grid: columns do not add up")
            row.chars, row.styles = list(row_chars), [table[index] for index in row_styles]
        return grid


def _background(style: Style) -> Style:
    """What erased cells look like: the colour behind the text and nothing else."""
    return PLAIN if style.background is None else Style(None, style.background, 0)
