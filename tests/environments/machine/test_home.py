"""There is one home, whoever asks for it and by whatever name."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.machine.home import home_folder
from environments.worker import Mount, WorkerJob, WorkerLimits, confine
from sessions.record.store import Store


def test_the_home_is_the_variable_or_the_users_data_folder(tmp_path: Path) -> None:
    assert home_folder({"REBENCH_HOME": str(tmp_path)}) == tmp_path
    assert home_folder({}).name == "rebench-workbench"


def test_under_a_link_the_store_and_what_workers_may_not_see_are_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    monkeypatch.setenv("REBENCH_HOME", str(tmp_path / "link"))
    job = WorkerJob(tmp_path / "entry.py", {"root": Mount(tmp_path)}, WorkerLimits(seconds=1.0))
    assert Store().home == tmp_path / "disk" == next(confine.hidden_paths(job))
