"""The environment triton_cumsum: its definition, its inputs, what check and score say."""

from __future__ import annotations

import importlib.util
import itertools
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from environments import registry
from environments.contract import (
    CANARY,
    Anchors,
    PrepareRequest,
    ScoreStatus,
    SealBroken,
    SpecificationInvalid,
)
from environments.sealing import PUBLIC_PASSPHRASE, open_sealed
from environments.triton_cumsum import host_workload, timing
from environments.triton_cumsum.cases import CROWDED, LARGE, NOT_POSITIVE, POSITIVE, SPARSE, USUAL, ZERO, Kind
from environments.triton_cumsum.environment import make_plan
from environments.triton_cumsum.settings import KEYS as SEALED
from environments.triton_cumsum.settings import decode_settings
from tests.cheats.triton_cumsum.small import HOST, Small, quiet

FOLDER = Path(registry.find("triton_cumsum").folder)
HONEST = Path(__file__).parents[1] / "cheats" / "triton_cumsum" / "submissions" / "honest_out.py"


def slowly(x: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """The definition, word by word."""
    y, total, positives = [], 0, 0
    for value in x.tolist():
        if positives % 2 == 1:
            total += value
        positives += value > 0
        y.append((total + 2**31) % 2**32 - 2**31)
    return np.array(y, dtype=np.int32)


def draw(kind: Kind, length: int) -> np.ndarray:  # type: ignore[type-arg]
    case = host_workload.case(kind, length)
    drawn: np.ndarray = case.draw(np.random.default_rng(3))[0]  # type: ignore[type-arg]
    return drawn


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("store"), "cpu", HOST)


def test_the_briefs_example_is_right() -> None:
    x = np.array([3, -2, 5, 4, 0, 7, -1], dtype=np.int32)
    assert host_workload.running_sum(x).tolist() == [0, -2, 3, 3, 3, 10, 10]


@pytest.mark.parametrize(
    "kind", [USUAL, LARGE, POSITIVE, NOT_POSITIVE, ZERO, SPARSE, CROWDED], ids=lambda k: k.name
)
@pytest.mark.parametrize("length", [0, 1, 2, 257, 5000])
def test_right_answers_are_those_of_the_definition(kind: Kind, length: int) -> None:
    x = draw(kind, length)
    assert x.dtype == np.int32
    assert x.shape == (length,)
    assert np.array_equal(host_workload.running_sum(x), slowly(x))


def test_the_devices_right_answers_are_the_same() -> None:
    torch = pytest.importorskip("torch")
    from environments.triton_cumsum.device_workload import running_sum

    for kind in (USUAL, LARGE, SPARSE):
        x = draw(kind, 70_001)
        assert np.array_equal(running_sum(torch.from_numpy(x)).numpy(), host_workload.running_sum(x))


def test_timed_values_are_those_that_the_brief_names() -> None:
    x = draw(USUAL, 100_000)
    assert sorted(set(x.tolist())) == list(range(-10, 10))


def test_large_values_wrap_around() -> None:
    x = draw(LARGE, 5000)
    positives = np.cumsum(x > 0) - (x > 0)
    exact = np.cumsum(np.where(positives % 2 == 1, x, 0).astype(np.int64))
    assert np.abs(exact).max() > 2**31


def test_sparse_values_have_positive_ones_far_apart() -> None:
    x = draw(SPARSE, 1_000_000)
    assert 2 < (x > 0).sum() < 100


@pytest.mark.parametrize("device", ["cpu", "gpu", "paper"])
def test_every_profile_hands_out_a_solution_and_a_bench(device: str, small: Small) -> None:
    profile = small.found.spec.profile(device)
    request = PrepareRequest(
        profile_name=device, profile=profile, assets=small.folders, passphrase=PUBLIC_PASSPHRASE
    )
    files = small.environment.starter(request)
    assert set(files) == {"solution.py", "bench.py"}
    assert all(path.is_file() for path in files.values())


def test_the_cpu_starter_is_accepted(small: Small, tmp_path: Path) -> None:
    report = small.environment.check(small.submission(FOLDER / "starter" / "cpu", tmp_path))
    assert report.accepted, report.problems


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("x = 1\n", "defines no prefix_sum"),
        ("def prefix_sum(x:\n", "cannot be read"),
        ("def prefix_sum(x):\n    return x\n", "expected"),
        ("def prefix_sum(x):\n    return x.astype('int64')\n", "int64"),
        ("def prefix_sum(x):\n    return x[:0]\n", "shape"),
    ],
)
def test_a_check_says_what_is_wrong(source: str, says: str, small: Small, tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text(source)
    report = small.environment.check(small.submission(tmp_path / "solution.py", tmp_path / "work"))
    assert not report.accepted
    assert says in report.problems[0].what


def test_a_missing_solution_is_named(small: Small, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    submission = small.submission(tmp_path / "empty", tmp_path)
    assert "solution.py is missing" in small.environment.check(submission).problems[0].what
    score = small.environment.score(submission, quiet)
    assert score.status is ScoreStatus.INVALID
    assert "solution.py is missing" in score.message


def test_an_imported_function_counts_as_defined(small: Small, tmp_path: Path) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    (folder / "solution.py").write_text("from other import fast as prefix_sum\n")
    (folder / "other.py").write_text(HONEST.read_text().replace("def prefix_sum", "def fast"))
    assert small.environment.check(small.submission(folder, tmp_path)).accepted


def test_a_score_is_the_logarithm_of_milliseconds_and_tells_how_it_was_found(
    small: Small, tmp_path: Path
) -> None:
    score = small.score(HONEST, tmp_path)
    assert score.status is ScoreStatus.VALID, score.message
    assert score.raw is not None
    times = score.details["milliseconds"]
    assert math.exp(score.raw) == pytest.approx(times["quiet"])
    assert times["calls"]["least"] <= math.exp(score.raw) <= times["calls"]["most"]
    assert score.details["checked_calls"] > times["calls"]["count"] + 30
    assert score.details["confinement"]["network"] == "none"
    assert f"{score.raw:.4f}" in score.message


def test_an_error_in_the_file_says_where(small: Small, tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text("def prefix_sum(x):\n    return x / nothing\n")
    score = small.score(tmp_path / "solution.py", tmp_path / "work")
    assert score.status is ScoreStatus.CRASHED
    assert "NameError" in score.message
    assert "solution.py:2" in score.message


def test_the_gpu_profile_without_a_gpu_is_our_fault_and_not_a_score(tmp_path: Path) -> None:
    from environments.worker import WorkerUnavailable

    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    gpu = Small(tmp_path / "store", "gpu", {})
    with pytest.raises(WorkerUnavailable, match="no CUDA device"):
        gpu.score(HONEST, tmp_path)


def test_hidden_lengths_stay_sealed_and_hold_the_edges() -> None:
    keys = SEALED.open(PUBLIC_PASSPHRASE)
    assert {0, 1, 2} <= set(keys.lengths)
    assert any(n % 2 for n in keys.lengths)
    with pytest.raises(SealBroken):
        SEALED.open("another key")


def test_an_unknown_setting_is_named() -> None:
    settings = registry.find("triton_cumsum").spec.profile("cpu").settings
    with pytest.raises(SpecificationInvalid, match="colour"):
        decode_settings({**settings, "colour": "red"})


def test_brief_and_reference_carry_the_canary() -> None:
    assert CANARY in (FOLDER / "brief.md").read_text()
    files = open_sealed(FOLDER / "protected" / "reference.sealed", PUBLIC_PASSPHRASE)
    assert all(CANARY in content.decode() for content in files.values())


def test_anchors_are_measured_and_the_reference_is_better() -> None:
    spec = registry.find("triton_cumsum").spec
    for profile in (spec.profile("cpu"), spec.profile("gpu")):
        measured = [a for a in profile.anchors if a.source == "measured"]
        assert measured
        for anchors in measured:
            assert isinstance(anchors, Anchors)
            assert anchors.reference < anchors.start
            assert anchors.repeats >= 5
            assert anchors.start_spread is not None
            assert anchors.reference_spread is not None


INTERPRETED = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
import reference_triton as reference
from environments.triton_cumsum.device_workload import running_sum

reference.BLOCK, reference.WINDOW = 64, 4
for length in (1, 2, 63, 64, 65, 1000):
    for low, high in ((-10, 10), (1, 10), (-10, 1), (-(2**16), 2**16)):
        x = torch.randint(low, high, (length,), dtype=torch.int32)
        assert torch.equal(reference.prefix_sum(x, torch.empty_like(x)), running_sum(x)), (length, low)
print("right")
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_the_references_triton_code_is_right_in_tritons_interpreter(tmp_path: Path) -> None:
    files = open_sealed(FOLDER / "protected" / "reference.sealed", PUBLIC_PASSPHRASE)
    (tmp_path / "reference_triton.py").write_bytes(files["reference_triton.py"])
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED, str(tmp_path)],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "right", done.stderr


FALLEN_BACK = """
import ctypes, sys, types
sys.path.insert(0, sys.argv[1])
import torch

class Library:
    def __init__(self, failing=""):
        self.failing = failing

    def __getattr__(self, name):
        return lambda *_: 7 if name == self.failing else 0

def library(name, *_, **__):
    if sys.argv[2] == "no NVRTC" and "nvrtc" in str(name):
        raise OSError(f"{name}: cannot open shared object file")
    return Library("nvrtcCompileProgram" if sys.argv[2] == "unknown GPU" else "")

if sys.argv[2] != "no GPU":
    zeros = torch.zeros
    torch.zeros = lambda *size, device=None, **options: zeros(*size, **options)
    processors = 400 if sys.argv[2] == "too many processors" else 132
    card = types.SimpleNamespace(major=9, minor=0, multi_processor_count=processors)
    torch.cuda.get_device_properties = lambda _: card
    torch.version.cuda = "13.0"
    ctypes.CDLL = library
import solution, reference_gpu
assert solution.prefix_sum("x", "out") == "triton's", solution.prefix_sum
print(reference_gpu.BACKEND)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "says"),
    [
        ("no GPU", ""),
        ("no NVRTC", "no NVRTC library was found"),
        ("unknown GPU", "nvrtcCompileProgram gave 7"),
        ("too many processors", "400 blocks are more"),
    ],
)
def test_the_reference_falls_back_on_triton_where_its_kernel_cannot_be_built(
    machine: str, says: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    for name, content in open_sealed(FOLDER / "protected" / "reference.sealed", PUBLIC_PASSPHRASE).items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "reference_triton.py").write_text('def prefix_sum(x, out):\n    return "triton\'s"\n')
    done = subprocess.run(
        [sys.executable, "-c", FALLEN_BACK, str(tmp_path), machine],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "triton", done.stderr
    assert says in done.stderr


@pytest.mark.slow
def test_where_cuda_is_hidden_the_reference_is_the_hosts(tmp_path: Path) -> None:
    for name, content in open_sealed(FOLDER / "protected" / "reference.sealed", PUBLIC_PASSPHRASE).items():
        (tmp_path / name).write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", "import solution; print(solution.prefix_sum.__module__)"],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "reference_cpu", done.stderr


def test_settings_of_all_profiles_decode() -> None:
    for profile in registry.find("triton_cumsum").spec.profiles.values():
        assert msgspec.to_builtins(decode_settings(profile.settings))["least"] >= 20


@pytest.mark.parametrize("disturbed", [1, 2])
def test_a_disturbed_timing_is_done_once_more_and_then_told(
    disturbed: int, small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, times = timing.time_submission, itertools.count(1)

    def unsteady(*arguments: Any, **options: Any) -> Any:
        found = real(*arguments, **options)
        assert isinstance(found, timing.Timed)
        return (
            timing.NotTimed.of_unsteady("it moved. Score again", found) if next(times) <= disturbed else found
        )

    monkeypatch.setattr(timing, "time_submission", unsteady)
    score = small.score(HONEST, tmp_path)
    assert next(times) == 3
    if disturbed == 1:
        assert score.status is ScoreStatus.VALID, score.message
        assert score.details["attempts"] == 2
        return
    assert score.status is ScoreStatus.INFRASTRUCTURE
    assert score.raw is None
    assert score.message == "it moved. Score again"
    assert score.details["milliseconds"]["calls"]["median"] > 0
    assert score.details["seed"] == 7


def test_only_where_nobody_shares_the_machine_an_unsteady_one_gives_no_score() -> None:
    profiles = registry.find("triton_cumsum").spec.profiles
    plans = {name: make_plan(decode_settings(profile.settings)) for name, profile in profiles.items()}
    assert plans["cpu"].steady is None
    for name in ("gpu", "paper"):
        limits = plans[name].steady
        assert limits is not None
        assert 0 < limits.uncertainty < limits.moved < 0.1
