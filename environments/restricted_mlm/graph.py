"""The captured model as plain values: a list of named operations in order, which no reader can mistake for code.

A captured model is two files: `graph.json` (this format) and `weights.safetensors` (every tensor it refers to).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

FORMAT = 1
GRAPH_FILE = "graph.json"
WEIGHTS_FILE = "weights.safetensors"
PROBLEM_FILE = "problem.json"
LARGEST_GRAPH_BYTES = 16 * 2**20
LARGEST_GRAPH_NODES = 20_000
INPUT = "ids"
"""The name that stands for the token ids."""

LARGEST_TEXT = 1000
"""Characters of any one text in a node; texts end up in messages."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,299}")


class GraphInvalid(Exception):
    """A captured graph does not follow the format."""


class Ref(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="ref", tag_field="kind"):
    """The result of an earlier node, a weight, or the token ids."""

    name: str


class ElementType(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="dtype", tag_field="kind"):
    """A tensor's element type, as `float32`."""

    name: str


Single = Ref | ElementType | str | bool | int | float | None
Argument = Single | list[Single]


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One operation."""

    name: str
    op: str
    """`aten.relu.default`, or `size.mul` and its kin for arithmetic on sizes."""
    arguments: list[Argument] = []
    keywords: dict[str, Argument] = {}
    where: str | None = None
    """The participant's line, `model.py:41`."""


class Graph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole captured model."""

    format: int
    weights: dict[str, str]
    """Name in the graph -> key in the weights file."""
    nodes: list[Node]
    output: str


class CaptureProblem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why the worker could not capture the model; written instead of a graph."""

    what: str
    where: str | None = None
    hint: str | None = None


def encode_graph(graph: Graph) -> bytes:
    """Return `graph` as the content of `graph.json`."""
    return msgspec.json.encode(graph)


def decode_graph(content: bytes) -> Graph:
    """Return the graph in `content`, where every name is defined once and before it is used.

    Raises:
        GraphInvalid: anything else.
    """
    if len(content) > LARGEST_GRAPH_BYTES:
        raise GraphInvalid(f"the graph takes {len(content)} bytes, more than {LARGEST_GRAPH_BYTES}")
    try:
        graph = msgspec.json.decode(content, type=Graph)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise GraphInvalid(f"the graph does not decode: {error}") from error
    if graph.format != FORMAT:
        raise GraphInvalid(f"the graph has format {graph.format}, not {FORMAT}")
    if len(graph.nodes) > LARGEST_GRAPH_NODES:
        raise GraphInvalid(f"the graph has {len(graph.nodes)} operations, more than {LARGEST_GRAPH_NODES}")
    known: set[str] = set()
    for name in (INPUT, *graph.weights):
        _define(name, known)
    for key in graph.weights.values():
        _plain(key)
    for node in graph.nodes:
        for text in _texts(node):
            _plain(text)
        for ref in node_refs(node):
            if ref not in known:
                raise GraphInvalid(f"{node.op} uses {ref[:40]!r} before it is defined")
        _define(node.name, known)
    if graph.output not in known:
        raise GraphInvalid(f"the output {graph.output[:40]!r} is not defined")
    return graph


def node_refs(node: Node) -> list[str]:
    """Return the names that `node` uses, in order."""
    found: list[str] = []
    for argument in (*node.arguments, *node.keywords.values()):
        parts = argument if isinstance(argument, list) else [argument]
        found.extend(part.name for part in parts if isinstance(part, Ref))
    return found


def _texts(node: Node) -> Iterator[str]:
    yield node.op
    yield node.where or ""
    yield from node.keywords
    for argument in (*node.arguments, *node.keywords.values()):
        for part in argument if isinstance(argument, list) else [argument]:
            if isinstance(part, str):
                yield part
            elif isinstance(part, ElementType):
                yield part.name


def _plain(text: str) -> None:
    if len(text) > LARGEST_TEXT or not text.isprintable():
        raise GraphInvalid(f"the text {text[:40]!r} is too long or not printable")


def _define(name: str, known: set[str]) -> None:
    if not _NAME.fullmatch(name) or name in known:
        raise GraphInvalid(f"{name[:40]!r} is not a fresh name")
    known.add(name)
