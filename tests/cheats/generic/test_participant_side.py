"""What a participant tries from their own shell, before any scoring: each attempt ends with nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions.host.isolation import Surroundings, command_in, participant_variables, sandbox_works
from sessions.record.events import Isolation
from tests.environments.harness import STARTER_SCORE, Tiny, fingerprint

pytestmark = [
    pytest.mark.cheats,
    pytest.mark.skipif(not sandbox_works(), reason="needs bubblewrap: promised for sandboxed shells"),
]

ATTEMPTS = {
    "hard_link_to_protected": "ln {protected}/test.json here.json && cat here.json",
    "symlink_to_protected": "ln -s {protected}/test.json link.json; cat link.json",
    "read_protected": "cat {protected}/test.json",
    "read_own_record": "cat {store}/sessions/s-own/events.jsonl",
    "read_other_session": "cat {store}/sessions/s-other/events.jsonl",
    "edit_own_record": "echo forged >> {store}/sessions/s-own/events.jsonl && echo GOT",
    "unmount_the_mask": "umount {store} && cat {store}/sessions/s-own/events.jsonl",
    "mount_over_the_mask": "mount --bind / /mnt && cat /mnt{store}/sessions/s-own/events.jsonl",
    "new_namespace": "unshare -Urm sh -c 'umount {store}; cat {store}/sessions/s-own/events.jsonl'",
    "root_of_another_process": "cat /proc/*/root{store}/sessions/s-own/events.jsonl | grep -v '^$'",
    "host_memory": "dd if=/proc/{host}/mem bs=1 count=1 skip=4096 | wc -c | grep -v 0 && echo GOT",
    "host_variables": "tr '\\0' '\\n' < /proc/{host}/environ | grep KEY",
    "kill_the_host": "kill -9 {host} && echo GOT",
    "raw_disk": "for d in /dev/vd* /dev/sd* /dev/nvme* /dev/mem /dev/kmem; do head -c1 $d && echo GOT; done",
    "cron": "echo '* * * * * cat {protected}/test.json > {work}/got' | crontab - && echo GOT",
    "service_manager": "systemd-run --user cat {protected}/test.json && echo GOT",
    "container_daemon": "ls /run/docker.sock /run/containerd/containerd.sock && echo GOT",
    "search_for_canary": "grep -rs 'someone else' {store} /tmp /run && echo GOT",
    "shell_start_up_files": "echo 'touch {work}/got' >> ~/.bashrc",
    "python_start_up_files": "echo 'import os' >> $(python3 -c 'import site; print(site.getsitepackages()[0])')/x.pth && echo GOT",
}


class Place:
    def __init__(self, top: Path) -> None:
        self.store, self.work = top / "store", top / "work"
        self.work.mkdir(parents=True)
        self.tiny = Tiny(self.store)
        for name in ("s-own", "s-other"):
            (self.store / "sessions" / name).mkdir(parents=True)
            (self.store / "sessions" / name / "events.jsonl").write_text(
                f"GOT the record of someone else: {name}\n"
            )
        self.surroundings = Surroundings(work_folder=self.work, masks=(self.store,), terminal=False)
        self.names = {
            "store": self.store, "work": self.work, "protected": self.tiny.folders.protected, "host": os.getpid(),
        }  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REBENCH_WORKBENCH_KEY", "GOT the operator's key")
        yield Place(tmp_path_factory.mktemp("place"))


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_an_attempt_from_the_shell_ends_with_nothing(place: Place, attempt: str) -> None:
    before = fingerprint(place.store)
    done = subprocess.run(
        command_in(Isolation.SANDBOX, ["sh", "-c", ATTEMPTS[attempt].format(**place.names)], place.surroundings),
        env=participant_variables(Isolation.SANDBOX, os.environ, place.surroundings),
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "GOT" not in done.stdout
    assert '"y"' not in done.stdout
    assert fingerprint(place.store) == before
    assert not (place.work / "got").exists()
    start_up = Path.home() / ".bashrc"
    assert not start_up.exists() or str(place.work) not in start_up.read_text()


def test_an_honest_command_works_in_the_same_shell(place: Place, tmp_path: Path) -> None:
    root = place.tiny.lay_out(tmp_path / "root")
    assert place.tiny.score(root, tmp_path / "scratch").raw == pytest.approx(STARTER_SCORE)
    script = "git init -q repo && cd repo && echo x > a && git add a && python3 -c 'print(6 * 7)'"
    done = subprocess.run(
        command_in(Isolation.SANDBOX, ["sh", "-c", script], place.surroundings),
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "42\n"
