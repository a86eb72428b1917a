"""Checks a captured graph against the rules of the task and names the first offence with its line.

First every operation's name is looked up. Then the graph is carried out on shapes without numbers, which shows each
result's element type and size: integers that come from token ids may be moved and looked up, never computed with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from msgspec.structs import replace
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from torch.utils.weak import WeakIdKeyDictionary

from environments.contract import Problem
from environments.restricted_mlm.graph import INPUT, Graph, Node, node_refs
from environments.restricted_mlm.interpret import ELEMENT_TYPES, Computed, NodeFailed, last_uses, run_graph
from environments.restricted_mlm.operations import HINTS, IN_PLACE_HINT, OPERATIONS, Operation, Role
from environments.restricted_mlm.settings import MlmSettings

LARGEST_REPORT = 10


@dataclass(frozen=True)
class Inspection:
    """What the checker found."""

    problems: tuple[Problem, ...]
    parameters: int = 0
    """Numbers in all weights and constants."""
    gigaflops_per_row: float = 0.0


class _Offence(Exception):
    def __init__(self, node: Node, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.problem = Problem(what=what, where=node.where, hint=hint)


def inspect_graph(graph: Graph, weights: Mapping[str, Tensor], settings: MlmSettings) -> Inspection:
    """Return the problems of `graph`, none if the model keeps to the rules.

    Args:
        graph: the captured model.
        weights: graph name -> tensor, on any device; only shapes and types are read.
        settings: sizes and limits of the profile.
    """
    unknown = tuple(_unknown_operations(graph))[:LARGEST_REPORT]
    if unknown:
        return Inspection(unknown)
    parameters = sum(tensor.numel() for tensor in weights.values())
    wrong = _weight_problem(weights, parameters, settings)
    if wrong:
        return Inspection((wrong,), parameters)
    shapes = {name: tensor.to("meta") for name, tensor in weights.items()}
    gigaflops = 0.0
    for rows in _batch_sizes(settings):
        problem, needed = _walk(graph, shapes, rows, settings)
        if problem:
            return Inspection((problem,), parameters, needed)
        gigaflops = gigaflops or needed
    return Inspection((), parameters, gigaflops)


def _batch_sizes(settings: MlmSettings) -> list[int]:
    """Return every number of rows that evaluation asks for, the full batch first: sizes may depend on it."""
    rests = {1, settings.scoring_rows % settings.batch, settings.control_rows % settings.batch}
    return [settings.batch, *sorted(rests - {0, settings.batch})]


def _walk(
    graph: Graph, shapes: Mapping[str, Tensor], rows: int, settings: MlmSettings
) -> tuple[Problem | None, float]:
    """Carry the graph out on shapes for `rows` rows; returns the offence, and GFLOP for a row of a full batch."""
    ids = torch.empty((rows, settings.length), dtype=torch.int64, device="meta")
    watch = _Watch(replace(settings, batch=rows), last_uses(graph), from_ids={INPUT})
    watch.integers[ids] = True
    counter = FlopCounterMode(display=False)
    try:
        with counter, watch.inside:
            logits = run_graph(graph, shapes, ids, observe=watch)
    except _Offence as error:
        return error.problem, 0.0
    except NodeFailed as error:
        return Problem(what=error.what, where=error.node.where, hint=error.hint), 0.0
    gigaflops = (counter.get_total_flops() + watch.elementwise) / settings.batch / 1e9
    return _result_problem(logits, rows, gigaflops, settings), gigaflops


def _unknown_operations(graph: Graph) -> Iterator[Problem]:
    for node in graph.nodes:
        if node.op in OPERATIONS:
            continue
        name = node.op.split(".")[1] if node.op.startswith("aten.") else node.op
        in_place = name.endswith("_") and not name.endswith("__")
        base = name.strip("_")
        if in_place and any(op.startswith(f"aten.{base}.") for op in OPERATIONS):
            yield Problem(
                what=f"`{name}` changes a tensor in place ({node.op})", where=node.where, hint=IN_PLACE_HINT
            )
        else:
            yield Problem(
                what=f"`{base}` is not an allowed operation ({node.op})",
                where=node.where,
                hint=HINTS.get(base),
            )


def _weight_problem(weights: Mapping[str, Tensor], parameters: int, settings: MlmSettings) -> Problem | None:
    for name, tensor in weights.items():
        if tensor.dtype not in ELEMENT_TYPES.values():
            return Problem(
                what=f"the weight or constant {name} has element type {str(tensor.dtype).removeprefix('torch.')}",
                hint="keep constants as float or integer tensors: mask.float()",
            )
    if parameters > settings.largest_parameters:
        return Problem(
            what=f"weights and constants hold {parameters:,} numbers, more than {settings.largest_parameters:,}",
            hint="use a smaller model",
        )
    return None


def _result_problem(logits: Computed, rows: int, gigaflops: float, settings: MlmSettings) -> Problem | None:
    expected = (rows, settings.length, settings.vocabulary)
    if not isinstance(logits, Tensor) or tuple(logits.shape) != expected or not logits.is_floating_point():
        found = (
            f"{logits.dtype} of shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else "no tensor"
        )
        return Problem(
            what=f"for ids of shape {expected[:2]} the model returns {found}, not floating-point logits of shape {expected}",
            where="model.py",
        )
    if gigaflops > settings.largest_gigaflops:
        return Problem(
            what=f"the model takes {gigaflops:.2f} GFLOP for one row, more than {settings.largest_gigaflops:.2f}",
            hint="use a smaller model",
        )
    return None


@dataclass
class Memory:
    """How many bytes the named tensors take together, views counted once."""

    alive: int = 0
    held: dict[str, list[Tensor]] = field(default_factory=dict)
    holders: dict[int, int] = field(default_factory=dict)

    def hold(self, name: str, tensors: list[Tensor]) -> None:
        self.held[name] = tensors
        for storage in (tensor.untyped_storage() for tensor in tensors):
            key = StorageWeakRef(storage).cdata  # type: ignore[no-untyped-call]
            self.holders[key] = self.holders.get(key, 0) + 1
            if self.holders[key] == 1:
                self.alive += storage.nbytes()

    def release(self, name: str) -> None:
        for storage in (tensor.untyped_storage() for tensor in self.held.pop(name, [])):
            key = StorageWeakRef(storage).cdata  # type: ignore[no-untyped-call]
            self.holders[key] -= 1
            if self.holders[key] == 0:
                self.alive -= storage.nbytes()
                del self.holders[key]


class _Inside(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees the tensors that an operation makes on its way, as an einsum of several factors does."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.largest = max([self.largest, *(t.numel() for t in _tensors(made))])
        return made


@dataclass
class _Watch:
    """Follows one run on shapes: which values come from token ids, how large they are, which types they have."""

    settings: MlmSettings
    last_use: Mapping[str, int]
    from_ids: set[str]
    elementwise: int = 0
    memory: Memory = field(default_factory=Memory)
    position: int = 0
    inside: _Inside = field(default_factory=_Inside)
    integers: WeakIdKeyDictionary = field(default_factory=WeakIdKeyDictionary)
    """Integer tensors that come from token ids."""

    def __call__(self, node: Node, operation: Operation, arguments: dict[str, Any], result: Computed) -> None:
        results = result if isinstance(result, list) else [] if isinstance(result, int) else [result]
        self._memory(node, results)
        if isinstance(result, int):
            return
        inputs = [tensor for value in arguments.values() for tensor in _tensors(value)]
        depends = operation.role is not Role.CONSTANT and any(
            name in self.from_ids for name in node_refs(node)
        )
        if depends:
            self.from_ids.add(node.name)
        self._sizes(node, results)
        self._types(node, operation, inputs, results, depends)
        self._ids_stay_ids(node, operation, arguments, results, depends)
        if operation.role is Role.ARITHMETIC:
            self.elementwise += max((tensor.numel() for tensor in (*inputs, *results)), default=0)

    def _memory(self, node: Node, results: list[Tensor]) -> None:
        self.memory.hold(node.name, results)
        if self.memory.alive > self.settings.largest_memory_gb * 1e9:
            raise _Offence(
                node,
                f"tensors alive at {node.op} take {self.memory.alive / 1e9:.1f} GB for {self.settings.batch} rows, "
                f"more than {self.settings.largest_memory_gb} GB",
                "use a smaller model",
            )
        for name in node_refs(node):
            if self.last_use[name] == self.position:
                self.memory.release(name)
        self.position += 1

    def _sizes(self, node: Node, results: list[Tensor]) -> None:
        largest = max([self.inside.largest, *(tensor.numel() for tensor in results)])
        self.inside.largest = 0
        if largest > self.settings.largest_intermediate:
            raise _Offence(
                node,
                f"{node.op} makes a tensor of {largest:,} numbers for {self.settings.batch} rows, more than "
                f"{self.settings.largest_intermediate:,}",
                "use a smaller model",
            )

    def _types(
        self, node: Node, operation: Operation, inputs: list[Tensor], results: list[Tensor], depends: bool
    ) -> None:
        for tensor in results:
            name = str(tensor.dtype).removeprefix("torch.")
            if tensor.dtype not in ELEMENT_TYPES.values():
                raise _Offence(
                    node, f"{node.op} makes a tensor of {name}, which is not an allowed element type"
                )
            if tensor.is_floating_point() or operation.role is Role.CONSTANT:
                continue
            if any(given.is_floating_point() for given in inputs):
                raise _Offence(
                    node,
                    f"{node.op} turns floating-point numbers into {name}",
                    "numbers computed by the model may not become indices",
                )
            if operation.role is Role.CAST and depends and tensor.dtype not in (torch.int64, torch.int32):
                raise _Offence(node, f"{node.op} squeezes token ids into {name}", "keep token ids as int64")
        if operation.role is Role.ARITHMETIC and depends:
            self._no_arithmetic_on_ids(node, arguments=inputs)

    def _ids_stay_ids(
        self,
        node: Node,
        operation: Operation,
        arguments: dict[str, Any],
        results: list[Tensor],
        depends: bool,
    ) -> None:
        moved = [t for name in ("self", "tensors", "parts") for t in _tensors(arguments.get(name))]
        for tensor in results:
            if not tensor.is_floating_point():
                if depends:
                    self.integers[tensor] = True
            elif operation.role in (Role.CAST, Role.MOVEMENT) and any(t in self.integers for t in moved):
                raise _Offence(
                    node,
                    f"{node.op} turns token ids into floating-point numbers",
                    "look them up: an nn.Embedding can hold any number for each token",
                )

    def _no_arithmetic_on_ids(self, node: Node, arguments: list[Tensor]) -> None:
        if any(not tensor.is_floating_point() for tensor in arguments):
            raise _Offence(
                node,
                f"{node.op} computes with token ids or other integers as if they were numbers",
                "token ids may be moved (slices, cat, pad) and looked up in an embedding; turn constants into floats",
            )


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
