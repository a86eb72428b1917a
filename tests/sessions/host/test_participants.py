"""What the participant's shells and commands find."""

import sys
from pathlib import Path

import pytest

from sessions.host.participants import own_folders_below


def test_an_interpreter_below_a_folder_that_sandboxes_cover_is_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "checkout" / ".venv"))
    assert own_folders_below(tmp_path) == (tmp_path / "checkout" / ".venv",)
    assert own_folders_below(tmp_path / "elsewhere") == ()
