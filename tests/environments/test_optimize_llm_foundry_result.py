"""Tests of what optimize_llm_foundry takes as the result of a run, and of what it refuses by name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from environments.optimize_llm_foundry.base_model import make_base_model
from environments.optimize_llm_foundry.result import (
    ResultRefused,
    check_config,
    check_weights,
    files_below,
    read_weights,
    take,
)
from environments.optimize_llm_foundry.settings import Model


@pytest.fixture
def base(tmp_path: Path) -> Path:
    make_base_model(tmp_path / "base", Model(width=16, layers=1, heads=2, feed_forward=24, positions=32))
    return tmp_path / "base"


def test_taking_a_result_copies_it_to_where_only_we_can_look(tmp_path: Path, base: Path) -> None:
    take(base, tmp_path / "result" / "kept", 10**8)
    kept = {path.name: path.read_bytes() for path in (tmp_path / "result" / "kept").iterdir()}
    assert kept == {path.name: path.read_bytes() for path in base.iterdir()}
    assert (tmp_path / "result").stat().st_mode & 0o077 == 0


def spoil_with_link(base: Path) -> None:
    (base / "model.safetensors").rename(base.parent / "elsewhere")
    (base / "model.safetensors").symlink_to(base.parent / "elsewhere")


def spoil_with_second_name(base: Path) -> None:
    os.link(base / "model.safetensors", base.parent / "elsewhere")


def spoil_with_folder(base: Path) -> None:
    (base / "more.json").mkdir()


def spoil_with_pickle(base: Path) -> None:
    (base / "pytorch_model.bin").write_bytes(b"x")


def spoil_with_bytes_that_are_no_text(base: Path) -> None:
    (base / os.fsdecode(b"\xff.json")).touch()


def spoil_with_line_break(base: Path) -> None:
    (base / "a\n\x1b[2J.bin").touch()


def spoil_by_size(base: Path) -> None:
    with (base / "model.safetensors").open("ab") as file:
        file.truncate(10**9)


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_with_link, spoil_with_second_name, spoil_with_folder, spoil_with_pickle, spoil_with_bytes_that_are_no_text,
        spoil_with_line_break, spoil_by_size,
    ],
)  # fmt: skip
def test_a_result_of_other_than_plain_files_of_its_own_is_refused(
    tmp_path: Path, base: Path, spoil: object
) -> None:
    spoil(base)  # type: ignore[operator]
    with pytest.raises(ResultRefused) as refused:
        take(base, tmp_path / "kept", 10**8)
    assert str(refused.value).isprintable()


def test_files_that_were_there_before_the_run_are_no_result(tmp_path: Path, base: Path) -> None:
    known = files_below(base)
    base.rename(tmp_path / "trained_model")
    with pytest.raises(ResultRefused, match="another name"):
        take(tmp_path / "trained_model", tmp_path / "kept", 10**8, known)


def test_a_new_file_that_got_the_inode_of_a_deleted_one_is_a_result(tmp_path: Path, base: Path) -> None:
    recycled = frozenset((device, inode, size, when - 1) for device, inode, size, when in files_below(base))
    take(base, tmp_path / "kept", 10**8, recycled)


def test_a_tied_output_matrix_may_be_there_if_it_is_the_same(base: Path) -> None:
    wanted = read_weights(base)
    tied = {"lm_head.weight": "model.embed_tokens.weight"}
    with_head = {**wanted, "lm_head.weight": wanted["model.embed_tokens.weight"].clone()}
    assert check_weights(with_head, wanted, tied).keys() == wanted.keys()
    for other in (with_head["lm_head.weight"] + 1, with_head["lm_head.weight"].to(torch.float8_e4m3fn)):
        with pytest.raises(ResultRefused, match="lm_head"):
            check_weights({**wanted, "lm_head.weight": other}, wanted, tied)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w: w.half(), "float16"),
        (lambda w: w[:-1], "expected"),
        (lambda w: w * float("nan"), "NaN"),
        (lambda w: None, "lack"),
    ],
    ids=["dtype", "shape", "not finite", "missing"],
)
def test_weights_of_another_kind_are_refused_by_name(base: Path, change: object, says: str) -> None:
    wanted = read_weights(base)
    changed = change(wanted["model.norm.weight"])  # type: ignore[operator]
    found = {**wanted, "model.norm.weight": changed}
    if changed is None:
        del found["model.norm.weight"]
    with pytest.raises(ResultRefused, match=says):
        check_weights(found, wanted, {})


def test_a_config_may_spell_out_defaults_but_change_nothing(tmp_path: Path, base: Path) -> None:
    from transformers import AutoConfig

    AutoConfig.from_pretrained(base).save_pretrained(tmp_path / "saved")
    check_config(tmp_path / "saved", base)
    config = json.loads((base / "config.json").read_text())
    for key, value in {
        "rms_norm_eps": 1.0,
        "auto_map": {"AutoModel": "evil.Evil"},
        "quantization_config": {},
    }.items():
        (tmp_path / "saved" / "config.json").write_text(json.dumps({**config, key: value}))
        with pytest.raises(ResultRefused, match=key):
            check_config(tmp_path / "saved", base)


def test_weights_in_several_files_are_one_model_and_damage_is_named(base: Path) -> None:
    whole = load_file(base / "model.safetensors")
    names = sorted(whole)
    save_file({n: whole[n] for n in names[:3]}, base / "model.safetensors")
    save_file({n: whole[n] for n in names[3:]}, base / "model-2.safetensors")
    assert read_weights(base).keys() == whole.keys()
    (base / "model-2.safetensors").write_bytes(b"damaged")
    with pytest.raises(ResultRefused, match="model-2"):
        read_weights(base)


@pytest.mark.parametrize("key", ["\ud800", "\x1b[2J", "k" * 1000])
def test_what_is_said_about_a_config_can_be_printed_and_written_down(
    tmp_path: Path, base: Path, key: str
) -> None:
    config = json.loads((base / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, key: 1}))
    with pytest.raises(ResultRefused) as refused:
        check_config(tmp_path, base)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200


def test_a_giant_config_and_a_giant_list_of_tensors_are_not_decoded(tmp_path: Path, base: Path) -> None:
    (tmp_path / "config.json").write_text('{"a": [' + "[]," * 400_000 + "[]]}")
    with pytest.raises(ResultRefused, match="a few thousand"):
        check_config(tmp_path, base)
    tensors = {f"{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(80_000)}
    header = json.dumps(tensors).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ResultRefused, match="describes its tensors"):
        read_weights(tmp_path)
