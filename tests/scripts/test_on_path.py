"""The link that puts rebench-workbench on the path."""

import io
from pathlib import Path

import pytest

from scripts.bootstrap.on_path import link
from scripts.bootstrap.talk import Talk


def command_in(folder: Path) -> Path:
    command = folder / "venv" / "bin" / "rebench-workbench"
    command.parent.mkdir(parents=True)
    command.touch()
    (folder / "venv" / "pyvenv.cfg").touch()
    return command


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "PATH": f"{tmp_path}/home/.local/bin:/usr/bin"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".local" / "bin" / "rebench-workbench"


def test_the_command_is_linked_into_the_users_own_folder(
    tmp_path: Path, environ: dict[str, str], place: Path, talk: Talk
) -> None:
    command = command_in(tmp_path / "a")
    link(command, talk, environ=environ)
    assert place.resolve() == command


def test_a_link_to_another_checkout_is_replaced(
    tmp_path: Path, environ: dict[str, str], place: Path, talk: Talk
) -> None:
    link(command_in(tmp_path / "a"), talk, environ=environ)
    second = command_in(tmp_path / "b")
    link(second, talk, environ=environ)
    assert place.resolve() == second


def test_somebody_elses_file_of_that_name_stays(
    tmp_path: Path, environ: dict[str, str], place: Path, talk: Talk, said: io.StringIO
) -> None:
    place.parent.mkdir(parents=True)
    place.write_text("mine")
    link(command_in(tmp_path / "a"), talk, environ=environ)
    assert place.read_text() == "mine"
    assert "belongs to something else" in said.getvalue()


def test_the_second_time_says_nothing(
    tmp_path: Path, environ: dict[str, str], talk: Talk, said: io.StringIO
) -> None:
    command = command_in(tmp_path / "a")
    link(command, talk, environ=environ)
    before = said.getvalue()
    link(command, talk, environ=environ)
    assert said.getvalue() == before


def test_a_folder_off_the_path_is_said_with_the_line_to_add(
    tmp_path: Path, talk: Talk, said: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    link(command_in(tmp_path / "a"), talk, environ={"HOME": str(tmp_path / "home"), "PATH": "/usr/bin"})
    assert f'export PATH="{tmp_path}/home/.local/bin:$PATH"' in said.getvalue()


def test_no_link_is_made_where_none_is_wanted(
    tmp_path: Path, environ: dict[str, str], place: Path, talk: Talk
) -> None:
    link(command_in(tmp_path / "a"), talk, environ=environ | {"REBENCH_NO_LINK": "1"})
    assert not place.exists()
