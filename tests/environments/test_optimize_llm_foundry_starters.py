"""Tests of the untouched scripts: one, two and no card compute the same, also on a model from the hub's layout."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import yaml

from environments import registry
from environments.optimize_llm_foundry import options as lines
from environments.optimize_llm_foundry.base_model import make_base_model
from environments.optimize_llm_foundry.comparison import distance
from environments.optimize_llm_foundry.result import check_config, read_weights
from environments.optimize_llm_foundry.rows import odd_rows, to_jsonl
from environments.optimize_llm_foundry.runs import Job, Ran, Sandbox
from environments.optimize_llm_foundry.runs import run as sandboxed_run
from environments.optimize_llm_foundry.settings import Model, decode_settings
from environments.sealing import PUBLIC_PASSPHRASE, unseal
from environments.worker import Level, confine

if TYPE_CHECKING:
    from transformers import PretrainedConfig

REFERENCE = registry.find("optimize_llm_foundry").folder / "protected" / "reference.sealed"

TINY = Model(width=16, layers=2, heads=2, feed_forward=24, positions=64)
SMALL_RUN = {
    "max_length": 24, "batch_size": 3, "warmup_steps": 1, "precision": "fp32", "microbatch_size": 2, "save_interval": 2,
    "loss_on": "all", "learning_rate": 0.001, "threads": 1,
}  # fmt: skip


def lay_out(root: Path, base: Path, *folders: str, **changes: object) -> Path:
    """Write an untouched script with a few odd rows; later folders lie over earlier ones."""
    for folder in ("common", *folders):
        shutil.copytree(lines.STARTER / folder, root, dirs_exist_ok=True)
    shutil.copytree(base, root / "base_model")
    (root / "data").mkdir()
    (root / "data/train.jsonl").write_bytes(to_jsonl(odd_rows(3)))
    options = yaml.safe_load((root / "finetune.yaml").read_text())
    (root / "finetune.yaml").write_bytes(lines.to_yaml({**options, **SMALL_RUN, **changes}))
    return root


def run(root: Path, *commands: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command in commands or ("bash finetune.sh",):
        done = subprocess.run(
            command, check=False, cwd=root, shell=True, capture_output=True, text=True,
            env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def apart(first: Path, second: Path, base: Path) -> float:
    """Return the distance of two results as a share of the second's way from the base."""
    ours, theirs = read_weights(first / "trained_model"), read_weights(second / "trained_model")
    start = {name: weight for name, weight in read_weights(base).items() if name in theirs}
    moved = distance(theirs, start).frobenius_sum
    assert moved > 0
    return distance(ours, theirs).frobenius_sum / moved


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_one_process_two_processes_and_the_plain_script_compute_the_same(tmp_path: Path) -> None:
    make_base_model(tmp_path / "base", TINY)
    plain = lay_out(tmp_path / "plain", tmp_path / "base", "cpu")
    run(plain)
    one = lay_out(tmp_path / "one", tmp_path / "base", "gpu")
    run(one)
    assert apart(one, plain, tmp_path / "base") < 1e-4
    two = lay_out(tmp_path / "two", tmp_path / "base", "gpu")
    run(
        two,
        "python tokenise.py finetune.yaml",
        "python -m torch.distributed.run --standalone --nproc-per-node 2 train.py finetune.yaml",
        "python convert.py finetune.yaml",
    )
    assert apart(two, plain, tmp_path / "base") < 1e-4


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_model_from_the_hub_with_its_own_head_is_trained_in_bf16_and_keeps_its_dtype(
    tmp_path: Path,
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

    make_base_model(tmp_path / "words", TINY)
    config = LlamaConfig(
        vocab_size=4096, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=64, tie_word_embeddings=False, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    base = tmp_path / "base"
    AutoModelForCausalLM.from_config(config).to(torch.bfloat16).save_pretrained(base)
    AutoTokenizer.from_pretrained(tmp_path / "words").save_pretrained(base)
    root = lay_out(tmp_path / "root", base, "gpu", precision="bf16")
    run(root)
    found = read_weights(root / "trained_model")
    assert "lm_head.weight" in found
    assert {weight.dtype for weight in found.values()} == {torch.bfloat16}


def hub_model(folder: Path, words: Path, config: PretrainedConfig) -> Path:
    """Write a model of any architecture as the hub lays it out: bf16, no tie between input and output."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(5)
    AutoModelForCausalLM.from_config(config).to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(words).save_pretrained(folder)
    return folder


def architectures() -> dict[str, PretrainedConfig]:
    """Return small kinds of what the hub holds: the paper's (a Llama with stretched positions), and another's."""
    from transformers import GPTNeoXConfig, LlamaConfig

    sizes = {
        "vocab_size": 4096, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 0,
        "tie_word_embeddings": False,
    }  # fmt: skip
    stretched = {"rope_type": "linear", "factor": 4.0, "rope_theta": 100000.0}
    return {
        "llama": LlamaConfig(**sizes, num_key_value_heads=2, rope_parameters=stretched),
        "gpt_neox": GPTNeoXConfig(**sizes, hidden_dropout=0.0, attention_dropout=0.0),
    }


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["llama", "gpt_neox"])
def test_the_sealed_reference_and_two_processes_of_the_starter_agree_on_a_model_of_the_hub(
    tmp_path: Path, kind: str
) -> None:
    make_base_model(tmp_path / "words", TINY)
    base = hub_model(tmp_path / "base", tmp_path / "words", architectures()[kind])
    started = lay_out(tmp_path / "two", base, "gpu", learning_rate=0.01)
    (started / "finetune.sh").write_text((started / "finetune.sh").read_text().replace('"$cards"', "2"))
    run(started)
    for processes in (1, 2):
        root = lay_out(tmp_path / f"reference-{processes}", base, "gpu", learning_rate=0.01)
        unseal(REFERENCE, root, PUBLIC_PASSPHRASE)
        run(root, f"FAST_PROCESSES={processes} bash finetune.sh")
        assert {w.dtype for w in read_weights(root / "trained_model").values()} == {torch.bfloat16}
        # What is stored is rounded to bf16, which hides most differences and makes a few large.
        assert apart(root, started, base) < 1e-3
        check_config(root / "trained_model", base)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_sealed_reference_trains_like_the_starter_on_one_process_and_two(tmp_path: Path) -> None:
    make_base_model(tmp_path / "base", TINY)
    started = lay_out(tmp_path / "started", tmp_path / "base", "cpu")
    run(started)
    for processes in (1, 2):
        root = lay_out(tmp_path / f"reference-{processes}", tmp_path / "base", "cpu")
        unseal(REFERENCE, root, PUBLIC_PASSPHRASE)
        run(root, f"FAST_PROCESSES={processes} bash finetune.sh")
        assert apart(root, started, tmp_path / "base") < 1e-4


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    confine.best_level() not in (Level.SANDBOX, Level.SANDBOX_ACCOUNT), reason="needs bubblewrap"
)
def test_several_processes_find_each_other_in_the_sandbox_as_cards_would(tmp_path: Path) -> None:
    make_base_model(tmp_path / "base", TINY)
    whole = registry.find("optimize_llm_foundry").spec.profile("gpu")
    settings = decode_settings(whole.settings)
    script = tmp_path / "script"
    script.mkdir()
    for name, source in lines.starter_files(settings).items():
        shutil.copyfile(source, script / name)
    (script / "finetune.sh").write_text((script / "finetune.sh").read_text().replace('"$cards"', "2"))
    options = {**lines.starter_options(settings), **SMALL_RUN}
    (tmp_path / "run").mkdir()
    ran = sandboxed_run(
        script, tmp_path / "run", Job(options, to_jsonl(odd_rows(3)), tmp_path / "base"),
        Sandbox(whole.limits, settings, ()), 300.0, lambda _progress: None,
    )  # fmt: skip
    assert isinstance(ran, Ran), ran
    assert ran.confinement.network == "none"


def module(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import one file of a script's folder."""
    monkeypatch.syspath_prepend(str(root))
    monkeypatch.delitem(sys.modules, "options", raising=False)
    spec = importlib.util.spec_from_file_location(f"foundry_{name}", root / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    monkeypatch.delitem(sys.modules, "options", raising=False)
    return found


def test_the_options_become_llm_foundrys_own_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_base_model(tmp_path / "base", TINY)
    root = lay_out(tmp_path / "root", tmp_path / "base", "gpu", "foundry", schedule="constant", clip_norm=0.0)
    plan = module(root, "plan", monkeypatch)
    monkeypatch.chdir(root)
    found = plan.plan(plan.read_options("finetune.yaml"))
    assert found["scheduler"] == {"name": "constant_with_warmup", "t_warmup": "1ba"}
    assert found["algorithms"] == {}
    assert found["model"]["pretrained_model_name_or_path"] == str(root / "base_model")
    assert found["optimizer"]["weight_decay"] == pytest.approx(0.1 * found["optimizer"]["lr"])
    assert (found["global_train_batch_size"], found["max_seq_len"], found["precision"]) == (3, 24, "fp32")


def test_llm_foundry_gets_the_rows_it_accepts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_base_model(tmp_path / "base", TINY)
    root = lay_out(tmp_path / "root", tmp_path / "base", "gpu", "foundry")
    monkeypatch.chdir(root)
    module(root, "rows", monkeypatch).main("finetune.yaml")
    assert len((root / "work/rows/train.jsonl").read_text().splitlines()) == 5


def test_a_composer_checkpoint_is_read_whatever_wraps_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_base_model(tmp_path / "base", TINY)
    root = lay_out(tmp_path / "root", tmp_path / "base", "gpu", "foundry")
    convert = module(root, "convert", monkeypatch)
    wanted = {"model.norm.weight": torch.ones(2), "lm_head.weight": torch.zeros(3)}
    state = {f"model.{name}": weight for name, weight in wanted.items()}
    torch.save(
        {"state": {"model": {**state, "model._orig_mod.extra": torch.ones(1)}}}, tmp_path / "latest.pt"
    )
    found = convert.weights_of(tmp_path / "latest.pt", wanted)
    assert all(found[name].equal(weight) for name, weight in wanted.items())
    with pytest.raises(SystemExit, match="lacks"):
        convert.weights_of(tmp_path / "latest.pt", {**wanted, "absent": torch.ones(1)})
