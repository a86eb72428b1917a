"""restricted_mlm's device: whose fault a failure is, look-ups that must not poison a card, and scores that repeat on one."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
import torch

from environments.contract import AssetFolders, ScoreStatus
from environments.restricted_mlm import device
from environments.restricted_mlm.device import DeviceFailed, is_device_failure, judge
from environments.restricted_mlm.graph import FORMAT, Graph, Node, Ref
from environments.restricted_mlm.interpret import NodeFailed, run_graph
from environments.restricted_mlm.operations import OPERATIONS
from tests.cheats.restricted_mlm import small

HONEST = Path(small.__file__).parent / "submissions" / "honest"
CARD = torch.device("cuda")
ASSERT = "CUDA error: device-side assert triggered"
"""As PyTorch says it when a kernel has broken the context."""


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> AssetFolders:
    return small.small_assets(tmp_path_factory.mktemp("assets"))


def relu_raises(error: BaseException, patch: pytest.MonkeyPatch) -> None:
    """Let ReLU fail once it is given numbers; on shapes alone it goes on working."""

    def fail(self: torch.Tensor) -> torch.Tensor:
        if self.is_meta:
            return self.relu()
        raise error

    name = "aten.relu.default"
    patch.setitem(OPERATIONS, name, replace(OPERATIONS[name], run=fail))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 bytes"), "ran out of memory"),
        (RuntimeError(ASSERT), "the device failed"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling cublasSgemm"), "the device failed"),
    ],
)  # fmt: skip
def test_a_device_that_fails_is_never_the_participants_fault(
    error: Exception, words: str, assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.without_worker(monkeypatch)
    relu_raises(error, monkeypatch)
    score = small.score(small.submission(HONEST / "relu_attention.py", tmp_path, assets))
    assert score.status is ScoreStatus.INFRASTRUCTURE
    assert words in score.message
    assert "does not count against you" in score.message
    assert score.details["at"].startswith("model.py:")


@pytest.mark.parametrize(
    "text",
    ["mat1 and mat2 shapes cannot be multiplied (8x4 and 8x4)", '"addmm_cuda" not implemented for \'Long\'',
     "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling cublasGemmEx"],
)  # fmt: skip
def test_an_operation_that_refuses_its_inputs_is_the_submissions_fault(
    text: str, assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.without_worker(monkeypatch)
    relu_raises(RuntimeError(text), monkeypatch)
    score = small.score(small.submission(HONEST / "relu_attention.py", tmp_path, assets))
    assert score.status is ScoreStatus.INVALID
    assert score.message.startswith("model.py:")


def card_of(total: float, foreign: float) -> Callable[[torch.device], tuple[float, float]]:
    return lambda card: (total, foreign)


def no_room(card: torch.device) -> NoReturn:
    raise RuntimeError("CUDA error: out of memory")


@pytest.mark.parametrize(
    ("card", "status", "words"),
    [
        (card_of(80.0, 60.0), ScoreStatus.INFRASTRUCTURE, "other programs hold 60.0 GB of the card's 80.0 GB"),
        (card_of(16.0, 0.5), ScoreStatus.OUT_OF_MEMORY, "more than the card's 16.0 GB for a batch of 64 rows at model.py:4"),
        (no_room, ScoreStatus.INFRASTRUCTURE, "nvidia-smi"),
    ],
)  # fmt: skip
def test_a_full_card_is_held_against_the_submission_only_if_nobody_else_filled_it(
    card: Callable[[torch.device], tuple[float, float]],
    status: ScoreStatus,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device, "_card_gb", card)
    full = DeviceFailed(
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), "model.py:4"
    )
    verdict = judge(full, CARD, 64)
    assert verdict.status is status
    assert words in verdict.message


LOOKUPS = {
    "embedding": Node("y", "aten.embedding.default", [Ref("w"), Ref("i")]),
    "gather": Node("y", "aten.gather.default", [Ref("w"), 0, Ref("i2")]),
    "index_select": Node("y", "aten.index_select.default", [Ref("w"), 0, Ref("i")]),
    "index": Node("y", "aten.index.Tensor", [Ref("w"), [Ref("i")]]),
}


def look_up(name: str, wrong: int, place: str) -> None:
    index = torch.tensor([0, wrong], device=place)
    weights = {"w": torch.zeros(4, 3, device=place), "i": index, "i2": index[:, None]}
    node = replace_where(LOOKUPS[name])
    run_graph(
        Graph(FORMAT, {key: key for key in weights}, [node], "y"), weights, torch.zeros(1, 1, device=place)
    )


def replace_where(node: Node) -> Node:
    return Node(node.name, node.op, node.arguments, node.keywords, "model.py:7")


@pytest.mark.parametrize("place", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", LOOKUPS)
def test_a_look_up_outside_its_table_is_refused_with_its_line_before_it_is_made(
    name: str, place: str
) -> None:
    for wrong in (4, -1 if name != "index" else -5, 2**40):
        with pytest.raises(NodeFailed, match=r"outside 0\.\.3") as refused:
            look_up(name, wrong, place)
        assert refused.value.node.where == "model.py:7"
    look_up(name, 3, place)
    assert float(torch.ones(2, device=place).sum()) == 2.0


def test_only_the_devices_own_words_make_a_device_failure() -> None:
    assert is_device_failure(torch.OutOfMemoryError("CUDA out of memory"))
    assert is_device_failure(MemoryError())
    assert not is_device_failure(ValueError(ASSERT))
    assert not is_device_failure(RuntimeError("index out of range in self"))


@pytest.mark.gpu
def test_two_scorings_on_a_card_agree_to_the_last_bit_and_with_the_processor(
    assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.without_worker(monkeypatch)
    model = tmp_path / "model.py"
    source = (HONEST / "relu_attention.py").read_text()
    model.write_text(source.replace("def __init__", "torch.manual_seed(3)\n\n    def __init__", 1))
    first, again, here = (
        small.score(small.submission(model, tmp_path / name, assets, device=place))
        for name, place in (("a", "cuda"), ("b", "cuda"), ("c", "cpu"))
    )
    assert first.status is ScoreStatus.VALID, first.message
    assert first.raw == again.raw
    assert first.details["loss"] == pytest.approx(here.details["loss"], abs=1e-4)


def rest_of_what_is_reserved() -> list[torch.Tensor]:
    """Take every block that the allocator still has, so that the next one must come from the card."""
    taken = []
    for size in (2**20, 2**14, 2**9):
        with contextlib.suppress(torch.OutOfMemoryError):
            while True:
                taken.append(torch.empty(size, dtype=torch.uint8, device=CARD))
    return taken


@pytest.mark.gpu
def test_a_card_that_another_program_fills_is_infrastructure_and_a_model_too_large_is_not(
    assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device._card_gb(CARD)[1] > device.FOREIGN_GB:
        pytest.skip("other programs hold this card")
    small.without_worker(monkeypatch)
    hold = "import torch; x = torch.zeros(3 * 2**30, dtype=torch.uint8, device='cuda'); print('held', flush=True); input()"
    torch.cuda.set_per_process_memory_fraction(1e-6)
    try:
        torch.cuda.empty_cache()
        rest = rest_of_what_is_reserved()
        alone = small.score(
            small.submission(HONEST / "relu_attention.py", tmp_path / "a", assets, device="cuda")
        )
        with subprocess.Popen(
            [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"held\n"
            shared = small.score(
                small.submission(HONEST / "relu_attention.py", tmp_path / "b", assets, device="cuda")
            )
            other.communicate(b"\n")
        del rest
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert shared.status is ScoreStatus.INFRASTRUCTURE, shared.message
    assert alone.status is ScoreStatus.OUT_OF_MEMORY, alone.message
