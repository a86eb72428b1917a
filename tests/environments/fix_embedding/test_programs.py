"""The programs people and the reference run: the starter's training and the sealed repair."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from environments.contract import PrepareRequest, ScoreStatus
from environments.fix_embedding.environment import environment
from environments.sealing import PUBLIC_PASSPHRASE, open_sealed
from tests.environments.fix_embedding.models import FOLDER, hub_request, score_tree, work_tree
from tests.environments.fix_embedding_small import Small, quiet


@pytest.mark.slow
@pytest.mark.parametrize("family", ["minigpt", "transformers"])
def test_the_starters_training_runs_measures_and_saves_something_that_scores(
    family: str, small: Small, tmp_path: Path
) -> None:
    if family == "minigpt":
        request = PrepareRequest(
            profile_name="cpu", profile=small.profile, assets=small.folders, passphrase=PUBLIC_PASSPHRASE
        )
    else:
        request = hub_request(tmp_path)
        environment.prepare(request, quiet)
    root = work_tree(request, tmp_path / "root")
    before = (root / "model.safetensors").read_bytes()
    options = ["--tokens", "512", "--rows", "2", "--validation-rows", "4"]
    done = subprocess.run(
        [sys.executable, "train.py", *options], cwd=root, capture_output=True, text=True, check=False,
        env={"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("validation loss") == 2
    assert (root / "model.safetensors").read_bytes() != before
    assert score_tree(request, root, tmp_path / "s").status is ScoreStatus.VALID
    helper = subprocess.run(
        [sys.executable, "train.py", "--from", "helper", "--validation-rows", "4"], cwd=root, capture_output=True,
        text=True, check=False, env={"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert helper.returncode == 0, helper.stderr
    assert "saved" not in helper.stdout


@pytest.mark.slow
def test_the_sealed_recipe_runs_on_a_model_of_transformers_and_never_makes_it_worse(tmp_path: Path) -> None:
    request = hub_request(tmp_path)
    environment.prepare(request, quiet)
    root = work_tree(request, tmp_path / "root")
    start = score_tree(request, root, tmp_path / "s")
    script = open_sealed(FOLDER / "protected" / "reference.sealed", PUBLIC_PASSPHRASE)["repair.py"]
    (root / "repair.py").write_bytes(script)
    options = ["--learn", "6000", "--tune", "3000", "--rows", "4", "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, "repair.py", *options], cwd=root, capture_output=True, text=True, check=False,
        env={"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    score = score_tree(request, root, tmp_path / "s")
    assert score.status is ScoreStatus.VALID, score.message
    assert score.details["loss"] < start.details["loss"] - 0.3
    place = np.load(root / "placement.npy")
    used = place[place >= 0]
    assert len(place) == 300
    assert len(set(used.tolist())) == len(used)
