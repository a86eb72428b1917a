"""17 (pygpubench PR 7): forged result lines, foreign descriptors, edited files, start-up hooks and survivors change no score."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.environments.harness import STARTER_SCORE, TINY, Tiny, fingerprint

pytestmark = pytest.mark.failures

SUBMISSIONS = Path(__file__).parents[1] / "cheats" / "generic" / "submissions"
WAYS = [
    "result_on_stdout.py",
    "outliving_process.py",
    "edits_the_scorer.py",
    "start_up_hooks",
    "parent_memory.py",
    "scans_proc.py",
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny(tmp_path_factory.mktemp("home"))


def channel_of_a_score(tiny: Tiny, root: Path, scratch: Path) -> list[dict[str, Any]]:
    """Score through the real command, and return every line its channel carried."""
    reading, writing = os.pipe()
    request = {
        "action": "score", "slug": "tiny", "profile": "cpu", "folder": str(TINY), "home": str(tiny.home),
        "root": str(root), "scratch": str(scratch), "seed": 1,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "environments.invoke", "--channel", str(writing)],
        input=json.dumps(request).encode(), capture_output=True, pass_fds=(writing,), check=False, timeout=60,
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 0, done.stderr.decode()
    with os.fdopen(reading) as channel:
        return [json.loads(line) for line in channel]


@pytest.mark.parametrize("way", WAYS)
def test_the_score_is_what_the_predictions_deserve_and_nothing_survives(
    tiny: Tiny, tmp_path: Path, way: str
) -> None:
    root = tiny.lay_out(tmp_path / "root", SUBMISSIONS / way)
    targets = {"host_pid": os.getpid(), "environment": str(TINY)}
    (root / "targets.json").write_text(json.dumps(targets))
    before = fingerprint(TINY, tiny.home)
    lines = channel_of_a_score(tiny, root, tmp_path / "scratch")
    scores = [line["score"] for line in lines if "score" in line]
    assert len(scores) == 1
    assert scores[0]["raw"] == pytest.approx(STARTER_SCORE)
    assert scores[0]["details"]["confinement"]["survivors"] == 0
    assert fingerprint(TINY, tiny.home) == before


def test_writing_to_every_descriptor_spoils_the_answer_instead_of_making_one(
    tiny: Tiny, tmp_path: Path
) -> None:
    root = tiny.lay_out(tmp_path / "root", SUBMISSIONS / "every_descriptor.py")
    score = channel_of_a_score(tiny, root, tmp_path / "scratch")[-1]["score"]
    assert (score["status"], score["raw"]) == ("invalid", None)
