"""Tests of minigpt: the network, its table of tensors, how it is trained, and what is shipped of it."""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import environments.kit.minigpt as package
from environments.kit.checkpoint import Wanted, read_checkpoint
from environments.kit.minigpt import train as training
from environments.kit.minigpt.network import MiniGPT, MiniGPTConfig, build, tensor_shapes

KIT = Path(package.__file__).parent
SHIPPED = KIT.parents[1] / "fix_embedding" / "starter" / "minigpt"
CONFIG = json.loads((KIT / "config.json").read_text())
TINY = MiniGPTConfig(vocabulary=40, context=12, layers=2, heads=2, width=16)
RECIPE = {
    "tokens": 12 * 4 * 60,
    "rows": 4,
    "rate": 1e-2,
    "warm_up": 5,
    "final": 0.1,
    "weight_decay": 0.1,
    "seed": 3,
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tensors this small gain nothing from threads, and on a busy machine threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def tiny() -> MiniGPT:
    torch.manual_seed(0)
    model = MiniGPT(TINY)
    model.initialise()
    return model


def test_the_table_of_tensors_is_that_of_the_network() -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in tiny().state_dict().items()}
    assert tensor_shapes(TINY) == shapes


def test_a_position_sees_nothing_that_comes_later() -> None:
    model = tiny().eval()
    ids = torch.arange(12)[None]
    changed = ids.clone()
    changed[0, 7:] = 39
    first, second = model(ids), model(changed)
    assert torch.equal(first[0, :7], second[0, :7])
    assert not torch.allclose(first[0, 7:], second[0, 7:])


def test_the_output_matrix_is_the_embedding() -> None:
    model = tiny().eval()
    ids = torch.arange(12)[None]
    assert torch.allclose(model(ids), model.features(ids) @ model.embedding.weight.T)


@pytest.mark.parametrize("which", ["large", "helper"])
def test_the_shipped_weights_fit_the_configuration_and_their_curve_ends_where_it_should(which: str) -> None:
    name = "damaged.safetensors" if which == "large" else "helper.safetensors"
    sizes, recipe = CONFIG[which]["sizes"], CONFIG[which]["training"]
    tensors = read_checkpoint(SHIPPED, name, Wanted(tensor_shapes(MiniGPTConfig(**sizes))))
    assert all(tensor.isfinite().all() for tensor in tensors.values())
    rows = list(csv.DictReader((KIT / f"{which}-curve.csv").open()))
    tokens_in_a_step = recipe["rows"] * sizes["context"]
    assert 0 <= recipe["tokens"] - int(rows[-1]["tokens"]) < tokens_in_a_step
    assert float(rows[-1]["validation_loss"]) < float(rows[0]["validation_loss"]) - 1


def test_what_is_shipped_stays_small() -> None:
    assert (SHIPPED / "helper.safetensors").stat().st_size < 2**20
    together = sum(path.stat().st_size for path in SHIPPED.iterdir())
    sealed = (SHIPPED.parents[1] / "protected" / "reference.sealed").stat().st_size
    assert together + sealed < 9 * 10**6


def test_the_rate_rises_then_falls_to_its_last_share() -> None:
    rates = [training.rate_at(step, 60, RECIPE) for step in range(61)]
    assert rates[0] == pytest.approx(RECIPE["rate"] / 5)
    assert max(rates) == pytest.approx(RECIPE["rate"], rel=0.05)
    assert rates[-1] == pytest.approx(RECIPE["rate"] * RECIPE["final"])


def test_training_learns_and_the_same_seed_gives_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "POINTS", 3)
    tokens = torch.arange(400) % 7
    models = [tiny(), tiny()]
    curves = [list(training.train(model, tokens, tokens[:60], RECIPE, "cpu")) for model in models]
    assert curves[0] == curves[1]
    assert curves[0][-1].validation_loss < 0.3 < curves[0][0].validation_loss
    assert torch.equal(models[0].embedding.weight, models[1].embedding.weight)


def test_the_validation_loss_covers_every_token_once() -> None:
    model = tiny().eval()
    tokens = torch.arange(12 * 5 + 1) % 40
    with torch.no_grad():
        rows = tokens.unfold(0, 13, 12)
        logits = model(rows[:, :-1])
        expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
    assert training.validation_loss(model, tokens, rows=2) == pytest.approx(float(expected), abs=1e-5)


def test_the_script_trains_and_saves_half_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "POINTS", 1)
    config = {"large": {"sizes": vars(TINY), "training": {**RECIPE, "dropout": 0.1}}}
    monkeypatch.setattr(training, "CONFIG", tmp_path / "config.json")
    (tmp_path / "config.json").write_text(json.dumps(config))
    np.save(tmp_path / "train.npy", (np.arange(300) % 40).astype("<u2"))
    options = ["--train", str(tmp_path / "train.npy"), "--validation", str(tmp_path / "train.npy")]
    training.main(["large", *options, "--out", str(tmp_path), "--tokens", "480", "--device", "cpu"])
    saved = load_file(tmp_path / "large.safetensors")
    assert {name: tuple(tensor.shape) for name, tensor in saved.items()} == tensor_shapes(TINY)
    assert all(tensor.dtype == torch.float16 for tensor in saved.values())
    assert (tmp_path / "large-curve.csv").read_text().startswith("tokens,rate,train_loss,validation_loss")


def starter_model(folder: Path) -> Any:
    """The participant's own `model.py`, imported from a work tree."""
    spec = importlib.util.spec_from_file_location("fix_embedding_starter_model", folder / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_starters_network_and_ours_compute_the_same(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "model.py").write_bytes((SHIPPED / "model.py").read_bytes())
    for name in ("damaged.safetensors", "helper.safetensors"):
        (tmp_path / "data" / name).write_bytes((SHIPPED / name).read_bytes())
    task = {"large": CONFIG["large"]["sizes"], "helper": CONFIG["helper"]["sizes"], "length": 128}
    (tmp_path / "task.json").write_text(json.dumps(task))
    theirs = starter_model(tmp_path)
    ids = torch.randint(4096, (1, 20), generator=torch.Generator().manual_seed(1))
    for which, model in (("large", theirs.load_model(theirs.DAMAGED)), ("helper", theirs.load_helper())):
        ours = build(CONFIG[which]["sizes"])
        ours.load_state_dict({name: tensor.detach() for name, tensor in model.state_dict().items()})
        assert torch.allclose(ours.eval()(ids), model.eval()(ids), atol=1e-5)
    theirs.save_model(theirs.load_model(theirs.DAMAGED))
    assert (tmp_path / "model.safetensors").read_bytes() == (SHIPPED / "damaged.safetensors").read_bytes()
