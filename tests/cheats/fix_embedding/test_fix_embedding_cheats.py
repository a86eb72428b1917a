"""Every trick known against a checkpoint's scorer gets the verdict its first line promises; honest submissions pass."""

from __future__ import annotations

import importlib.util
import math
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from environments.contract import ScoreReport
from environments.fix_embedding.damage import undo
from environments.fix_embedding.evaluate import mean_loss
from environments.fix_embedding.settings import Keys
from tests.cheats.fix_embedding.making import Material
from tests.environments.fix_embedding_small import Small

SUBMISSIONS = sorted((Path(__file__).parent / "submissions").glob("*.py"))
MADE_HERE = {"original_weights"}

pytestmark = pytest.mark.cheats


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("home"))


def promised(cheat: Path) -> tuple[str, ...]:
    found = re.match(r'""".+ Seen: .+ Expected: ([a-z -]+)\."""$', cheat.read_text().splitlines()[0])
    assert found, (
        f"{cheat} does not say in its first line what it tries, where it was seen and what is expected"
    )
    return tuple(found[1].split(" or "))


def material(small: Small, root: Path) -> Material:
    root.mkdir()
    return Material(root, small.damaged, small.folders.public / "helper.safetensors")


def made(small: Small, cheat: Path, root: Path) -> Path:
    spec = importlib.util.spec_from_file_location(f"fix_embedding_cheat_{cheat.stem}", cheat)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.make(material(small, root))
    return root


@pytest.mark.parametrize("cheat", SUBMISSIONS, ids=lambda path: path.stem)
def test_a_submission_says_what_it_tries_where_it_was_seen_and_what_it_gets(cheat: Path) -> None:
    assert set(promised(cheat)) <= {"valid", "invalid"}


@pytest.mark.parametrize(
    "cheat", [c for c in SUBMISSIONS if c.stem not in MADE_HERE], ids=lambda path: path.stem
)
def test_a_submission_gets_the_verdict_it_deserves(
    cheat: Path, small: Small, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = made(small, cheat, tmp_path / "root")
    score = small.score(root, tmp_path / "scratch")
    accepted = small.check(root, tmp_path / "scratch").accepted
    assert score.status.value in promised(cheat), score.message
    assert accepted or score.status.value == "invalid", "what check refuses must not be scored"
    assert "GOT" not in "".join(capfd.readouterr())
    assert msgspec.json.encode(score), "a report that cannot be written down is taken for a fault of ours"
    assert score.message.isprintable()
    if score.status.value == "invalid":
        assert 30 < len(score.message) < 1000, "an invalid submission is told what to do"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("float32", "'F32', not F16; save `tensor.half()`"),
        ("bfloat16", "'BF16', not F16; save `tensor.half()`"),
        ("untied_head", "the output matrix is the embedding"),
        ("torch_archive", "is a pickle"),
        ("long_metadata", "leave long metadata out"),
        ("huge_file", "header cannot be read"),
    ],
)
def test_an_honest_mistake_is_named_however_large_the_file(
    name: str, says: str, small: Small, tmp_path: Path
) -> None:
    cheat = next(cheat for cheat in SUBMISSIONS if cheat.stem == name)
    score = small.score(made(small, cheat, tmp_path / "root"), tmp_path / "scratch")
    assert says in score.message


@pytest.mark.parametrize("name", ["config_in_metadata", "honest_other_order", "honest_extra_files"])
def test_what_is_no_tensor_changes_no_loss(name: str, small: Small, tmp_path: Path) -> None:
    by_name = {cheat.stem: cheat for cheat in SUBMISSIONS}
    plain = small.score(made(small, by_name["honest_untouched"], tmp_path / "plain"), tmp_path / "scratch")
    other = small.score(made(small, by_name[name], tmp_path / "other"), tmp_path / "scratch")
    assert plain.raw == other.raw


def healthy_score(small: Small, root: Path, scratch: Path, nudged: int = 0) -> ScoreReport:
    """Score the healthy weights, with a bit turned in `nudged` rows and one other tensor."""
    here = material(small, root)
    keys = msgspec.json.decode((small.folders.protected / "keys.json").read_bytes(), type=Keys)
    tensors = here.tensors()
    tensors["embedding.weight"] = undo(tensors["embedding.weight"], keys.permutation_seed)
    if nudged:
        tensors["embedding.weight"][:nudged, 0].view(torch.int16).bitwise_xor_(1)
        tensors["norm.bias"][0].view(torch.int16).bitwise_xor_(1)
    here.save(tensors)
    return small.score(root, scratch)


def test_the_original_weights_are_flagged_though_a_few_numbers_were_changed(
    small: Small, tmp_path: Path
) -> None:
    score = healthy_score(small, tmp_path / "root", tmp_path / "scratch", nudged=20)
    assert 0.99 < score.details["rows_restored"] < 1.0
    assert any("bit for bit (1 other tensors changed)" in flag for flag in score.details["flags"])


def test_no_number_too_small_for_float32_slows_the_scoring_down() -> None:
    class Small(torch.nn.Module):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            product = torch.full((len(ids), ids.shape[1], 8), 1e-30) * 1e-10
            assert not product.any()
            return product

    rows = torch.zeros(4, 9, dtype=torch.int64)
    assert mean_loss(Small(), rows, 2, workers=2).mean == pytest.approx(math.log(8))
    assert (torch.full((1,), 1e-30) * 1e-10).item() > 0, "only the scoring's own threads round so"


def test_the_original_weights_are_scored_and_flagged(small: Small, tmp_path: Path) -> None:
    score = healthy_score(small, tmp_path / "root", tmp_path / "scratch")
    assert score.status.value == "valid"
    assert score.details["rows_restored"] == 1.0
    assert any("100.0% of the rows are the original's" in flag for flag in score.details["flags"])
    assert "original" not in score.message


def test_the_reference_is_not_taken_for_the_original_weights(small: Small, tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    (root / "model.safetensors").write_bytes(small.reference())
    score = small.score(root, tmp_path / "scratch")
    assert 0.9 < score.details["rows_restored"] < 1.0
    assert not score.details["flags"]


def test_a_file_replaced_during_scoring_is_scored_as_it_was_first_read(small: Small, tmp_path: Path) -> None:
    root = tmp_path / "root"
    target = small.lay_out(root)
    before = small.score(root, tmp_path / "scratch").raw
    better = tmp_path / "better.safetensors"
    better.write_bytes(small.reference())
    stages: list[str] = []

    def swap(progress: Any) -> None:
        stages.append(progress.stage)
        if progress.stage == "evaluating" and better.exists():
            better.replace(target)

    after = small.environment.score(small.submission(root, tmp_path / "scratch"), swap)
    assert "evaluating" in stages
    assert not better.exists()
    assert after.raw == before


def test_a_file_that_is_rewritten_all_the_time_is_whole_or_refused(small: Small, tmp_path: Path) -> None:
    root = tmp_path / "root"
    target = small.lay_out(root)
    whole, stop = small.damaged.read_bytes(), threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            target.write_bytes(whole[: len(whole) // 3])
            target.write_bytes(whole)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        reports = [small.check(root, tmp_path / "scratch") for _ in range(20)]
    finally:
        stop.set()
        writer.join()
    for report in reports:
        assert report.accepted or report.problems[0].hint
    shutil.rmtree(root)
