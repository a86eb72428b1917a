"""Every generic trick in `submissions/` gets the verdict its first line promises, and takes nothing away."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from environments.contract import CANARY, ScoreReport, ScoreStatus
from environments.worker import confine
from environments.worker.jobs import Level
from tests.environments.harness import STARTER_SCORE, TINY, Tiny, fingerprint

SUBMISSIONS = Path(__file__).parent / "submissions"
CHEATS = sorted(p for p in SUBMISSIONS.iterdir() if p.name != "__pycache__")

pytestmark = [
    pytest.mark.cheats,
    pytest.mark.skipif(
        confine.best_level() not in (Level.SANDBOX, Level.SANDBOX_ACCOUNT),
        reason="needs bubblewrap: these verdicts are promised for a sandboxed worker",
    ),
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiny]:
    """The tiny environment in a store that also holds another session, with keys in the scorer's variables."""
    home = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REBENCH_HOME", str(home))
        patch.setenv("REBENCH_WORKBENCH_KEY", "the operator's key")
        patch.setenv("OPENAI_API_KEY", "another key")
        patch.setenv("PYTHONSTARTUP", str(home / "start.py"))
        made = Tiny(home)
        (made.folders.protected / "canary.txt").write_text(CANARY)
        other = home / "sessions" / "s-other"
        other.mkdir(parents=True, mode=0o700)
        (other / "events.jsonl").write_text("a record of someone else\n")
        yield made


@pytest.fixture(scope="module")
def targets(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Everything an attacker could hope to know, told to every cheat."""
    folder = tmp_path_factory.mktemp("host")
    with socket.create_server(("127.0.0.1", 0)) as port, socket.socket(socket.AF_UNIX) as named:
        named.bind(str(folder / "host.sock"))
        named.listen()
        with socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind(f"\0rebench-test-{os.getpid()}")
            abstract.listen()
            yield {
                "protected": str(tiny.folders.protected),
                "store": str(tiny.home),
                "other_session": str(tiny.home / "sessions" / "s-other"),
                "environment": str(TINY),
                "host_pid": os.getpid(),
                "port": port.getsockname()[1],
                "socket": str(folder / "host.sock"),
                "abstract_socket": f"@rebench-test-{os.getpid()}",
                "canary": CANARY,
            }


def promised(cheat: Path) -> tuple[str, ...]:
    """Return the verdicts a cheat's first line allows."""
    source = cheat / "solution.py" if cheat.is_dir() else cheat
    first = source.read_bytes().splitlines()[0].decode()
    found = re.search(r"Expected: ([a-z -]+)\.\"\"\"$", first)
    assert found, f"{source} does not say what it expects in its first line"
    return tuple(found[1].split(" or "))


def verdict(score: ScoreReport) -> str:
    if score.status is not ScoreStatus.VALID:
        return score.status.value
    assert score.raw is not None
    return "harmless" if score.raw == pytest.approx(STARTER_SCORE) else "better" if score.raw < 1.0 else "odd"


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda path: path.stem)
def test_a_trick_gets_the_verdict_it_deserves(
    cheat: Path, tiny: Tiny, targets: dict[str, Any], tmp_path: Path
) -> None:
    root = tiny.lay_out(tmp_path / "root", cheat)
    (root / "targets.json").write_text(json.dumps(targets))
    (root / "link_to_answers.json").symlink_to(tiny.folders.protected / "test.json")
    (root / "link_to_folder").symlink_to(tiny.folders.protected)
    (root / "link_to_root").symlink_to("/")
    before = fingerprint(tiny.home, TINY)
    calls = 2 if cheat.stem == "leaves_a_note" else 1
    for number in range(calls):
        score = tiny.score(root, tmp_path / f"scratch{number}")
    assert fingerprint(tiny.home, TINY) == before, "something of the host's was changed"
    log = str(score.details.get("log", ""))
    assert "GOT" not in log, log
    assert len(log) < 20_000
    assert verdict(score) in promised(cheat), (score.message, log)
    assert score.details.get("confinement", {}).get("survivors", 0) == 0


def test_there_are_at_least_twenty_five_tricks() -> None:
    assert len(CHEATS) >= 25


def test_every_trick_says_where_it_was_seen() -> None:
    for cheat in CHEATS:
        source = cheat / "solution.py" if cheat.is_dir() else cheat
        first = source.read_bytes().splitlines()[0].decode()
        assert promised(cheat) == ("better",) or "Seen: " in first, source
