"""Textualize/textual 6298: a terminal left raw after suspend. Here it is always as it was before."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.workbench.tui.pseudo_terminal import ROOT, PseudoTerminal

pytestmark = [pytest.mark.failures, pytest.mark.serial]

PROGRAM = str(ROOT / "tests/workbench/tui/screen_program.py")
LEAVES_SCREEN, SHOWS_CURSOR, MOUSE_OFF = b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1003l"


def shown(tmp_path: Path, shell: str) -> PseudoTerminal:
    terminal = PseudoTerminal(PROGRAM, shell, str(tmp_path / "mark"))
    terminal.until(terminal.shows("detach"), "the screen is painted")
    terminal.until(lambda: terminal.raw, "the screen has the keyboard")
    return terminal


def open_shell(terminal: PseudoTerminal, tmp_path: Path) -> None:
    terminal.press("t")
    terminal.until(lambda: (tmp_path / "mark").exists(), "the shell runs")


def assert_restored(terminal: PseudoTerminal) -> None:
    assert terminal.modes == terminal.before
    for wanted in (LEAVES_SCREEN, SHOWS_CURSOR, MOUSE_OFF):
        assert wanted in terminal.output, wanted
    # Whatever was switched on last was switched off after it.
    assert terminal.output.rfind(LEAVES_SCREEN) > terminal.output.rfind(b"\x1b[?1049h")


def test_leaving_by_key_restores_the_terminal(tmp_path: Path) -> None:
    with shown(tmp_path, "none") as terminal:
        terminal.press("q")
        assert terminal.wait() == 0
        assert_restored(terminal)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_to_end_restores_the_terminal(tmp_path: Path, number: signal.Signals) -> None:
    with shown(tmp_path, "none") as terminal:
        terminal.process.send_signal(number)
        assert terminal.wait() == 128 + number
        assert_restored(terminal)


def test_a_shell_that_was_killed_while_raw_leaves_no_trace(tmp_path: Path) -> None:
    with shown(tmp_path, "raw-and-killed") as terminal:
        open_shell(terminal, tmp_path)
        painted = terminal.output.count(b"\x1b[?1049h")
        terminal.until(
            lambda: terminal.output.count(b"\x1b[?1049h") > painted or painted > 1, "the screen is back"
        )
        terminal.until(lambda: terminal.raw, "the screen has the keyboard again")
        terminal.press("q")
        assert terminal.wait() == 0
        assert_restored(terminal)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_while_the_shell_has_the_terminal_restores_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    with shown(tmp_path, "forever") as terminal:
        open_shell(terminal, tmp_path)
        terminal.until(lambda: terminal.raw, "the shell has made the terminal raw")
        terminal.process.send_signal(number)
        assert terminal.wait() == 128 + number
        assert_restored(terminal)
        shell = int((tmp_path / "mark").read_text())
        with pytest.raises(ProcessLookupError):
            os.kill(shell, 0)


def test_a_terminal_that_takes_no_more_output_cannot_hold_the_screen_up(tmp_path: Path) -> None:
    with shown(tmp_path, "none") as terminal:
        # Nobody reads; the resizes make the screen write until the terminal is full.
        for number in range(60):
            terminal.resize(100 + number % 2 * 40, 40)
            with contextlib.suppress(subprocess.TimeoutExpired):
                terminal.process.wait(timeout=0.05)
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.process.wait(timeout=60) == 128 + signal.SIGTERM
        assert terminal.modes == terminal.before


def test_a_terminal_that_goes_away_ends_the_screen_without_a_stack_of_errors(tmp_path: Path) -> None:
    with shown(tmp_path, "none") as terminal:
        os.close(terminal.master)
        terminal.master = os.open(os.devnull, os.O_RDWR)
        terminal.process.send_signal(signal.SIGHUP)
        assert terminal.process.wait(timeout=60) == 128 + signal.SIGHUP
