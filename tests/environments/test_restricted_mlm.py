"""restricted_mlm: the graph's format, the interpreter, the losses, prepare, and scoring through the real worker."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from environments.contract import (
    CANARY,
    AssetFolders,
    AssetsMissing,
    Limits,
    Needs,
    PrepareRequest,
    Profile,
    ProfileUnavailable,
    Progress,
    ScoreStatus,
    SpecificationInvalid,
)
from environments.kit.bpe import MASK, train_bpe
from environments.kit.log_loss import Loss, signs_of_seen_text
from environments.registry import find
from environments.restricted_mlm import capture, evaluate, graph, interpret, rules
from environments.restricted_mlm.environment import STARTER, environment
from environments.restricted_mlm.evaluate import draw_rows, masked_loss
from environments.restricted_mlm.settings import KEYS as SEALED
from environments.restricted_mlm.settings import decode_settings
from environments.sealing import PUBLIC_PASSPHRASE, open_sealed
from environments.worker import Failed, FailureKind, WorkerJob
from tests.cheats.restricted_mlm import small
from tests.environments.test_kit import TEXTS, hub_dataset

HONEST = Path(small.__file__).parent / "submissions" / "honest"
FOLDER = STARTER.parent


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> AssetFolders:
    return small.small_assets(tmp_path_factory.mktemp("assets"))


def captured(name: str) -> tuple[torch.nn.Module, graph.Graph, Mapping[str, torch.Tensor]]:
    """Return an honest model, its graph after a trip through the format, and its weights by graph name."""
    torch.manual_seed(0)
    model = small._load(HONEST / f"{name}.py").get_trained_model().eval()
    written, tensors = capture.capture(model, small.VOCABULARY, small.LENGTH, HONEST)
    read = graph.decode_graph(graph.encode_graph(written))
    assert read == written
    return model, read, {name: tensors[key] for name, key in read.weights.items()}


@pytest.mark.parametrize(
    "name", ["relu_attention", "strided_windows", "mask_indicator", "newton_norm", "tied_weights"]
)
def test_the_captured_graph_computes_what_the_model_computes(name: str) -> None:
    model, read, weights = captured(name)
    for rows in (1, 2, 7):
        ids = torch.randint(
            0, small.VOCABULARY, (rows, small.LENGTH), generator=torch.Generator().manual_seed(rows)
        )
        with torch.no_grad():
            torch.testing.assert_close(
                interpret.run_graph(read, weights, ids), model(ids), rtol=1e-4, atol=1e-4
            )


def test_a_graph_names_the_participants_lines() -> None:
    _, read, _ = captured("relu_attention")
    source = (HONEST / "relu_attention.py").read_text().splitlines()
    relu = next(node for node in read.nodes if node.op == "aten.relu.default")
    assert relu.where is not None
    file, line = relu.where.split(":")
    assert file == "relu_attention.py"
    assert "torch.relu" in source[int(line) - 1]


def tiny_graph(**changes: object) -> bytes:
    described = {
        "format": 1,
        "weights": {"w": "w"},
        "nodes": [{"name": "x", "op": "aten.embedding.default", "arguments": [ref("w"), ref("ids")]}],
        "output": "x",
    }
    return json.dumps(described | changes).encode()


def ref(name: str) -> dict[str, str]:
    return {"kind": "ref", "name": name}


def node(name: str, op: str, *arguments: object) -> dict[str, object]:
    return {"name": name, "op": op, "arguments": list(arguments)}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x80\x04pickle", "does not decode"),
        (b"[" * 100_000, "does not decode"),
        (tiny_graph(format=2), "format 2"),
        (tiny_graph(code="import os"), "does not decode"),
        (tiny_graph(output="nothing"), "not defined"),
        (tiny_graph(weights={"ids": "w"}), "not a fresh name"),
        (tiny_graph(weights={"__import__('os')": "w"}), "not a fresh name"),
        (tiny_graph(nodes=[node("x", "aten.relu.default", ref("x"))]), "before it is defined"),
        (tiny_graph(nodes=[node("w", "aten.relu.default", ref("w"))]), "not a fresh name"),
        (
            tiny_graph(nodes=[node("x", "aten.relu.default", {"kind": "code", "name": "x"})]),
            "does not decode",
        ),
    ],
)
def test_a_graph_that_strays_from_the_format_is_refused(content: bytes, says: str) -> None:
    with pytest.raises(graph.GraphInvalid, match=says):
        graph.decode_graph(content)


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([node("x", "os.system", "true")], "not an allowed operation"),
        ([node("x", "aten.relu.default", 3)], "must be of kind tensor"),
        ([node("x", "aten.relu.default", ref("w"), ref("w"))], "at most 1 arguments"),
        ([node("x", "aten.relu.default")], "needs 'self'"),
        ([node("x", "aten.reshape.default", ref("w"), [True, 16])], "must be of kind sizes"),
        ([node("x", "aten.zeros.default", [2**62, 4])], "failed"),
        ([node("x", "aten.zeros.default", [10_000, 1_100])], "makes a tensor of 11,000,000 numbers"),
        (
            [node("s", "aten.sym_size.int", ref("w"), 0), node("x", "aten.mul.Tensor", ref("w"), ref("s"))],
            "as a number",
        ),
        (
            [node("x", "aten.to.dtype", ref("w"), {"kind": "dtype", "name": "complex64"})],
            "complex64 is not allowed",
        ),
    ],
)
def test_a_graph_written_by_hand_is_checked_like_any_other(nodes: list[object], says: str) -> None:
    read = graph.decode_graph(tiny_graph(nodes=nodes, output=nodes[-1]["name"]))  # type: ignore[index]
    settings = decode_settings(small.SETTINGS)
    found = rules.inspect_graph(read, {"w": torch.zeros(64, 64)}, settings)
    assert says in found.problems[0].what


def test_every_row_hides_the_same_number_of_positions_and_the_seed_decides_which() -> None:
    tokens = np.arange(2, 2002).astype("<u2")
    first, again, other = (
        draw_rows(tokens, 30, 20, mask_token=MASK, mask_share=0.15, seed=s) for s in (1, 1, 2)
    )
    assert first.hidden.sum(1).tolist() == [3] * 30
    assert bool((first.ids[first.hidden] == MASK).all())
    assert bool((first.ids[~first.hidden] == first.targets[~first.hidden]).all())
    assert torch.equal(first.ids, again.ids)
    assert not torch.equal(first.ids, other.ids)


def test_a_short_text_is_gone_through_again_with_other_positions_hidden() -> None:
    rows = draw_rows(np.arange(2, 82).astype("<u2"), 8, 20, mask_token=MASK, mask_share=0.15, seed=1)
    by_text: dict[int, list[list[bool]]] = {}
    for target, hidden in zip(rows.targets.tolist(), rows.hidden.tolist(), strict=True):
        by_text.setdefault(target[0], []).append(hidden)
    assert sorted(len(masks) for masks in by_text.values()) == [2, 2, 2, 2]
    assert all(first != second for first, second in by_text.values())


def test_the_loss_is_the_mean_over_hidden_tokens_whatever_the_batch_and_the_threads() -> None:
    model, read, weights = captured("tied_weights")
    tokens = np.random.default_rng(0).integers(2, 64, 400).astype("<u2")
    rows = draw_rows(tokens, 50, small.LENGTH, mask_token=MASK, mask_share=0.15, seed=3)
    with torch.no_grad():
        logits = model(rows.ids)
    expected = torch.nn.functional.cross_entropy(logits[rows.hidden], rows.targets[rows.hidden]).item()
    losses = [
        masked_loss(read, weights, rows, batch, workers=workers).mean
        for batch, workers in ((50, 1), (7, 1), (7, 3))
    ]
    assert losses == pytest.approx([expected] * 3, rel=1e-5)
    assert losses[1] == losses[2]


def test_a_deadline_ends_the_evaluation() -> None:
    _, read, weights = captured("tied_weights")
    rows = draw_rows(
        np.arange(2, 62).astype("<u2"), 4, small.LENGTH, mask_token=MASK, mask_share=0.15, seed=3
    )
    with pytest.raises(evaluate.EvaluationTimedOut):
        masked_loss(read, weights, rows, 2, deadline=time.monotonic() - 1)


def test_two_scorings_of_one_submission_agree_to_the_last_bit(
    assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.without_worker(monkeypatch)
    source = tmp_path / "model.py"
    source.write_text(
        (HONEST / "relu_attention.py")
        .read_text()
        .replace("def __init__", "torch.manual_seed(3)\n\n    def __init__", 1)
    )
    first, second = (small.score(small.submission(source, tmp_path / name, assets)) for name in "ab")
    assert first.raw == second.raw
    assert first.raw == math.log(first.details["loss"] - 0.5)
    assert first.details["tokens"] == 48
    assert first.details["bits_per_byte"] == pytest.approx(first.details["loss"] / math.log(2) / 4)


def test_a_loss_at_or_below_the_constant_is_invalid_not_a_crash(
    assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.without_worker(monkeypatch)
    score = small.score(small.submission(HONEST / "tied_weights.py", tmp_path, assets, log_constant=30.0))
    assert score.status is ScoreStatus.INVALID
    assert "at or below the constant 30.0" in score.message


def test_scoring_text_much_easier_than_the_rest_is_flagged() -> None:
    def losses(scoring: float, control: float, train: float) -> dict[str, Loss]:
        means = {"scoring": scoring, "control": control, "train": train}
        return {name: Loss(mean, 0.03, 1000, 1.0) for name, mean in means.items()}

    assert signs_of_seen_text(losses(2.7, 2.75, 2.5)) == []
    assert "control" in signs_of_seen_text(losses(2.0, 2.7, 1.9))[0]
    assert "train" in signs_of_seen_text(losses(2.0, 2.1, 2.6))[0]


def test_missing_model_py_is_invalid_with_the_reason(assets: AssetFolders, tmp_path: Path) -> None:
    given = small.submission(HONEST / "tied_weights.py", tmp_path, assets)
    (given.root / "model.py").unlink()
    assert "model.py is missing" in small.score(given).message
    assert small.check(given).problems[0].where == "model.py"


def test_a_gpu_profile_on_a_machine_without_one_is_our_fault_not_theirs(
    assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.without_worker(monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ProfileUnavailable, match="GPU"):
        small.score(small.submission(HONEST / "tied_weights.py", tmp_path, assets, device="cuda"))


def test_missing_keys_ask_for_prepare(
    assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.without_worker(monkeypatch)
    shutil.copytree(assets.protected, tmp_path / "protected")
    (tmp_path / "protected" / "keys.json").unlink()
    damaged = AssetFolders(public=assets.public, protected=tmp_path / "protected")
    with pytest.raises(AssetsMissing, match="env prepare restricted_mlm"):
        small.score(small.submission(HONEST / "tied_weights.py", tmp_path / "s", damaged))


def test_the_specification_decodes_with_every_profiles_settings() -> None:
    spec = find("restricted_mlm").spec
    for name in ("cpu", "gpu", "paper"):
        settings = decode_settings(spec.profile(name).settings)
        assert settings.mask_token < settings.vocabulary
    assert spec.profile("cpu").anchors[0].normalise(spec.profile("cpu").anchors[0].reference) == 1.0


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(SpecificationInvalid, match="vocab"):
        decode_settings({"vocab": 1})


def test_the_brief_carries_the_canary_and_the_reference_stays_sealed() -> None:
    assert CANARY in (FOLDER / "brief.md").read_text()
    assert CANARY.encode() in (FOLDER / "protected" / "reference.sealed").read_bytes()[:400]
    reference = open_sealed(FOLDER / "protected" / "reference.sealed", PUBLIC_PASSPHRASE)
    assert {"model.py", "train.py", "reference.toml", "cpu/reference-4096x64.safetensors"} <= set(reference)
    assert SEALED.open(PUBLIC_PASSPHRASE).mask_seed > 0


def hub_request(folder: Path) -> PrepareRequest:
    """Return a request for a profile whose corpus and tokenizer are folders in the hub's layout."""
    from transformers import PreTrainedTokenizerFast

    dataset, tokenizer = folder / "dataset", folder / "tokenizer"
    dataset.mkdir()
    hub_dataset(dataset, TEXTS * 5)
    own = train_bpe(TEXTS, 300)
    PreTrainedTokenizerFast(tokenizer_object=own, eos_token="<end>").save_pretrained(tokenizer)
    settings = small.SETTINGS | {
        "corpora": ["hub"],
        "hub_dataset": str(dataset),
        "hub_documents": 150,
        "hub_tokenizer": str(tokenizer),
        "vocabulary": 301,
        "mask_token": 300,
        "first_weights_tokens": 2000,
    }
    profile = Profile(summary="s", needs=Needs(), limits=Limits(score_seconds=60), settings=settings)
    places = AssetFolders(public=folder / "public", protected=folder / "protected")
    return PrepareRequest(profile_name="paper", profile=profile, assets=places, passphrase=PUBLIC_PASSPHRASE)


@pytest.mark.slow
def test_the_paper_profile_prepares_from_the_hubs_layout_trains_its_starter_and_scores(
    tmp_path: Path,
) -> None:
    request = hub_request(tmp_path)
    said: list[Progress] = []
    environment.prepare(request, said.append)
    assert any(progress.stage == "training the starting weights" for progress in said)
    task = json.loads((request.assets.public / "task.json").read_text())
    assert (task["vocabulary"], task["mask_token"]) == (301, 300)
    assert request.assets.protected.stat().st_mode & 0o077 == 0
    protected = {
        part: set(np.load(request.assets.protected / f"{part}.npy").tolist())
        for part in ("scoring", "control")
    }
    assert 300 not in protected["scoring"] | protected["control"]

    root = tmp_path / "root"
    for name, source in environment.starter(request).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, root / name)
    given = small.submission(root / "model.py", tmp_path / "s", request.assets)
    given = msgspec.structs.replace(given, root=root, profile=request.profile)
    score = small.score(given)
    assert score.status is ScoreStatus.VALID, score.message
    assert score.details["loss"] == pytest.approx(math.log(301), abs=0.7)


def test_prepare_does_nothing_twice_and_repairs_what_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "environments.restricted_mlm.first_weights.train_first_weights", lambda *arguments: None
    )
    request = hub_request(tmp_path)
    environment.prepare(request, lambda progress: None)
    scoring = request.assets.protected / "scoring.npy"
    before = scoring.read_bytes()
    said: list[str] = []
    environment.prepare(request, lambda progress: said.append(progress.stage))
    assert said == ["the token files are there and whole"]
    scoring.write_bytes(before[:-10])
    environment.prepare(request, lambda progress: None)
    assert scoring.read_bytes() == before


def test_the_worker_does_not_see_the_packages_that_the_profile_hides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = []

    def keep(job: WorkerJob, report: object) -> Failed:
        jobs.append(job)
        return Failed(FailureKind.CRASHED, "kept", 0.0, "", small.HERE)

    monkeypatch.setattr("environments.restricted_mlm.capture_job.run_untrusted", keep)
    given = small.submission(STARTER / "model.py", tmp_path, small.small_assets(tmp_path / "assets"))
    profile = msgspec.structs.replace(given.profile, hidden_packages=("corpus",))
    environment.check(msgspec.structs.replace(given, profile=profile))
    assert [job.hidden_packages for job in jobs] == [("corpus",)]


@pytest.mark.slow
def test_fresh_training_keeps_the_old_weights_and_a_changed_model_is_told_to_start_fresh(
    tmp_path: Path,
) -> None:
    places = small.small_assets(tmp_path / "assets")
    tree = tmp_path / "tree"
    shutil.copytree(places.public, tree / "data")
    for source in (places.public / "task.json", STARTER / "model.py", STARTER / "train.py"):
        shutil.copyfile(source, tree / source.name)

    def train(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "train.py", "--tokens", "1024", "--device", "cpu", *options]
        return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)

    assert train("--fresh").returncode == 0
    first = (tree / "model.safetensors").read_bytes()
    again = train("--fresh", "--seed", "2")
    assert "now model-old1.safetensors" in again.stdout, again.stderr
    assert (tree / "model-old1.safetensors").read_bytes() == first
    assert (tree / "model.safetensors").read_bytes() != first

    model = (tree / "model.py").read_text()
    (tree / "model.py").write_text(model.replace("WIDTH = 32", "WIDTH = 16"))
    refused = train()
    assert refused.returncode != 0
    assert "python train.py --fresh" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_starter_scores_through_the_real_worker(tmp_path: Path) -> None:
    places = small.small_assets(tmp_path / "assets")
    given = small.submission(STARTER / "model.py", tmp_path, places)
    shutil.copyfile(places.public / "task.json", given.root / "task.json")
    (given.root / "make.py").write_text(
        "from model import *\nfrom safetensors.torch import save_file\nsave_file(Model().half().state_dict(), WEIGHTS)\n"
    )
    text = (given.root / "model.py").read_text()
    assert "get_trained_model" in text
    subprocess.run([sys.executable, "make.py"], cwd=given.root, check=True)
    score = small.score(given)
    assert score.status is ScoreStatus.VALID, (score.message, score.details.get("log"))
    assert score.details["loss"] == pytest.approx(math.log(64), abs=0.5)
    assert score.details["confinement"]["survivors"] == 0
