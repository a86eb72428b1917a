"""The terminal that replays: draws what xterm draws, never fails, and is the same however its input is cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions.recording.redraw import RESTORE, redraw
from sessions.recording.screen import Look, Style
from sessions.recording.terminal import Terminal

PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[2J", b"\x1b[H", b"\x1b[5;70H", b"\x1b[3;9r", b"\x1b[r", b"\x1b[10L",
            b"\x1b[2M", b"\x1b[4P", b"\x1b[7@", b"\x1b[4h", b"\x1b[4l", b"\x1b(0lqqk\x1b(B", b"\x1b[1;31;48;5;20m", b"\x1b7",
            b"\x1b8", b"\x1bM", b"\x1bD", b"\xe4\xb8\xad\xe6\x96\x87", b"e\xcc\x81", b"\xf0\x9f\x91\xa9", b"\x1b]0;title\x07",
            b"\x1bP1$r0m\x1b\\", b"\x1b[?7l", b"\x1b[?7h", b"\x1b[?6h", b"\x1b[99999999S", b"\x1b[9T", b"\x1b[3b", b"\x1bc",
            b"\t\t\t", b"\x1b[3g", b"\x1bH", b"\r\n", b"\n\n\n\n\n", b"word " * 30, b"\x1b[!p", b"\x1b[K\x1b[1J",
        ]
    ),
)  # fmt: skip


def showing(data: bytes, rows: int = 6, cols: int = 20) -> Terminal:
    terminal = Terminal(rows, cols)
    terminal.feed(data)
    return terminal


def text(data: bytes, rows: int = 6, cols: int = 20) -> str:
    return showing(data, rows, cols).screen().text()


@given(st.lists(PIECES, max_size=40), st.integers(1, 30), st.integers(1, 90))
@settings(max_examples=150, deadline=None)
def test_no_output_whatsoever_breaks_it(pieces: list[bytes], rows: int, cols: int) -> None:
    terminal = Terminal(rows, cols)
    for number, piece in enumerate(pieces):
        terminal.feed(piece)
        if number % 7 == 6:
            terminal.resize(1 + (rows + number) % 30, 1 + (cols * number) % 90)
    screen = terminal.screen()
    assert len(screen.lines) == screen.rows
    assert all(len(row.chars) == len(row.styles) == screen.cols for row in terminal.grid.lines)
    assert 0 <= screen.cursor[0] < screen.rows
    assert 0 <= screen.cursor[1] < screen.cols
    assert all(
        span.text.isprintable() or "�" in span.text or not span.text.isascii()
        for line in screen.lines
        for span in line
    )


@given(st.lists(PIECES, max_size=30), st.data())
@settings(max_examples=100, deadline=None)
def test_it_is_the_same_however_its_input_is_cut(pieces: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    cut = Terminal(10, 40)
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        cut.feed(whole[start:end])
    assert cut.screen() == showing(whole, 10, 40).screen()


@given(st.lists(PIECES, max_size=30), st.lists(PIECES, max_size=10))
@settings(max_examples=100, deadline=None)
def test_a_frozen_terminal_goes_on_as_if_it_had_not_been(before: list[bytes], after: list[bytes]) -> None:
    one = showing(b"".join(before), 10, 40)
    two = Terminal.thaw(one.freeze())
    one.feed(b"".join(after))
    two.feed(b"".join(after))
    assert two.screen() == one.screen()
    assert two.freeze() == one.freeze()


@given(st.lists(PIECES, max_size=30), st.lists(PIECES, max_size=5))
@settings(max_examples=100, deadline=None)
def test_a_redrawn_terminal_shows_the_same(before: list[bytes], used: list[bytes]) -> None:
    """Attaching again: whatever the new terminal had been used for, it shows the shell's screen."""
    shell = showing(b"".join(before), 10, 40)
    fresh = showing(b"".join(used), 10, 40)
    fresh.feed(redraw(shell))
    assert fresh.screen() == shell.screen()
    assert fresh.modes == shell.modes


@pytest.mark.parametrize("left_on", [b"", b"\x1b[2;4r\x1b[3;1H", b"\x1b[?1h\x1b[?7l\x1b[4h"])
def test_restoring_a_terminal_leaves_its_cursor_below_what_it_shows(left_on: bytes) -> None:
    before, after = showing(b"one\r\ntwo" + left_on), showing(b"one\r\ntwo" + left_on + RESTORE)
    assert (after.cursor.row, after.cursor.col) == (before.cursor.row, before.cursor.col)


def test_long_lines_wrap_only_when_more_comes() -> None:
    assert text(b"x" * 20) == "x" * 20
    assert text(b"x" * 20 + b"\r\ny") == "x" * 20 + "\ny"
    assert text(b"x" * 21) == "x" * 20 + "\nx"


def test_without_wrapping_the_last_column_is_overwritten() -> None:
    assert text(b"\x1b[?7l" + b"a" * 25 + b"Z") == "a" * 19 + "Z"


def test_the_alternate_screen_leaves_the_main_one_as_it_was() -> None:
    terminal = showing(b"shell\r\n$ vi\x1b[?1049h\x1b[H\x1b[2Jeditor")
    assert terminal.screen().text() == "editor"
    terminal.feed(b"\x1b[?1049l")
    assert terminal.screen().text() == "shell\n$ vi"
    assert terminal.screen().cursor == (1, 4)


def test_lines_scroll_within_their_region() -> None:
    assert text(b"top\x1b[2;4r\x1b[2H1\r\n2\r\n3\r\n4\x1b[6Hend") == "top\n2\n3\n4\n\nend"


def test_wide_characters_take_two_cells_and_are_never_halved() -> None:
    assert text("中文".encode() + b"\x1b[2Gx") == " x文"
    assert text(b"x" * 19 + "中".encode()) == "x" * 19 + "\n中"


def test_accents_stay_with_their_letter() -> None:
    assert text("e\u0301a".encode()) == "e\u0301a"
    assert showing("e\u0301a".encode()).screen().cursor == (0, 2)


def test_line_drawing_characters_are_translated() -> None:
    assert text(b"\x1b(0lqk\x1b(Blqk") == "┌─┐lqk"


def test_repeat_draws_the_last_character_again() -> None:
    assert text(b"-\x1b[4b") == "-----"


@pytest.mark.parametrize(
    ("sequence", "style"),
    [
        (b"1;31", Style(1, None, Look.BOLD)),
        (b"38;5;208", Style(208)),
        (b"38;2;1;2;3", Style((1 << 24) | 0x010203)),
        (b"38:2::1:2:3", Style((1 << 24) | 0x010203)),
        (b"48:5:7", Style(None, 7)),
        (b"97;104", Style(15, 12)),
        (b"4:3", Style(None, None, Look.UNDERLINE)),
        (b"7;27;9", Style(None, None, Look.STRIKE)),
        (b"38;5", Style()),
        (b"38;2;999;0;0", Style()),
    ],
)
def test_styles_are_read(sequence: bytes, style: Style) -> None:
    terminal = showing(b"\x1b[" + sequence + b"mx")
    assert terminal.grid.lines[0].styles[0] == style


def test_erasing_fills_with_the_background() -> None:
    terminal = showing(b"\x1b[44m\x1b[2J")
    assert {style for row in terminal.grid.lines for style in row.styles} == {Style(None, 4)}


def test_a_smaller_window_keeps_the_cursor_in_sight() -> None:
    terminal = showing(b"1\r\n2\r\n3\r\n4\r\n5")
    terminal.resize(3, 10)
    assert terminal.screen().text() == "3\n4\n5"


def test_a_string_that_never_ends_shows_nothing_and_costs_nothing() -> None:
    terminal = showing(b"before\x1b]52;c;")
    for _ in range(100):
        terminal.feed(b"A" * 65536)
    assert terminal.screen().text() == "before"
    terminal.feed(b"\x07after")
    assert terminal.screen().text() == "beforeafter"
