"""A terminal without a screen: reads output and knows what it would show (the xterm subset programs use).

Written for replay, so two things decide its shape: it never fails, whatever the bytes, and it is fast, because a
seek reads up to a segment of output. Device strings and queries are recognised and ignored.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from sessions.recording.escapes import Parser, numbers, without_bidi
from sessions.recording.grid import FrozenGrid, Grid, Row
from sessions.recording.screen import PLAIN, Screen, Span, Style
from sessions.recording.styles import with_sgr
from sessions.recording.widths import cells_of, simple

SHOW_CURSOR, ALTERNATE, WRAP, ORIGIN = 25, 1049, 7, 6
_ALTERNATE_MODES = (47, 1047, 1049)
_KEPT_MODES = frozenset((1, 6, 7, 25, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1049, 2004))
_GRAPHICS = str.maketrans("`abcdefghijklmnopqrstuvwxyz{|}~", "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")
_MOST_ROWS, _MOST_COLS = 1000, 2000


class Cursor(msgspec.Struct, array_like=True):
    """Where writing goes on, and how."""

    row: int = 0
    col: int = 0
    style: Style = PLAIN
    wrap_next: bool = False
    origin: bool = False
    graphics: tuple[bool, bool] = (False, False)
    """Whether G0 and G1 are the line-drawing set."""
    shift: int = 0
    """Which of the two is in use."""

    def copy(self) -> Cursor:
        return msgspec.structs.replace(self)


class Terminal(Parser):
    """The state a terminal is in after the output it was fed."""

    def __init__(self, rows: int = 24, cols: int = 80) -> None:
        super().__init__()
        self._reset(*_sane(rows, cols))

    def _reset(self, rows: int, cols: int) -> None:
        self.grid = Grid(rows, cols)
        self.cursor = Cursor()
        self.saved = Cursor()
        self.other: Grid | None = None
        """The main screen while the alternate one is shown."""
        self.modes: set[int] = {WRAP, SHOW_CURSOR}
        self.keypad = False
        self.insert = False
        self._last = " "

    # What the screen shows

    def screen(self, *, exact: bool = True, remark: str = "") -> Screen:
        grid, cursor = self.grid, self.cursor
        lines = tuple(_spans(row) for row in grid.lines)
        at = (cursor.row, min(cursor.col, grid.cols - 1))
        return Screen(grid.rows, grid.cols, lines, at, SHOW_CURSOR in self.modes, exact, remark)

    def resize(self, rows: int, cols: int) -> None:
        """Change the size as xterm does: no line is wrapped anew, the cursor's line stays in sight."""
        rows, cols = _sane(rows, cols)
        for grid in (self.grid, self.other):
            if grid is not None:
                grid.resize(rows, cols, keep=self.cursor.row if grid is self.grid else self.saved.row)
        for cursor in (self.cursor, self.saved):
            cursor.row, cursor.col = min(cursor.row, rows - 1), min(cursor.col, cols - 1)
            cursor.wrap_next = False

    # Text

    def text(self, text: str) -> None:
        cursor = self.cursor
        if cursor.graphics[cursor.shift]:
            text = text.translate(_GRAPHICS)
        if self.insert or not simple(text):
            self._write_cells(without_bidi(text))
            return
        self._last = text[-1]
        grid = self.grid
        cols = grid.cols
        position, total = 0, len(text)
        while position < total:
            if cursor.wrap_next:
                self._wrap()
            room = cols - cursor.col
            if total - position < room:
                piece = text[position:] if position else text
                grid.lines[cursor.row].put(cursor.col, piece, cursor.style)
                cursor.col += total - position
                return
            grid.lines[cursor.row].put(cursor.col, text[position : position + room], cursor.style)
            position += room
            cursor.col = cols - 1
            if WRAP in self.modes:
                cursor.wrap_next = True
            else:
                grid.lines[cursor.row].put(cols - 1, text[-1], cursor.style)
                return

    def _write_cells(self, text: str) -> None:
        """Write characters of any width, one by one."""
        cursor, grid = self.cursor, self.grid
        for char in text:
            width = cells_of(char)
            if width == 0:
                grid.lines[cursor.row].combine(cursor.col if cursor.wrap_next else cursor.col - 1, char)
                continue
            if cursor.wrap_next or (cursor.col + width > grid.cols and WRAP in self.modes):
                self._wrap()
            row = grid.lines[cursor.row]
            if self.insert:
                row.insert(cursor.col, width, cursor.style)
            cursor.col = min(cursor.col, grid.cols - width)
            if cursor.col < 0:
                cursor.col = 0
                continue
            row.put_wide(cursor.col, char, width, cursor.style)
            self._last = char
            cursor.col += width
            if cursor.col >= grid.cols:
                cursor.col = grid.cols - 1
                cursor.wrap_next = WRAP in self.modes

    def _wrap(self) -> None:
        self.cursor.col = 0
        self.cursor.wrap_next = False
        self._line_feed()

    def _line_feed(self) -> None:
        cursor, grid = self.cursor, self.grid
        if cursor.row == grid.bottom:
            grid.scroll_up(1, cursor.style)
        elif cursor.row < grid.rows - 1:
            cursor.row += 1

    # Controls

    def controls(self, controls: str) -> None:
        cursor = self.cursor
        for control in controls:
            if control == "\n" or control in "\x0b\x0c\x84":
                cursor.wrap_next = False
                self._line_feed()
            elif control == "\r":
                cursor.col, cursor.wrap_next = 0, False
            elif control == "\b":
                cursor.col, cursor.wrap_next = max(0, cursor.col - 1), False
            elif control == "\t":
                cursor.col, cursor.wrap_next = self.grid.next_stop(cursor.col), False
            elif control in "\x0e\x0f":
                cursor.shift = 1 if control == "\x0e" else 0

    def esc(self, intermediate: str, final: str) -> None:
        cursor = self.cursor
        if intermediate in ("(", ")"):
            graphics = list(cursor.graphics)
            graphics["()".index(intermediate)] = final == "0"
            cursor.graphics = (graphics[0], graphics[1])
        elif intermediate == "#" and final == "8":
            self.grid.fill("E")
        elif intermediate:
            return
        elif final == "7":
            self._save()
        elif final == "8":
            self._restore()
        elif final in "DE":
            cursor.wrap_next = False
            cursor.col = 0 if final == "E" else cursor.col
            self._line_feed()
        elif final == "M":
            cursor.wrap_next = False
            if cursor.row == self.grid.top:
                self.grid.scroll_down(1, cursor.style)
            else:
                cursor.row = max(0, cursor.row - 1)
        elif final == "H":
            self.grid.stops.add(cursor.col)
        elif final in "=>":
            self.keypad = final == "="
        elif final == "c":
            self._reset(self.grid.rows, self.grid.cols)

    def _save(self) -> None:
        self.saved = self.cursor.copy()
        self.saved.origin = ORIGIN in self.modes

    def _restore(self) -> None:
        self.cursor = self.saved.copy()
        self.cursor.row = min(self.cursor.row, self.grid.rows - 1)
        self.cursor.col = min(self.cursor.col, self.grid.cols - 1)
        (self.modes.add if self.cursor.origin else self.modes.discard)(ORIGIN)

    # Sequences

    def csi(self, private: str, parameters: str, intermediate: str, final: str) -> None:
        if final == "m":
            if not private and not intermediate:
                self.cursor.style = with_sgr(self.cursor.style, parameters)
            return
        if private == "?" and final in "hl" and not intermediate:
            for mode in numbers(parameters):
                self._set_mode(mode, on=final == "h")
            return
        if intermediate == "!" and final == "p":
            self._soft_reset()
            return
        if private == "?" and final in "JK":
            private = ""
        if private or intermediate:
            return
        step = _STEPS.get(final)
        if step is not None:
            step(self, numbers(parameters))

    def _soft_reset(self) -> None:
        self.modes = {WRAP, SHOW_CURSOR} | (self.modes & {ALTERNATE})
        self.insert = self.keypad = False
        self.grid.top, self.grid.bottom = 0, self.grid.rows - 1
        self.cursor = Cursor(self.cursor.row, self.cursor.col)
        self.saved = Cursor()

    def _set_mode(self, mode: int, *, on: bool) -> None:
        if mode in _ALTERNATE_MODES:
            self._alternate(mode, on=on)
        elif mode == 1048:
            (self._save if on else self._restore)()
        elif mode in _KEPT_MODES:
            (self.modes.add if on else self.modes.discard)(mode)
            if mode == ORIGIN:
                self._move(0, 0)
            elif mode == WRAP:
                self.cursor.wrap_next = False

    def _alternate(self, mode: int, *, on: bool) -> None:
        if on and self.other is None:
            if mode == 1049:
                self._save()
            self.other, self.grid = self.grid, Grid(self.grid.rows, self.grid.cols)
            self.modes.add(ALTERNATE)
        elif not on and self.other is not None:
            self.grid, self.other = self.other, None
            self.modes.discard(ALTERNATE)
            if mode == 1049:
                self._restore()

    def _move(self, row: int, col: int) -> None:
        """Go to a place counted from the top, or from the scrolling region in origin mode."""
        grid, cursor = self.grid, self.cursor
        first, last = (grid.top, grid.bottom) if ORIGIN in self.modes else (0, grid.rows - 1)
        cursor.row = min(max(first + row, first), last)
        cursor.col = min(max(col, 0), grid.cols - 1)
        cursor.wrap_next = False

    def position(self, p: list[int]) -> None:
        self._move(max(1, p[0]) - 1, max(1, p[1] if len(p) > 1 else 1) - 1)

    def vertical(self, rows: int, *, to_column_0: bool = False) -> None:
        """Go up or down, staying within the scrolling region when inside it."""
        grid, cursor = self.grid, self.cursor
        first = grid.top if cursor.row >= grid.top else 0
        last = grid.bottom if cursor.row <= grid.bottom else grid.rows - 1
        cursor.row = min(max(cursor.row + rows, first), last)
        cursor.col = 0 if to_column_0 else cursor.col
        cursor.wrap_next = False

    def horizontal(self, col: int) -> None:
        self.cursor.col = min(max(col, 0), self.grid.cols - 1)
        self.cursor.wrap_next = False

    def row_absolute(self, row: int) -> None:
        self._move(row, self.cursor.col)

    def erase_display(self, how: int) -> None:
        grid, cursor = self.grid, self.cursor
        if how == 0:
            self.erase_line(0)
            grid.erase(cursor.row + 1, grid.rows, cursor.style)
        elif how == 1:
            grid.erase(0, cursor.row, cursor.style)
            self.erase_line(1)
        elif how == 2:
            grid.erase(0, grid.rows, cursor.style)
        cursor.wrap_next = False

    def erase_line(self, how: int) -> None:
        cursor, cols = self.cursor, self.grid.cols
        first, last = ((cursor.col, cols), (0, cursor.col + 1), (0, cols))[how if how in (0, 1, 2) else 0]
        self.grid.lines[cursor.row].erase(first, last, cursor.style)
        cursor.wrap_next = False

    def lines(self, count: int, *, insert: bool) -> None:
        """Insert or delete lines at the cursor, within the scrolling region."""
        grid, cursor = self.grid, self.cursor
        if grid.top <= cursor.row <= grid.bottom:
            move = grid.scroll_down if insert else grid.scroll_up
            move(count, cursor.style, top=cursor.row)
            cursor.col, cursor.wrap_next = 0, False

    def margins(self, p: list[int]) -> None:
        top = max(1, p[0]) - 1
        bottom = (p[1] if len(p) > 1 and p[1] else self.grid.rows) - 1
        bottom = min(bottom, self.grid.rows - 1)
        if top < bottom:
            self.grid.top, self.grid.bottom = top, bottom
            self._move(0, 0)

    def repeat(self, count: int) -> None:
        self.text(self._last * min(count, self.grid.cols * self.grid.rows))

    # Keyframes

    def freeze(self) -> bytes:
        """Return the whole state, for `thaw`."""
        grids = tuple(grid.freeze() for grid in (self.grid, self.other) if grid is not None)
        return _encoder.encode(
            _Frozen(
                grids, self.cursor, self.saved, tuple(sorted(self.modes)), self.keypad, self.insert,
                self._last, self.parser_state(),
            )
        )  # fmt: skip

    @classmethod
    def thaw(cls, frozen: bytes) -> Terminal:
        """Return the terminal `freeze` was called on.

        Raises:
            ValueError: it is no such state.
        """
        try:
            state = _decoder.decode(frozen)
        except msgspec.DecodeError as error:
            raise ValueError(f"not a frozen terminal: {error}") from error
        terminal = cls()
        grids = [Grid.thaw(grid) for grid in state.grids]
        terminal.grid, terminal.other = grids[0], grids[1] if len(grids) > 1 else None
        terminal.cursor, terminal.saved = state.cursor, state.saved
        terminal.modes, terminal.keypad, terminal.insert = set(state.modes), state.keypad, state.insert
        terminal._last = state.last
        terminal.restore_parser(state.parser)
        return terminal


class _Frozen(msgspec.Struct, array_like=True):
    grids: tuple[FrozenGrid, ...]
    cursor: Cursor
    saved: Cursor
    modes: tuple[int, ...]
    keypad: bool
    insert: bool
    last: str
    parser: tuple[bytes, int, str, bool]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Frozen)


def _sane(rows: int, cols: int) -> tuple[int, int]:
    return min(max(1, rows), _MOST_ROWS), min(max(1, cols), _MOST_COLS)


def _spans(row: Row) -> tuple[Span, ...]:
    spans: list[Span] = []
    chars, styles = row.chars, row.styles
    start = 0
    for index in range(1, len(chars) + 1):
        if index == len(chars) or styles[index] != styles[start]:
            spans.append(Span("".join(chars[start:index]), styles[start]))
            start = index
    return tuple(spans)


def _one(p: list[int]) -> int:
    return max(1, p[0])


_STEPS: dict[str, Callable[[Terminal, list[int]], object]] = {
    "@": lambda t, p: t.grid.lines[t.cursor.row].insert(t.cursor.col, _one(p), t.cursor.style),
    "A": lambda t, p: t.vertical(-_one(p)),
    "B": lambda t, p: t.vertical(_one(p)),
    "C": lambda t, p: t.horizontal(t.cursor.col + _one(p)),
    "D": lambda t, p: t.horizontal(t.cursor.col - _one(p)),
    "E": lambda t, p: t.vertical(_one(p), to_column_0=True),
    "F": lambda t, p: t.vertical(-_one(p), to_column_0=True),
    "G": lambda t, p: t.horizontal(_one(p) - 1),
    "H": lambda t, p: t.position(p),
    "I": lambda t, p: t.horizontal(t.grid.next_stop(t.cursor.col, _one(p))),
    "J": lambda t, p: t.erase_display(p[0]),
    "K": lambda t, p: t.erase_line(p[0]),
    "L": lambda t, p: t.lines(_one(p), insert=True),
    "M": lambda t, p: t.lines(_one(p), insert=False),
    "P": lambda t, p: t.grid.lines[t.cursor.row].delete(t.cursor.col, _one(p), t.cursor.style),
    "S": lambda t, p: t.grid.scroll_up(_one(p), t.cursor.style),
    "T": lambda t, p: t.grid.scroll_down(_one(p), t.cursor.style) if len(p) == 1 else None,
    "X": lambda t, p: t.grid.lines[t.cursor.row].erase(t.cursor.col, t.cursor.col + _one(p), t.cursor.style),
    "Z": lambda t, p: t.horizontal(t.grid.previous_stop(t.cursor.col, _one(p))),
    "`": lambda t, p: t.horizontal(_one(p) - 1),
    "a": lambda t, p: t.horizontal(t.cursor.col + _one(p)),
    "b": lambda t, p: t.repeat(_one(p)),
    "d": lambda t, p: t.row_absolute(_one(p) - 1),
    "e": lambda t, p: t.vertical(_one(p)),
    "f": lambda t, p: t.position(p),
    "g": lambda t, p: t.grid.clear_stops(t.cursor.col if p[0] == 0 else None),
    "h": lambda t, p: setattr(t, "insert", t.insert or 4 in p),
    "l": lambda t, p: setattr(t, "insert", t.insert and 4 not in p),
    "r": lambda t, p: t.margins(p),
    "s": lambda t, p: t._save(),  # noqa: SLF001
    "u": lambda t, p: t._restore(),  # noqa: SLF001
}
