"""Graphs that no capture would write: what code in the worker may send in a model's place, and what becomes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from safetensors.torch import save

from environments.contract import AssetFolders, ScoreReport
from environments.restricted_mlm import capture_job
from environments.restricted_mlm.graph import ElementType, Graph, Node, Ref, encode_graph
from environments.worker import Answered
from tests.cheats.restricted_mlm import small

pytestmark = pytest.mark.cheats

X, IDS = Ref("x"), Ref("ids")
ROWS = Node("rows", "aten.sym_size.int", [IDS, 0])
MISSING = Node("missing", "size.sub", [16, Ref("rows")])
"""Rows that a full batch has more: nothing while the graph is checked for one."""
TABLE = torch.randn(64, 64, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> AssetFolders:
    return small.small_assets(tmp_path_factory.mktemp("assets"))


def embedding_and(*nodes: Node, output: str) -> bytes:
    first = Node("x", "aten.embedding.default", [Ref("w"), IDS])
    return encode_graph(Graph(1, {"w": "w", "wide": "wide"}, [first, *nodes], output))


def node(name: str, op: str, *arguments: Any, **keywords: Any) -> Node:
    return Node(name, f"aten.{op}", list(arguments), keywords)


FLOOR = (
    node("far", "add.Tensor", Ref("part"), 12582912.0),
    node("floor", "sub.Tensor", Ref("far"), 12582912.0),
)
FIRST = node("first", "slice.Tensor", X, 0, 0, 3)
LATER = node("part", "slice.Tensor", X, 0, 3, 2**62)

FORGED: dict[str, tuple[bytes, str]] = {
    "later rows of a batch are mixed": (
        embedding_and(
            FIRST, LATER,
            node("sum", "sum.dim_IntList", Ref("part"), [0], True),
            node("mixed", "add.Tensor", Ref("part"), Ref("sum")),
            node("out", "cat.default", [Ref("first"), Ref("mixed")]),
            output="out",
        ),
        "other rows of the batch",
    ),
    "later rows of a batch are rounded": (
        embedding_and(
            LATER, *FLOOR, FIRST, node("out", "cat.default", [Ref("first"), Ref("floor")]), output="out"
        ),
        "other rows of the batch",
    ),
    "a float16 addition rounds": (
        embedding_and(
            node("half", "to.dtype", X, ElementType("float16")),
            node("far", "add.Tensor", Ref("half"), 1536.0),
            node("out", "sub.Tensor", Ref("far"), 1536.0),
            output="out",
        ),
        "rounding errors",
    ),
    "an einsum needs more on its way than it returns": (
        embedding_and(
            node("n", "einsum.default", "ai,bi,aj,bj->", [Ref("wide")] * 4),
            node("out", "mul.Tensor", X, Ref("n")),
            output="out",
        ),
        "makes a tensor of",
    ),
    "a broadcast product needs more on its way than it returns": (
        embedding_and(
            node("a", "reshape.default", Ref("wide"), [2000, 1, 1, 4]),
            node("b", "reshape.default", Ref("wide"), [1, 2000, 4, 1]),
            node("n", "matmul.default", Ref("a"), Ref("b")),
            node("s", "sum.default", Ref("n")),
            node("out", "mul.Tensor", X, Ref("s")),
            output="out",
        ),
        "makes a tensor of",
    ),
    "a tensor is taken apart into millions": (
        embedding_and(
            node("many", "zeros.default", [9_000_000]), node("parts", "unbind.int", Ref("many")), output="x"
        ),
        "9,000,000 parts",
    ),
    "fewer rows need more memory": (
        embedding_and(
            ROWS, MISSING, Node("n", "size.mul", [Ref("missing"), 10**9]),
            node("many", "zeros.default", [Ref("n")]),
            output="x",
        ),
        "tensors alive",
    ),
    "fewer rows get fewer logits": (
        embedding_and(
            ROWS, MISSING, Node("n", "size.sub", [64, Ref("missing")]),
            node("out", "narrow.default", X, 2, 0, Ref("n")),
            output="out",
        ),
        "not floating-point logits",
    ),
    "a name that fills the log": (
        embedding_and(Node("y", "exp", [X], {}, "z" * 5000), output="y"), "does not decode"
    ),
    "control characters in a place": (
        embedding_and(Node("y", "exp", [X], {}, "model.py:1\x1b[2J"), output="y"), "does not decode"
    ),
    "a literal where a tensor belongs": (embedding_and(node("y", "add.Tensor", 1, 2), output="y"), "model returns"),
    "no graph but a number": (b"1", "does not decode"),
    "deeply nested": (b"[" * 100_000, "does not decode"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_graph_is_invalid(
    name: str, assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, words = FORGED[name]
    score = scored(graph, save({"w": TABLE, "wide": torch.ones(4000, 2)}), assets, tmp_path, monkeypatch)
    assert score.status.value == "invalid", score.message
    assert words in score.message
    assert len(score.message) < 2000


@pytest.mark.parametrize(
    "weights",
    [b"", b"\xff" * 64, b"\2\0\0\0\0\0\0\0{}", save({"w": TABLE})[:-5], save({"w": torch.full((64, 64), torch.nan)})],
    ids=["empty", "a huge header", "none", "cut off", "not finite"],
)  # fmt: skip
def test_forged_weights_are_invalid(
    weights: bytes, assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = encode_graph(Graph(1, {"w": "w"}, [Node("x", "aten.embedding.default", [Ref("w"), IDS])], "x"))
    score = scored(graph, weights, assets, tmp_path, monkeypatch)
    assert score.status.value == "invalid", score.message


def test_the_same_graph_unforged_is_valid(
    assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = save({"w": TABLE, "wide": torch.ones(4000, 2)})
    score = scored(embedding_and(output="x"), weights, assets, tmp_path, monkeypatch)
    assert score.status.value == "valid", score.message
    assert msgspec.json.encode(score)


def scored(
    graph: bytes, weights: bytes, assets: AssetFolders, folder: Path, patch: pytest.MonkeyPatch
) -> ScoreReport:
    answer = Answered({}, {"graph": graph, "weights": weights}, 0.0, "", small.HERE)
    patch.setattr(capture_job, "run_untrusted", lambda *_, **__: answer)
    model = folder / "model.py"
    model.write_text("")
    return small.score(small.submission(model, folder / "given", assets))
