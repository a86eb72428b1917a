"""A Python that is a shell script: answers what the set-up asks of pip and writes down what it was asked."""

import io
from pathlib import Path

import pytest

from scripts.bootstrap.pip import Pip
from scripts.bootstrap.talk import Talk
from tests.scripts.fakes import FakePip


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def talk(said: io.StringIO) -> Talk:
    return Talk(said)


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls"


@pytest.fixture
def fake_pip(tmp_path: Path, calls: Path, talk: Talk) -> FakePip:
    """A Pip whose interpreter prints `lines` and ends with `code`, or never ends by itself."""

    def make(lines: list[str], code: int = 0, *, hang: bool = False) -> Pip:
        output = tmp_path / "output"
        output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        python = tmp_path / "python"
        waiting = "exec sleep 600" if hang else f"exit {code}"
        python.write_text(f'#!/bin/sh\necho "$@" >> {calls}\ncat {output}\n{waiting}\n', encoding="utf-8")
        python.chmod(0o755)
        return Pip(python, tmp_path / "setup.log", talk)

    return make
