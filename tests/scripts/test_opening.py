"""Whether scripts/start opens another session or goes back to the open one."""

import json
from pathlib import Path

import pytest

from scripts.bootstrap.installation import Installation
from scripts.bootstrap.opening import activated, command_to_open
from scripts.bootstrap.talk import Talk

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
    found.command.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "printed").write_text(printed)
    found.command.write_text(f"#!/bin/sh\ncat {tmp_path}/printed\nexit {code}\n")
    found.command.chmod(0o755)
    return found


def opened(
    tmp_path: Path, talk: Talk, rows: list[dict[str, str]], *options: str, terminal: bool = True
) -> list[str]:
    place = installation(tmp_path, json.dumps({"sessions": rows}))
    return command_to_open(place, "restricted_mlm", list(options), talk, terminal=terminal)[1:]


def test_without_an_open_session_one_is_started(tmp_path: Path, talk: Talk) -> None:
    assert opened(tmp_path, talk, []) == ["start", "restricted_mlm"]


def test_the_newest_open_session_of_a_person_is_gone_back_to(tmp_path: Path, talk: Talk) -> None:
    rows = [OLDER, NEWER, AN_AGENTS, ELSEWHERE, DAMAGED]
    assert opened(tmp_path, talk, rows) == ["attach", "s-2"]


def test_the_session_whose_work_folder_we_stand_in_comes_first(
    tmp_path: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "work" / "deeper"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    rows = [OLDER | {"work_tree": str(tmp_path / "work")}, NEWER | {"work_tree": str(tmp_path / "other")}]
    assert opened(tmp_path, talk, rows) == ["attach", "s-1"]


def test_without_a_terminal_the_open_session_is_described(tmp_path: Path, talk: Talk) -> None:
    assert opened(tmp_path, talk, [NEWER], terminal=False) == ["status", "--session", "s-2"]


def test_a_new_one_can_be_asked_for(tmp_path: Path, talk: Talk) -> None:
    assert opened(tmp_path, talk, [NEWER], "--new") == ["start", "restricted_mlm"]


def test_options_ask_for_a_session_of_their_own(tmp_path: Path, talk: Talk) -> None:
    assert opened(tmp_path, talk, [NEWER], "--minutes", "30") == [
        "start",
        "restricted_mlm",
        "--minutes",
        "30",
    ]


@pytest.mark.parametrize(("printed", "code"), [("not JSON", 0), ("{}", 0), ("", 70)])
def test_a_list_that_cannot_be_had_does_not_keep_anybody_from_starting(
    tmp_path: Path, talk: Talk, printed: str, code: int
) -> None:
    place = installation(tmp_path, printed, code)
    assert command_to_open(place, "restricted_mlm", [], talk, terminal=True)[1] == "start"


def test_what_is_opened_finds_the_virtual_environments_python_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    place = installation(tmp_path, "")
    assert activated(place)["PATH"] == f"{place.venv}/bin:/usr/bin"
