"""The level in force is found by trying, and a sandboxed shell sees its work and not what is guarded."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sessions.host.isolation import (
    Guarded,
    Surroundings,
    command_in,
    detect,
    participant_command,
    participant_variables,
    sandbox_works,
    try_level,
    unavailable,
)
from sessions.record.events import Isolation

needs_sandbox = pytest.mark.skipif(not sandbox_works(), reason="needs bubblewrap")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start commands as another account")


class House:
    """A store with something to guard, a work folder, and a runtime folder with two sockets."""

    def __init__(self, top: Path) -> None:
        self.store, self.work, self.runtime = top / "store", top / "work", top / "runtime"
        for folder in (self.store / "public", self.store / "protected", self.work):
            folder.mkdir(parents=True)
        for folder in (self.runtime / "participant", self.runtime / "proctor"):
            folder.mkdir(parents=True)
        (self.runtime / "proctor").chmod(0o700)
        (self.store / "public" / "train").write_text("train")
        (self.store / "protected" / "answers").write_text("answers")
        (self.store / "events.jsonl").write_text("log")
        self.store.chmod(0o700)
        top.chmod(0o755)
        self.sockets = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        for end, name in zip(self.sockets, ("participant", "proctor"), strict=True):
            end.bind(str(self.runtime / name / f"{name}.sock"))
            end.listen()
        self.surroundings = Surroundings(
            work_folder=self.work,
            masks=(self.store, self.runtime),
            visible=(self.store / "public", self.runtime / "participant"),
            private=self.store / "private",
            terminal=False,
        )
        self.guarded = (
            Guarded("protected assets", self.store / "protected"),
            Guarded("the log", self.store / "events.jsonl"),
            Guarded("the proctor's socket", self.runtime / "proctor" / "proctor.sock"),
        )

    def close(self) -> None:
        for end in self.sockets:
            end.close()


@pytest.fixture
def house() -> Iterator[House]:
    # Sockets have short paths; the folders of parallel tests do not.
    with tempfile.TemporaryDirectory(prefix="house-") as folder:
        made = House(Path(folder))
        yield made
        made.close()


def run(house: House, script: str, level: Isolation = Isolation.SANDBOX, **changes: object) -> str:
    surroundings = replace(house.surroundings, **changes)  # type: ignore[arg-type]
    done = subprocess.run(
        command_in(level, ["sh", "-c", script], surroundings),
        env=participant_variables(level, os.environ, surroundings),
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    return done.stdout + done.stderr


@needs_sandbox
def test_a_sandbox_holds_and_every_attempt_is_evidence(house: House) -> None:
    found = detect(house.guarded, house.surroundings, wanted=Isolation.SANDBOX)
    assert found.level is Isolation.SANDBOX, found.evidence
    assert len(found.evidence) == len(house.guarded) + 2
    assert all("out of reach" in line for line in found.evidence)
    assert [line for line in found.evidence if "the host's memory" in line]


def test_without_isolation_everything_is_reached_and_said_to_be(house: House) -> None:
    tried = try_level(Isolation.NONE, house.guarded, house.surroundings, os.getpid())
    assert [a.name for a in tried.attempts if a.got_through] == [
        "protected assets",
        "the log",
        "the proctor's socket",
        "the host's memory",
        "the host's environment variables",
    ]
    assert not tried.holds


def test_none_is_labelled_unprotected(house: House) -> None:
    found = detect(house.guarded, house.surroundings, wanted=Isolation.NONE)
    assert (found.level, found.evidence) == (Isolation.NONE, ("none: unprotected",))


@needs_sandbox
def test_a_hole_in_the_masks_is_found_by_trying(house: House) -> None:
    leaky = replace(house.surroundings, visible=(*house.surroundings.visible, house.store / "protected"))
    found = detect(house.guarded, leaky, wanted=Isolation.SANDBOX)
    assert found.level is Isolation.NONE
    assert "sandbox: protected assets: REACHED (read)" in found.evidence


@needs_sandbox
def test_a_visible_socket_of_the_proctor_is_found_by_trying(house: House) -> None:
    leaky = replace(house.surroundings, visible=(house.runtime,))
    found = detect(house.guarded, leaky, wanted=Isolation.SANDBOX)
    assert "sandbox: the proctor's socket: REACHED (connected)" in found.evidence
    assert found.level is Isolation.NONE


@needs_sandbox
def test_what_does_not_decide_is_written_down_all_the_same(house: House) -> None:
    minor = Guarded("a public corpus", house.store / "public", decisive=False)
    found = detect((*house.guarded, minor), house.surroundings, wanted=Isolation.SANDBOX)
    assert found.level is Isolation.SANDBOX
    assert "sandbox: a public corpus: REACHED (read)" in found.evidence


def test_probing_leaves_nothing_in_the_guarded_folders(house: House) -> None:
    detect(house.guarded, house.surroundings)
    assert [p.name for p in (house.store / "protected").iterdir()] == ["answers"]


def test_an_empty_guarded_folder_proves_as_much_as_a_full_one(house: House) -> None:
    (house.store / "protected" / "answers").unlink()
    tried = try_level(Isolation.NONE, house.guarded[:1], house.surroundings, os.getpid())
    assert tried.attempts[0].got_through


@needs_root
def test_another_account_holds_and_is_preferred(house: House) -> None:
    found = detect(house.guarded, replace(house.surroundings, account="nobody"))
    assert found.level is Isolation.USER, found.evidence


@needs_root
def test_another_account_that_can_read_the_store_does_not_count() -> None:
    with TemporaryDirectory() as top:  # pytest's own folders are closed to others
        house = House(Path(top))
        house.store.chmod(0o755)
        found = detect(house.guarded, replace(house.surroundings, account="nobody"), wanted=Isolation.USER)
        house.close()
    assert found.level is Isolation.NONE
    assert "user: protected assets: REACHED (read)" in found.evidence


@needs_root
def test_commands_of_another_account_run_as_it_and_without_capabilities(house: House) -> None:
    said = run(house, "id -u; echo $HOME; grep CapEff /proc/self/status", Isolation.USER, account="nobody")
    nobody = pwd.getpwnam("nobody")
    assert said.split() == [str(nobody.pw_uid), nobody.pw_dir, "CapEff:", "0000000000000000"]


def test_a_missing_account_is_named() -> None:
    surroundings = Surroundings(work_folder=Path("/"), account="no-such-person")
    assert unavailable(Isolation.USER, surroundings) == "there is no account 'no-such-person'"
    assert (
        unavailable(Isolation.USER, replace(surroundings, account=None)) == "no participant account was named"
    )


@needs_sandbox
def test_the_work_folder_is_writable_and_where_a_shell_starts(house: House) -> None:
    assert run(house, "pwd; echo made > here").strip() == str(house.work)
    assert (house.work / "here").read_text() == "made\n"


@needs_sandbox
def test_the_store_is_hidden_and_the_public_assets_are_not(house: House) -> None:
    said = run(
        house, f"ls {house.store}; cat {house.store}/public/train; cat {house.store}/protected/answers"
    )
    assert "train" in said
    assert "answers: No such file" in said
    assert "events.jsonl" not in said


@needs_sandbox
def test_everything_else_is_read_only(house: House) -> None:
    said = run(house, f"touch /etc/x {house.store}/x {house.store}/public/x /usr/x ~/marker 2>&1")
    assert said.count("Read-only file system") >= 4, said
    assert not (Path.home() / "marker").exists()


@needs_sandbox
def test_shells_of_a_session_share_their_temporary_folder_and_nobody_elses(house: House) -> None:
    run(house, "echo kept > /tmp/note")
    assert run(house, "cat /tmp/note") == "kept\n"
    assert not Path("/tmp/note").exists()
    assert run(house, "cat /tmp/note", private=None).strip().endswith("No such file or directory")


@needs_sandbox
def test_history_and_caches_have_a_writable_place(house: House) -> None:
    assert run(house, 'echo a > "$HISTFILE" && echo b > "$XDG_CACHE_HOME/c" && echo done') == "done\n"


@needs_sandbox
def test_the_participants_socket_answers_and_the_proctors_is_not_there(house: House) -> None:
    connect = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('connected')"
    said = [
        run(house, f'python3 -c "{connect}" {house.runtime}/{name}/{name}.sock 2>&1 | tail -1')
        for name in ("participant", "proctor")
    ]
    assert said[0] == "connected\n"
    assert "No such file" in said[1]


@needs_sandbox
def test_no_process_outside_is_seen_and_no_service_manager_is_reached(house: House) -> None:
    said = run(house, f"test -d /proc/{os.getpid()} && echo seen; ls /run; echo $DBUS_SESSION_BUS_ADDRESS")
    assert "seen" not in said
    assert "dbus" not in said
    assert "docker.sock" not in said


@needs_sandbox
def test_the_network_is_as_it_is_unless_it_is_taken_away(house: House) -> None:
    assert len(run(house, "cat /proc/net/dev").splitlines()) == len(
        Path("/proc/net/dev").read_text().splitlines()
    )
    assert len(run(house, "cat /proc/net/dev", network=False).splitlines()) == 3


def test_keys_do_not_reach_the_participants_variables(house: House) -> None:
    ours = {
        "REBENCH_WORKBENCH_KEY": "k",
        "REBENCH_WORKBENCH_KEY_FILE": "f",
        "SSH_AUTH_SOCK": "s",
        "EDITOR": "vim",
    }
    for level in Isolation:
        given = participant_variables(level, ours, house.surroundings)
        assert "EDITOR" in given
        assert not {"REBENCH_WORKBENCH_KEY", "REBENCH_WORKBENCH_KEY_FILE", "SSH_AUTH_SOCK"} & set(given)


def test_without_isolation_a_command_is_left_as_it_is() -> None:
    assert participant_command(Isolation.NONE, ["make", "all"], Path("/work")) == ["make", "all"]


def test_a_shell_that_owns_a_terminal_keeps_its_session(house: House) -> None:
    assert "--new-session" not in command_in(
        Isolation.SANDBOX, ["sh"], replace(house.surroundings, terminal=True)
    )
    assert "--new-session" in command_in(Isolation.SANDBOX, ["sh"], house.surroundings)
