"""The starter, the check and the score."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import torch

from environments.contract import AssetFolders, AssetsMissing, PrepareRequest, ProfileUnavailable, ScoreStatus
from environments.fix_embedding.environment import environment, flags
from environments.kit.log_loss import Loss
from environments.sealing import PUBLIC_PASSPHRASE
from tests.environments.fix_embedding_small import Small, quiet


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
    assert "scoring loss" in score.message
    assert "train loss" in score.message
    assert "only the scoring text counts" in score.message
    assert not [word for word in ("restored", "permut", "control", "flag") if word in score.message]


def test_a_check_says_yes_or_no_and_never_a_number(small: Small, tmp_path: Path) -> None:
    small.lay_out(tmp_path / "root")
    report = small.check(tmp_path / "root", tmp_path / "s")
    assert report.accepted
    assert "loss" not in " ".join(report.notes)


def test_a_check_needs_neither_torch_nor_transformers(small: Small, tmp_path: Path) -> None:
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


def test_damage_to_our_own_files_is_our_fault_not_theirs(small: Small, tmp_path: Path) -> None:
    small.lay_out(tmp_path / "root")
    shutil.copytree(small.folders.public, tmp_path / "public")
    (tmp_path / "public" / "damaged.safetensors").write_bytes(b"torn")
    given = small.submission(tmp_path / "root", tmp_path / "s")
    folders = AssetFolders(public=tmp_path / "public", protected=small.folders.protected)
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
    assert "original's" in flags(losses(3.5, 3.5, 3.1), 0.995, 2)[0]
    assert flags(losses(3.5, 3.5, 3.1), 0.96, 2) == []


@pytest.mark.gpu
def test_on_a_gpu_two_scorings_agree_to_the_last_bit_and_with_the_cpu_nearly(
    small: Small, tmp_path: Path
) -> None:
    small.lay_out(tmp_path / "root")
    first, again = (small.score(tmp_path / "root", tmp_path / "s", device="cuda") for _ in range(2))
    assert first.raw == again.raw
    assert first.raw == pytest.approx(small.score(tmp_path / "root", tmp_path / "s").raw, abs=1e-4)
