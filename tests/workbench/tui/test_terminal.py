"""On a real terminal: no colour where none is wanted, ASCII where no more is possible, nothing heavy imported."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workbench.tui.pseudo_terminal import ROOT, PseudoTerminal
from workbench.tui.glyphs import ascii_for, plain_ascii, speaks_unicode
from workbench.tui.theme import ThemeUnknown, chosen

PROGRAM = str(ROOT / "tests/workbench/tui/screen_program.py")
_SGR = re.compile(rb"\x1b\[([\d;]*)m")


def colours_in(output: bytes) -> set[bytes]:
    """Return the select-graphic-rendition codes that set a colour."""
    found: set[bytes] = set()
    for codes in _SGR.findall(output):
        numbers = [int(code or 0) for code in codes.split(b";")]
        if any((30 <= number <= 49 and number not in {39, 49}) or 90 <= number <= 107 for number in numbers):
            found.add(codes)
    return found


def painted(tmp_path: Path, **environ: str) -> bytes:
    with PseudoTerminal(PROGRAM, "none", str(tmp_path / "mark"), environ=environ) as terminal:
        terminal.until(terminal.shows("detach"), "the screen is painted")
        terminal.press("q")
        assert terminal.wait() == 0
        return terminal.output


def test_no_color_means_no_colour_and_everything_is_still_said(tmp_path: Path) -> None:
    output = painted(tmp_path, NO_COLOR="1", COLORTERM="truecolor")
    assert colours_in(output) == set()
    text = output.decode()
    for wanted in ("TIME LEFT", "●", "★", "invalid", "reference"):
        assert wanted in text


def test_with_colours_there_are_some(tmp_path: Path) -> None:
    assert colours_in(painted(tmp_path, COLORTERM="truecolor"))


def test_the_terminal_theme_uses_only_the_terminals_own_colours(tmp_path: Path) -> None:
    output = painted(tmp_path, REBENCH_THEME="terminal", COLORTERM="truecolor")
    found = colours_in(output)
    assert found
    assert not [codes for codes in found if b"38;2" in codes or b"48;2" in codes]


def test_without_a_utf8_locale_every_byte_is_ascii(tmp_path: Path) -> None:
    output = painted(tmp_path, LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert output.isascii()
    assert b"TIME LEFT" in output


def test_a_shell_opened_from_the_screen_begins_on_an_empty_one(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with PseudoTerminal(PROGRAM, "quiet", str(mark)) as terminal:
        terminal.until(terminal.shows("detach"), "the screen is painted")
        terminal.press("t")
        terminal.until(mark.exists, "the shell runs")
        terminal.until(lambda: terminal.output.count(b"\x1b[?1049h") == 2, "the app has the terminal again")
        terminal.press("q")
        assert terminal.wait() == 0
        lent = terminal.output.split(b"\x1b[?1049l")[1].split(b"\x1b[?1049h")[0]
        assert b"\n" * 40 in lent.replace(b"\r", b""), "what stood there is kept above"
        assert b"\x1b[H\x1b[2J" in lent


def test_showing_a_session_imports_no_torch_and_no_git() -> None:
    code = (
        "import sys, workbench.tui.runner, workbench.tui.live, workbench.tui.screens.main\n"
        "print([name for name in ('torch', 'git', 'transformers', 'numpy', 'pygments') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_importing_the_package_alone_does_not_import_textual() -> None:
    code = "import sys, workbench.tui, workbench.tui.source; print('textual' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("environ", "speaks"),
    [
        ({"LANG": "en_GB.UTF-8"}, True),
        ({"LANG": "C.utf8"}, True),
        ({}, True),
        ({"LANG": "C"}, False),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "POSIX"}, False),
        ({"LANG": "en_GB.UTF-8", "TERM": "linux"}, False),
        ({"LANG": "en_GB.UTF-8", "REBENCH_ASCII": "1"}, False),
    ],
)
def test_unicode_is_used_where_the_locale_has_it(environ: dict[str, str], speaks: bool) -> None:
    assert speaks_unicode(environ) is speaks


@pytest.mark.parametrize("character", ["★", "●", "漢", "⣿", "⠁", "█", "é", "…"])
def test_what_stands_for_a_character_is_as_wide_as_it(character: str) -> None:
    assert ascii_for(character).isascii()
    assert len(plain_ascii(character)) == (2 if character == "漢" else 1)


def test_a_theme_is_chosen_by_argument_then_environment_and_no_color_wins() -> None:
    assert chosen(None, {}) == "dark"
    assert chosen(None, {"REBENCH_THEME": "light"}) == "light"
    assert chosen("contrast", {"REBENCH_THEME": "light"}) == "contrast"
    assert chosen("light", {"NO_COLOR": "1"}) == "terminal"
    with pytest.raises(ThemeUnknown, match="there are dark, light, terminal, contrast"):
        chosen("pink", {})
