"""Whether scripts/start opens another session or goes back to the open one, and its link on the path."""

import json
from pathlib import Path

import pytest

from scripts.bootstrap.installation import Installation
from scripts.bootstrap.opening import PROGRAM, command_to_open, link

OLDER = {
    "session": "s-1",
    "environment": "restricted_mlm",
    "kind": "human",
    "opened_at": "2026-01-01T10:00:00Z",
}
NEWER = OLDER | {"session": "s-2", "opened_at": "2026-01-01T11:00:00Z"}
AN_AGENTS = NEWER | {"session": "s-3", "kind": "agent", "opened_at": "2026-01-01T12:00:00Z"}
ELSEWHERE = NEWER | {"session": "s-4", "environment": "triton_cumsum"}
DAMAGED = {"session": "s-5", "phase": "damaged", "problem": "line 3"}


def installation(tmp_path: Path, printed: str, code: int = 0) -> Installation:
    found = Installation(tmp_path, tmp_path / "venv")
    command = Path(found.program(PROGRAM))
    command.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "printed").write_text(printed)
    command.write_text(f"#!/bin/sh\ncat {tmp_path}/printed\nexit {code}\n")
    command.chmod(0o755)
    return found


def opened(tmp_path: Path, rows: list[dict[str, str]], *options: str, terminal: bool = True) -> list[str]:
    place = installation(tmp_path, json.dumps({"sessions": rows}))
    return command_to_open(place, "restricted_mlm", list(options), terminal=terminal)


def test_without_an_open_session_one_is_started(tmp_path: Path) -> None:
    assert opened(tmp_path, []) == ["start", "restricted_mlm"]


def test_the_newest_open_session_of_a_person_is_gone_back_to(tmp_path: Path) -> None:
    rows = [OLDER, NEWER, AN_AGENTS, ELSEWHERE, DAMAGED]
    assert opened(tmp_path, rows) == ["attach", "s-2"]


def test_the_session_whose_work_folder_we_stand_in_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "work" / "deeper"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    rows = [OLDER | {"work_tree": str(tmp_path / "work")}, NEWER | {"work_tree": str(tmp_path / "other")}]
    assert opened(tmp_path, rows) == ["attach", "s-1"]


def test_without_a_terminal_the_open_session_is_described(tmp_path: Path) -> None:
    assert opened(tmp_path, [NEWER], terminal=False) == ["status", "--session", "s-2"]


def test_a_new_one_can_be_asked_for(tmp_path: Path) -> None:
    assert opened(tmp_path, [NEWER], "--new") == ["start", "restricted_mlm"]


def test_options_ask_for_a_session_of_their_own(tmp_path: Path) -> None:
    assert opened(tmp_path, [NEWER], "--minutes", "30") == [
        "start",
        "restricted_mlm",
        "--minutes",
        "30",
    ]


@pytest.mark.parametrize(("printed", "code"), [("not JSON", 0), ("{}", 0), ("", 70)])
def test_a_list_that_cannot_be_had_does_not_keep_anybody_from_starting(
    tmp_path: Path, printed: str, code: int
) -> None:
    place = installation(tmp_path, printed, code)
    assert command_to_open(place, "restricted_mlm", [], terminal=True)[0] == "start"


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """~/.local/bin of somebody who has it on the path."""
    folder = tmp_path / "home" / ".local" / "bin"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin")
    monkeypatch.delenv("REBENCH_NO_LINK", raising=False)
    return folder


def test_the_program_is_linked_into_the_users_own_folder(tmp_path: Path, bin_folder: Path) -> None:
    place = installation(tmp_path, "")
    link(place)
    assert (bin_folder / PROGRAM).readlink() == Path(place.program(PROGRAM))


def test_a_link_of_another_checkout_moves_here(tmp_path: Path, bin_folder: Path) -> None:
    link(installation(tmp_path / "a", ""))
    link(installation(tmp_path / "b", ""))
    assert (bin_folder / PROGRAM).readlink().is_relative_to(tmp_path / "b")


def test_somebody_elses_file_of_that_name_stays(
    tmp_path: Path, bin_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bin_folder.mkdir(parents=True)
    (bin_folder / PROGRAM).write_text("mine")
    link(installation(tmp_path, ""))
    assert (bin_folder / PROGRAM).read_text() == "mine"
    assert "belongs to something else" in capsys.readouterr().err


def test_a_folder_off_the_path_is_said_with_the_line_to_add(
    tmp_path: Path, bin_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    link(installation(tmp_path, ""))
    assert f'export PATH="{bin_folder}:$PATH"' in capsys.readouterr().err


def test_no_link_is_made_where_none_is_wanted(
    tmp_path: Path, bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REBENCH_NO_LINK", "1")
    link(installation(tmp_path, ""))
    assert not bin_folder.exists()
