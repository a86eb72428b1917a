"""A small restricted_mlm: 64 entries, rows of 8, random text; captures in this process unless told to use the worker."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from environments.contract import (
    AssetFolders,
    CheckReport,
    Limits,
    Needs,
    Profile,
    ScoreReport,
    Submission,
)
from environments.kit.token_corpus import RECORD, CorpusRecord, token_file
from environments.kit.tokens import token_file_bytes, write_whole
from environments.restricted_mlm import capture_job
from environments.restricted_mlm.environment import environment
from environments.restricted_mlm.settings import KEYS, Keys
from environments.worker import Answered, Confinement, Failed, FailureKind, Level, WorkerJob, WorkerOutcome

VOCABULARY, LENGTH = 64, 8
SETTINGS: dict[str, Any] = {
    "corpora": ["none"],
    "vocabulary": VOCABULARY,
    "length": LENGTH,
    "scoring_rows": 48,
    "control_rows": 16,
    "batch": 16,
    "log_constant": 0.5,
    "largest_parameters": 1_000_000,
    "largest_intermediate": 10_000_000,
    "largest_memory_gb": 0.05,
    "largest_gigaflops": 0.5,
}
HERE = Confinement(level=Level.GROUP, network="open", memory="none", processes="none")


def small_profile(**settings: Any) -> Profile:
    return Profile(
        summary="small",
        needs=Needs(cpus=1),
        limits=Limits(score_seconds=60, check_seconds=60, memory_gb=3),
        settings=SETTINGS | settings,
    )


def small_assets(folder: Path) -> AssetFolders:
    """Write random token files as `prepare` would."""
    random = np.random.default_rng(7)
    public, protected = folder / "public", folder / "protected"
    folders = AssetFolders(public=public, protected=protected)
    files = {}
    for name in ("train", "validation", "scoring", "control"):
        tokens = random.integers(2, VOCABULARY, 600).tolist()
        files[name] = write_whole(token_file(folders, name), token_file_bytes([tokens]))
    record = CorpusRecord("random", files, dict.fromkeys(files, 4.0))
    write_whole(protected / RECORD, msgspec.json.encode(record))
    keys = Keys(scoring_seed=1, control_seed=2, validation_seed=3, mask_seed=4)
    KEYS.leave(keys, protected)
    task = {"vocabulary": VOCABULARY, "length": LENGTH, "mask_token": 1, "mask_share": 0.15}
    write_whole(public / "task.json", json.dumps(task).encode())
    return folders


def submission(source: Path, folder: Path, assets: AssetFolders, **settings: Any) -> Submission:
    """Lay `source` out as the snapshot's model.py."""
    root, scratch = folder / "root", folder / "scratch"
    root.mkdir(parents=True)
    scratch.mkdir()
    shutil.copyfile(source, root / "model.py")
    return Submission(
        root=root,
        profile_name="small",
        profile=small_profile(**settings),
        assets=assets,
        scratch=scratch,
        seed=1,
    )


def captured_here(job: WorkerJob, report: Any = None, **_: Any) -> WorkerOutcome:
    """Stand in for `run_untrusted`: the same entry, without a sandbox. For submissions that we wrote ourselves."""
    from environments.restricted_mlm import capture

    root = job.mounts["root"].source
    request = SimpleNamespace(
        places={"root": root},
        body=dict(job.body),
        progress=lambda stage, fraction: None,
        load=lambda file: _load(root / file),
    )
    try:
        body, blobs = capture.answer(request)
    except Exception as error:  # noqa: BLE001, as the worker does with whatever a model raises
        return Failed(
            FailureKind.CRASHED, f"{type(error).__name__}: {error}", 0.0, "", HERE, where="model.py"
        )
    return Answered(json.loads(json.dumps(body)), blobs, 0.0, "", HERE)


def without_worker(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(capture_job, "run_untrusted", captured_here)


def score(given: Submission) -> ScoreReport:
    return environment.score(given, lambda progress: None)


def check(given: Submission) -> CheckReport:
    return environment.check(given)


def promised(source: Path) -> str:
    """Return the words after `verdict:` in the first line."""
    found = re.search(r"verdict: (.*)$", source.read_text().splitlines()[0])
    assert found, f"{source.name} promises no verdict"
    return found[1]


def offending_line(source: Path) -> int | None:
    """Return the line marked `# offence`."""
    lines = source.read_text().splitlines()
    return next((number for number, line in enumerate(lines, 1) if "# offence" in line), None)


def _load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("participants_model", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
