"""Control groups are found where this process may make them, limit what they say, and are swept when left behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from environments.worker.control import ControlGroup, Roots, sweep
from environments.worker.owners import PREFIX, owned_name, sweep_folders

REAL = Roots.of_this_process()


def proc(folder: Path, cgroup: str, mountinfo: str) -> Path:
    (folder / "cgroup").write_text(cgroup)
    (folder / "mountinfo").write_text(mountinfo)
    return folder


def test_version_two_is_tried_from_ones_own_group_upwards(tmp_path: Path) -> None:
    found = Roots.of_this_process(
        proc(
            tmp_path,
            "0::/user.slice/session.scope\n",
            "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
        )
    )
    assert found.v1 == {}
    assert found.unified == (
        Path("/sys/fs/cgroup/user.slice/session.scope"),
        Path("/sys/fs/cgroup/user.slice"),
        Path("/sys/fs/cgroup"),
    )


def test_version_one_has_a_place_for_each_controller(tmp_path: Path) -> None:
    found = Roots.of_this_process(
        proc(
            tmp_path,
            "4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n2:pids:/\n1:name=systemd:/\n",
            "1 0 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "2 0 0:2 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
            "3 0 0:3 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
            "4 0 0:4 / / rw - ext4 /dev/vda rw\n",
        )
    )
    assert found.unified == ()
    assert found.v1 == {
        "memory": Path("/sys/fs/cgroup/memory/docker/ab"),
        "cpu": Path("/sys/fs/cgroup/cpu,cpuacct/docker/ab"),
        "pids": Path("/sys/fs/cgroup/pids"),
    }


def test_a_machine_without_control_groups_has_no_place(tmp_path: Path) -> None:
    assert Roots.of_this_process(tmp_path / "none") == Roots()
    group = ControlGroup.create(2**20, 10, None, Roots())
    assert (group.folders, group.version, group.members()) == ({}, None, set())


def test_where_nothing_may_be_made_nothing_is(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    group = ControlGroup.create(2**20, 10, 1.0, Roots((blocked,), {"memory": blocked, "pids": blocked}))
    assert group.folders == {}


def test_empty_groups_of_dead_scorers_are_swept_and_live_ones_kept(tmp_path: Path) -> None:
    live = owned_name()
    pid, born, namespace, tail = live.removeprefix(PREFIX).split("-")
    orphans = [f"{PREFIX}{pid}-1-{namespace}-{tail}", f"{PREFIX}{2**22}-{born}-{namespace}-{tail}"]
    kept = [live, f"{PREFIX}{pid}-1-7-{tail}", f"{PREFIX}{pid}", "foreign"]
    for name in (*orphans, *kept):
        (tmp_path / name).mkdir()
    sweep(Roots((tmp_path,)))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(kept)


def test_folders_of_dead_scorers_are_swept_with_what_is_in_them(tmp_path: Path) -> None:
    live = owned_name()
    pid, _, namespace, tail = live.removeprefix(PREFIX).split("-")
    orphan = f"{PREFIX}{pid}-1-{namespace}-{tail}"
    for name in (live, orphan):
        (tmp_path / name / "stage").mkdir(parents=True)
    (tmp_path / f"{PREFIX}{pid}-1-{namespace}-ff").symlink_to(tmp_path / live)
    sweep_folders(tmp_path)
    assert (tmp_path / live / "stage").is_dir()
    assert not (tmp_path / orphan).exists()


@pytest.mark.skipif(
    not any(os.access(parent, os.W_OK) for parent in (*REAL.unified, *REAL.v1.values())),
    reason="this process may make no control groups",
)
def test_a_member_is_counted_and_killed_and_the_group_removed() -> None:
    group = ControlGroup.create(2**28, 10, 1.0)
    script = 'for f in "$@"; do echo 0 > "$f"; done; echo in; exec sleep 600'
    command = ["sh", "-c", script, "sh", *map(str, group.join_files)]
    member = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert member.stdout is not None
    assert member.stdout.readline() == "in\n"
    assert group.members() == {member.pid}
    killer_saw = group.kill()
    member.wait()
    assert killer_saw == 0
    assert member.returncode == -9
    group.remove()
    assert not any(folder.exists() for folder in group.folders.values())
