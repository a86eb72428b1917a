"""Checkpoints of another type, starters with gaps and losses at the constant, as any environment meets them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from environments.contract import (
    AssetFolders,
    AssetsMissing,
    Limits,
    Needs,
    PrepareRequest,
    Profile,
    ScoreStatus,
)
from environments.kit.checkpoint import CheckpointRefused, Wanted, read_arrays
from environments.kit.log_loss import Loss, bits_per_byte, log_loss_report
from environments.kit.starter import all_present

FULL = Wanted({"w": (2, 3)}, model="the student", dtype="F32")


def test_a_checkpoint_of_single_precision_is_read_and_one_of_half_refused(tmp_path: Path) -> None:
    save_file({"w": np.arange(6, dtype=np.float32).reshape(2, 3)}, tmp_path / "full")
    save_file({"w": np.zeros((2, 3), dtype=np.float16)}, tmp_path / "half")
    assert read_arrays(tmp_path, "full", FULL)["w"][1, 2] == 5.0
    with pytest.raises(CheckpointRefused, match=r"is 'F16', not F32; save `tensor.float\(\)`"):
        read_arrays(tmp_path, "half", FULL)


def test_a_starter_with_gaps_names_them_and_what_makes_them(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    profile = Profile("small", Needs(), Limits(score_seconds=1.0))
    request = PrepareRequest("gpu", profile, AssetFolders(tmp_path, tmp_path), "")
    files = {"a.py": tmp_path / "there", "b.py": tmp_path / "away"}
    with pytest.raises(
        AssetsMissing, match="away missing; run `rebench-workbench env prepare mine --profile gpu`"
    ):
        all_present(files, "mine", request)
    assert all_present({"a.py": tmp_path / "there"}, "mine", request) == {"a.py": tmp_path / "there"}


def test_a_loss_is_scored_above_the_constant_and_invalid_at_it() -> None:
    report = log_loss_report(Loss(2.5, 0.1, 100, 1.0), 1.5, "loss 2.5", {"tokens": 100})
    assert (report.raw, report.message) == (0.0, "loss 2.5; score ln(loss - 1.5) = 0.0000")
    at_it = log_loss_report(Loss(1.5, 0.1, 100, 1.0), 1.5, "loss 1.5", {}, why_too_good=", too good")
    assert at_it.status is ScoreStatus.INVALID
    assert at_it.message.endswith("the constant 1.5 of the score, too good")
    assert bits_per_byte(np.log(2), 4.0) == 0.25
