"""Tests of optimize_llm_foundry: rows, options, the base model and the work folder, without a training run."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import torch
import yaml
from safetensors.torch import load_file

from environments import registry
from environments.contract import (
    CANARY,
    AssetFolders,
    AssetsMissing,
    PrepareRequest,
    Profile,
    SpecificationInvalid,
    Submission,
)
from environments.kit.sources import Document
from environments.optimize_llm_foundry import options as lines
from environments.optimize_llm_foundry.base_model import fetch_base_model, make_base_model
from environments.optimize_llm_foundry.environment import environment
from environments.optimize_llm_foundry.result import read_weights
from environments.optimize_llm_foundry.rows import divide, draw_rows, odd_rows, to_jsonl
from environments.optimize_llm_foundry.runs import Job, lay_out
from environments.optimize_llm_foundry.settings import KEYS as SEALED
from environments.optimize_llm_foundry.settings import Keys, Model, Rows, decode_settings
from environments.sealing import PUBLIC_PASSPHRASE

TINY = Model(width=16, layers=1, heads=2, feed_forward=24, positions=32)
SLUG = "optimize_llm_foundry"
DOCUMENTS = [Document(f"d{n}", " ".join(f"Sentence {n} {k} is here." for k in range(80))) for n in range(10)]


def profile(name: str) -> Profile:
    return registry.find(SLUG).spec.profile(name)


def quiet(_progress: object) -> None:
    """Take progress and show nothing."""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    make_base_model(tmp_path / "base", TINY)
    return tmp_path / "base"


@pytest.mark.parametrize("name", ["cpu", "gpu", "paper"])
def test_the_settings_of_every_profile_decode_and_name_a_starter(name: str) -> None:
    settings = decode_settings(profile(name).settings)
    files = lines.starter_files(settings)
    assert {
        "finetune.sh",
        "finetune.yaml",
        "tokenise.py",
        "train.py",
        "convert.py",
        "options.py",
    } <= files.keys()
    assert settings.bound_share < settings.floor_share


def test_settings_want_one_base_model() -> None:
    known = profile("cpu").settings
    with pytest.raises(SpecificationInvalid, match="either"):
        decode_settings({**known, "hub_model": "someone/something"})


def test_the_brief_carries_the_canary_and_every_option_that_matters() -> None:
    brief = (registry.find(SLUG).folder / "brief.md").read_text()
    assert CANARY in brief
    assert "do not train on this" in brief.lower()


def test_the_sealed_keys_open_and_mix_with_the_seed_of_a_call() -> None:
    keys = SEALED.open(PUBLIC_PASSPHRASE)
    assert keys.seed_for(1, "rows") != keys.seed_for(2, "rows") != keys.seed_for(2, "order")
    assert Keys(documents_seed=1, rows_seed=2).seed_for(1, "rows") != keys.seed_for(1, "rows")


def test_examples_and_scored_rows_come_from_different_documents() -> None:
    examples, scored = divide(DOCUMENTS, seed=3)
    assert not {d.name for d in examples} & {d.name for d in scored}
    assert len(examples) + len(scored) == len(DOCUMENTS)


def test_rows_are_the_same_for_a_seed_and_others_for_another() -> None:
    rows = Rows(count=30, shortest=40, longest=400)
    assert draw_rows(DOCUMENTS, rows, 1) == draw_rows(DOCUMENTS, rows, 1)
    assert draw_rows(DOCUMENTS, rows, 1) != draw_rows(DOCUMENTS, rows, 2)
    lengths = [len(row["prompt"]) + len(row["response"]) for row in draw_rows(DOCUMENTS, rows, 1)]
    assert max(lengths) > 3 * min(lengths), "rows of one length would hide what padding costs"


def test_every_row_is_one_line_of_json_whatever_it_holds() -> None:
    rows = odd_rows(5)
    content = to_jsonl(rows).decode()
    assert [json.loads(line) for line in content.split("\n")[:-1]] == rows


def test_other_options_differ_in_every_line_that_means_something() -> None:
    settings = decode_settings(profile("cpu").settings)
    usual = lines.whole_run(settings, 5)
    free = {
        "output",
        "max_steps",
        "shuffle",
        "precision",
        "activation_checkpointing",
        "threads",
        "rows_per_shard",
    }
    for seed in range(20):
        other = lines.quick_run(settings, seed)
        assert other.keys() == usual.keys()
        assert {key for key in usual if usual[key] == other[key]} <= free
        assert yaml.safe_load(lines.to_yaml(other)) == other


def test_the_base_model_is_the_same_on_every_run(tmp_path: Path, base: Path) -> None:
    make_base_model(tmp_path / "again", TINY)
    for file in base.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_transformers_loads_the_base_model_and_its_tokenizer(base: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, found = AutoModelForCausalLM.from_pretrained(base, output_loading_info=True)
    assert not found["missing_keys"]
    assert model.config.tie_word_embeddings
    tokenizer = AutoTokenizer.from_pretrained(base)
    assert tokenizer.decode(tokenizer("Fellow citizens")["input_ids"]) == "Fellow citizens"


def test_a_model_in_the_hubs_layout_becomes_the_base_model(tmp_path: Path, base: Path) -> None:
    (base / "extra.bin").write_bytes(b"not wanted")
    fetch_base_model(tmp_path / "fetched", str(base), "main", quiet)
    assert sorted(p.name for p in (tmp_path / "fetched").iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip


def test_a_hub_model_stored_as_a_pickle_is_rewritten_as_safetensors(tmp_path: Path, base: Path) -> None:
    weights = load_file(base / "model.safetensors")
    (base / "model.safetensors").unlink()
    torch.save(weights, base / "pytorch_model.bin")
    fetch_base_model(tmp_path / "fetched", str(base), "main", quiet)
    found = read_weights(tmp_path / "fetched")
    assert all(found[name].equal(weight) for name, weight in weights.items())


def test_a_hub_that_cannot_be_reached_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(AssetsMissing, match="nobody/nothing"):
        fetch_base_model(tmp_path / "fetched", "nobody/nothing", "main", quiet)


def prepared(tmp_path: Path, name: str, **changes: object) -> PrepareRequest:
    whole = profile(name)
    cut = msgspec.structs.replace(whole, settings={**whole.settings, **changes})
    folders = AssetFolders(public=tmp_path / "public", protected=tmp_path / "protected")
    request = PrepareRequest(profile_name=name, profile=cut, assets=folders, passphrase=PUBLIC_PASSPHRASE)
    environment.prepare(request, quiet)
    return request


@pytest.mark.parametrize("name", ["cpu", "gpu"])
def test_the_work_tree_holds_script_model_and_example_rows(tmp_path: Path, name: str) -> None:
    files = environment.starter(prepared(tmp_path, name, model=msgspec.to_builtins(TINY)))
    assert {"finetune.sh", "base_model/model.safetensors", "data/train.jsonl"} <= files.keys()
    assert not any("protected" in str(path) for path in files.values())


def test_the_paper_profile_takes_its_model_from_the_hub(tmp_path: Path, base: Path) -> None:
    files = environment.starter(prepared(tmp_path / "assets", "paper", hub_model=str(base)))
    assert files["base_model/model.safetensors"].read_bytes() == (base / "model.safetensors").read_bytes()


def test_a_submission_without_the_script_or_with_a_path_too_long_to_copy_is_told_so(tmp_path: Path) -> None:
    request = prepared(tmp_path, "cpu", model=msgspec.to_builtins(TINY))
    (tmp_path / "root").mkdir()
    submission = Submission(
        root=tmp_path / "root", profile_name="cpu", profile=request.profile, assets=request.assets,
        scratch=tmp_path / "scratch", seed=1,
    )  # fmt: skip
    assert "finetune.sh" in environment.check(submission).problems[0].what
    assert environment.score(submission, quiet).status == "invalid"
    (submission.root / "finetune.sh").touch()
    (submission.root / "/".join(["d"] * 450)).mkdir(parents=True)
    score = environment.score(submission, quiet)
    assert score.status == "invalid"
    assert "more than 800 bytes" in score.message


def test_a_work_folder_is_a_copy_without_old_outputs_and_with_our_inputs(tmp_path: Path, base: Path) -> None:
    source = tmp_path / "source"
    for name in (
        "trained_model/old.safetensors",
        "work/shards/x",
        "data/train.jsonl",
        "cache/kernel.so",
        "finetune.sh",
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("theirs")
    (source / "finetune.yaml").symlink_to("/etc/passwd")
    (source / "models").symlink_to("/tmp")
    job = Job({"data": "data/train.jsonl", "model": "models/5", "seed": 3}, b"ours\n", base)
    lay_out(source, tmp_path / "work", job)
    work = tmp_path / "work"
    assert not (work / "trained_model").exists()
    assert not (work / "work").exists()
    assert (work / "cache/kernel.so").read_text() == "theirs"
    assert (work / "data/train.jsonl").read_bytes() == b"ours\n"
    assert not (work / "finetune.yaml").is_symlink()
    assert yaml.safe_load((work / "finetune.yaml").read_text())["seed"] == 3
    assert (work / "models/5/config.json").is_file()
    assert not (work / "models").is_symlink()
