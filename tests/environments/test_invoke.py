"""One call, one last line: results and faults of `python -m environments.invoke`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from environments.contract import CheckReport, ScoreReport, ScoreStatus
from tests.environments.harness import STARTER_SCORE, TINY, Tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny(tmp_path_factory.mktemp("home"))


def start(request: object) -> tuple[subprocess.Popen[bytes], int]:
    """Start a call; return its process and the reading end of its channel."""
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "environments.invoke", "--channel", str(writing)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(writing,),
    )  # fmt: skip
    os.close(writing)
    assert process.stdin is not None
    process.stdin.write(request if isinstance(request, bytes) else json.dumps(request).encode())
    process.stdin.close()
    return process, reading


def invoke(request: object) -> tuple[list[dict[str, Any]], int]:
    """Return every line of the channel, and the exit code."""
    process, reading = start(request)
    with os.fdopen(reading) as channel:
        lines = [json.loads(line) for line in channel]
    process.wait(timeout=30)
    return lines, process.returncode


def asking(tiny: Tiny, action: str, **more: object) -> dict[str, object]:
    return {
        "action": action,
        "slug": "tiny",
        "profile": "cpu",
        "folder": str(TINY),
        "home": str(tiny.home),
        **more,
    }


def broken_environment(folder: Path, score: str) -> Path:
    """Copy the tiny environment with another body for `score`."""
    shutil.copytree(TINY, folder)
    source = (folder / "environment.py").read_text()
    (folder / "environment.py").write_text(
        source.replace(
            "environment = Tiny()",
            f"def score(self, submission, report):\n    {score}\nTiny.score = score\nenvironment = Tiny()",
        )
    )
    return folder


def test_a_score_comes_after_its_progress_as_the_one_last_line(tiny: Tiny, tmp_path: Path) -> None:
    root = tiny.lay_out(tmp_path / "root")
    lines, code = invoke(asking(tiny, "score", root=str(root), scratch=str(tmp_path / "s"), seed=42))
    assert code == 0
    assert [list(line) for line in lines] == [["progress"], ["score"]]
    score = msgspec.convert(lines[-1]["score"], ScoreReport)
    assert score.status is ScoreStatus.VALID
    assert score.raw == pytest.approx(STARTER_SCORE)
    assert score.details["seed"] == 42


def test_a_check_says_what_is_wrong(tiny: Tiny, tmp_path: Path) -> None:
    root = tiny.lay_out(tmp_path / "root")
    (root / "solution.py").unlink()
    lines, code = invoke(asking(tiny, "check", root=str(root), scratch=str(tmp_path / "s")))
    assert code == 0
    assert msgspec.convert(lines[-1]["check"], CheckReport).problems[0].what == "solution.py is missing"


def test_the_starter_is_listed_by_work_tree_path(tiny: Tiny) -> None:
    lines, _ = invoke(asking(tiny, "starter"))
    assert lines[-1]["starter"] == {
        "solution.py": str(TINY / "starter" / "solution.py"),
        "train.json": str(tiny.folders.public / "train.json"),
    }


def test_a_preparation_reports_progress_and_what_it_made(tiny: Tiny, tmp_path: Path) -> None:
    lines, _ = invoke(asking(tiny, "prepare", home=str(tmp_path / "fresh")))
    assert lines[0]["progress"]["stage"] == "drawing numbers"
    assert lines[-1]["prepared"]["files"] == 2
    assert lines[-1]["prepared"]["public"] == str(tmp_path / "fresh/assets/tiny/1.0/cpu/public")


def test_null_fields_mean_their_defaults(tiny: Tiny, tmp_path: Path) -> None:
    root = tiny.lay_out(tmp_path / "root")
    request = asking(tiny, "score", root=str(root), scratch=str(tmp_path / "s"), assets=None, passphrase=None)
    assert "score" in invoke(request)[0][-1]


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        ({"slug": "tinny"}, "EnvironmentUnknown", "did you mean 'tiny'"),
        ({"profile": "gpu"}, "ProfileUnavailable", "it has cpu"),
        ({"action": "dance"}, "RequestInvalid", "dance"),
        ({"colour": "red"}, "RequestInvalid", "colour"),
        ({"root": None}, "RequestInvalid", "needs `root` and `scratch`"),
        ({"root": "/no/such/checkout"}, "RequestInvalid", "is not a folder"),
        ({"action": "prepare", "home": "/dev/null/home"}, "ScorerBroken", "NotADirectoryError"),
        (
            {"action": "prepare", "passphrase": "wrong", "home": "{fresh}"},
            "SealBroken",
            "does not open with the key given",
        ),
    ],
)
def test_what_is_ours_to_mend_is_a_fault(
    tiny: Tiny, tmp_path: Path, change: dict[str, object], kind: str, says: str
) -> None:
    root = tiny.lay_out(tmp_path / "root")
    request = asking(tiny, "score", root=str(root), scratch=str(tmp_path / "s")) | change
    if request["home"] == "{fresh}":
        request["home"] = str(tmp_path / "fresh")
    lines, code = invoke(request)
    assert code == 1
    assert lines[-1]["fault"]["kind"] == kind
    assert says in lines[-1]["fault"]["message"]


def test_a_request_that_is_no_json_is_a_fault() -> None:
    lines, code = invoke(b"{")
    assert (code, lines[-1]["fault"]["kind"]) == (1, "RequestInvalid")


@pytest.mark.parametrize(
    ("score", "says"),
    [
        ("raise KeyError('held-out')", "KeyError: 'held-out'"),
        ("return 0.5", "returned float instead of ScoreReport"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("return ScoreReport.valid(float('nan'), 'n')", "raw must be finite"),
        ("return ScoreReport.valid(1.0, 'n', strange=object())", "object in a report is not plain JSON"),
    ],
)
def test_a_broken_scorer_is_a_fault_and_never_a_score(
    tiny: Tiny, tmp_path: Path, score: str, says: str
) -> None:
    folder = broken_environment(tmp_path / "broken", score)
    root = tiny.lay_out(tmp_path / "root")
    lines, code = invoke(
        asking(tiny, "score", folder=str(folder), root=str(root), scratch=str(tmp_path / "s"))
    )
    assert (code, lines[-1]["fault"]["kind"]) == (1, "ScorerBroken")
    assert says in lines[-1]["fault"]["message"]


def test_numbers_of_numpy_in_details_arrive_as_numbers(tiny: Tiny, tmp_path: Path) -> None:
    body = "import numpy; return ScoreReport.valid(1.0, 'n', loss=numpy.float32(0.5), many=numpy.arange(2))"
    folder = broken_environment(tmp_path / "numbers", body)
    root = tiny.lay_out(tmp_path / "root")
    lines, _ = invoke(asking(tiny, "score", folder=str(folder), root=str(root), scratch=str(tmp_path / "s")))
    assert lines[-1]["score"]["details"] == {"loss": 0.5, "many": [0, 1]}


def test_what_the_scorer_prints_stays_out_of_the_channel(tiny: Tiny, tmp_path: Path) -> None:
    folder = broken_environment(
        tmp_path / "loud", "print('{\"score\": 1}'); return ScoreReport.valid(1.0, 'n')"
    )
    root = tiny.lay_out(tmp_path / "root")
    lines, _ = invoke(asking(tiny, "score", folder=str(folder), root=str(root), scratch=str(tmp_path / "s")))
    assert [list(line) for line in lines] == [["score"]]


def test_termination_ends_the_worker_and_says_so(tiny: Tiny, tmp_path: Path) -> None:
    root = tiny.lay_out(tmp_path / "root")
    (root / "solution.py").write_text("def predict(xs):\n    while True: pass\n")
    process, reading = start(asking(tiny, "score", root=str(root), scratch=str(tmp_path / "s")))
    with os.fdopen(reading) as channel:
        assert "progress" in json.loads(channel.readline())
        process.send_signal(signal.SIGTERM)
        assert json.loads(channel.readline())["fault"]["kind"] == "Terminated"
    process.wait(timeout=30)
    assert process.returncode == 1
