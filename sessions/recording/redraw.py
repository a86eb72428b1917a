"""Draws a terminal's state on another terminal: for attaching again to a shell that went on without one."""

from __future__ import annotations

from sessions.recording.grid import Grid
from sessions.recording.screen import PLAIN, sgr
from sessions.recording.terminal import ALTERNATE, SHOW_CURSOR, WRAP, Terminal

RESTORE = (
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?2004l"
    b"\x1b[?1l\x1b7\x1b[?6l\x1b[r\x1b8\x1b[?7h\x1b[?25h\x1b[4l\x1b>\x1b(B\x0f\x1b[0m"
)
"""Leaves a terminal as a shell expects it, whatever the program inside had switched on.

The cursor is put back, which resetting margins would move; with it comes origin mode, where a program left that on.
"""
LEAVE_ALTERNATE = b"\x1b[?1049l"
"""Apart, because it moves the cursor of a terminal that shows its main screen."""


def redraw(terminal: Terminal) -> bytes:
    """Return output that makes a terminal of the same size show the same and behave the same."""
    out = ["\x18" + (RESTORE + LEAVE_ALTERNATE).decode() + "\x1b[?6l"]
    if terminal.other is not None:
        # The main screen first: leaving the alternate one must bring it back.
        out += ["\x1b[H\x1b[2J", *_lines(terminal.other), _place(terminal.saved.row, terminal.saved.col)]
        out.append("\x1b[?1049h")
    out += ["\x1b[H\x1b[2J", *_lines(terminal.grid)]
    out += [f"\x1b[?{mode}h" for mode in sorted(terminal.modes - {ALTERNATE, SHOW_CURSOR, WRAP})]
    if WRAP not in terminal.modes:
        out.append("\x1b[?7l")
    if SHOW_CURSOR not in terminal.modes:
        out.append("\x1b[?25l")
    grid = terminal.grid
    if (grid.top, grid.bottom) != (0, grid.rows - 1):
        out.append(f"\x1b[{grid.top + 1};{grid.bottom + 1}r")
    out += ["\x1b=" if terminal.keypad else "", "\x1b[4h" if terminal.insert else ""]
    graphics = terminal.cursor.graphics
    out += ["\x1b(0" if graphics[0] else "", "\x1b)0" if graphics[1] else ""]
    out.append("\x0e" if terminal.cursor.shift else "")
    row = terminal.cursor.row - (grid.top if terminal.cursor.origin or 6 in terminal.modes else 0)
    out += [sgr(terminal.cursor.style), _place(row, terminal.cursor.col)]
    return "".join(out).encode()


def _place(row: int, col: int) -> str:
    return f"\x1b[{row + 1};{col + 1}H"


def _lines(grid: Grid) -> list[str]:
    out: list[str] = []
    for number, row in enumerate(grid.lines):
        last = len(row.chars)
        while last and row.chars[last - 1] == " " and row.styles[last - 1] == PLAIN:
            last -= 1
        if not last:
            continue
        out.append(_place(number, 0))
        style = None
        for char, cell in zip(row.chars[:last], row.styles[:last], strict=True):
            if cell != style:
                out.append(sgr(cell))
                style = cell
            out.append(char)
        out.append("\x1b[0m")
    return out
