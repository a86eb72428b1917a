"""Carries out a captured graph node by node, with the operations of the table and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from environments.restricted_mlm.device import DeviceFailed, is_device_failure
from environments.restricted_mlm.graph import INPUT, Argument, ElementType, Graph, Node, Ref, node_refs
from environments.restricted_mlm.operations import (
    OPERATIONS,
    ArgumentKind,
    Operation,
    OperationRefused,
    Parameter,
    Role,
)

ELEMENT_TYPES: dict[str, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "uint8": torch.uint8,
    "int8": torch.int8,
}

Computed = Tensor | list[Tensor] | int
"""What a node yields: a tensor, the parts of a split, or a size."""

Observe = Callable[[Node, Operation, dict[str, Any], Computed], None]


SHAKE = 2.0**-23
"""Largest relative change of a shaken number: the spacing of float32."""
SMALLEST = 1e-30
"""Magnitude below which a shaken number is nothing: no rounding by denormals."""


class NodeFailed(Exception):
    """A node could not be carried out; the message is for the participant."""

    def __init__(self, node: Node, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.node, self.what, self.hint = node, what, hint


def run_graph(
    graph: Graph,
    weights: Mapping[str, Tensor],
    ids: Tensor,
    *,
    observe: Observe | None = None,
    shake: torch.Generator | None = None,
) -> Computed:
    """Return the graph's output for `ids` [batch, length].

    Runs where `ids` are; `weights` are keyed by their names in the graph and must be there too. Results are dropped
    after their last use.

    `shake` computes everything in float64 and spoils each sum and product a little, as float32 would, but at random:
    honest numbers hardly move, while one that lives on rounding, underflow or the difference between element types
    falls to pieces, whichever type it was made for. Casts between float types do nothing then.

    Raises:
        NodeFailed: an operation is unknown, misused, or refuses its inputs.
        DeviceFailed: the device ran out of memory or broke.
    """
    last_use = last_uses(graph)
    values: dict[str, Computed] = {INPUT: ids, **weights}
    if shake is not None:
        values = {name: _widened(value) for name, value in values.items()}
    with torch.no_grad(), torch.device(ids.device):
        for i, node in enumerate(graph.nodes):
            operation = OPERATIONS.get(node.op)
            if operation is None:
                raise NodeFailed(node, f"{node.op} is not an allowed operation")
            try:
                arguments = bind(node, operation, values)
                if shake is not None:
                    arguments = {name: _wide_type(value) for name, value in arguments.items()}
                result: Computed = operation.run(**arguments)
            except OperationRefused as error:
                raise NodeFailed(node, error.what, error.hint) from error
            except Exception as error:  # whatever else comes of somebody else's graph is the graph's fault
                if is_device_failure(error):
                    raise DeviceFailed(
                        error, f"{node.where}, {node.op}" if node.where else node.op
                    ) from error
                first = str(error).strip().splitlines()[0] if str(error).strip() else ""
                raise NodeFailed(node, f"{node.op} failed: {type(error).__name__}: {first[:200]}") from error
            if observe is not None:
                observe(node, operation, arguments, result)
            if shake is not None:
                result = _shaken(result, shake) if operation.role is Role.ARITHMETIC else _widened(result)
            values[node.name] = result
            for name in node_refs(node):
                if last_use[name] == i and name != graph.output:
                    values.pop(name, None)
    return values[graph.output]


def last_uses(graph: Graph) -> dict[str, int]:
    """Return for every name that a node uses the position of the last one that does."""
    return {name: i for i, node in enumerate(graph.nodes) for name in node_refs(node)}


def bind(node: Node, operation: Operation, values: Mapping[str, Computed]) -> dict[str, Any]:
    """Return the operation's arguments by name, each of the kind its parameter asks for.

    Raises:
        OperationRefused: one is missing, unknown, or of another kind.
    """
    given: dict[str, Argument] = {}
    if len(node.arguments) > len(operation.parameters):
        raise OperationRefused(f"{node.op} takes at most {len(operation.parameters)} arguments")
    for parameter, argument in zip(operation.parameters, node.arguments, strict=False):
        given[parameter.name] = argument
    known = {parameter.name for parameter in operation.parameters}
    for name, argument in node.keywords.items():
        if name not in known or name in given:
            raise OperationRefused(f"{node.op} may not be given {name!r}")
        given[name] = argument
    bound: dict[str, Any] = {}
    for parameter in operation.parameters:
        argument = given.get(parameter.name)
        if argument is None:
            if not parameter.optional:
                raise OperationRefused(f"{node.op} needs {parameter.name!r}")
            continue
        bound[parameter.name] = _resolve(node, parameter, argument, values)
    return bound


def _resolve(node: Node, parameter: Parameter, argument: Argument, values: Mapping[str, Computed]) -> Any:
    if isinstance(argument, list):
        parts: list[Any] = [values[part.name] if isinstance(part, Ref) else part for part in argument]
        literal = not any(isinstance(part, Ref) for part in argument)
        if _list_fits(parameter.kind, parts, literal):
            return parts
        raise OperationRefused(f"{node.op}: {parameter.name!r} must be of kind {parameter.kind.value}")
    if isinstance(argument, ElementType):
        if parameter.kind is not ArgumentKind.DTYPE or argument.name not in ELEMENT_TYPES:
            raise OperationRefused(
                f"{node.op}: element type {argument.name} is not allowed here",
                "use float32, bfloat16 or float16",
            )
        return ELEMENT_TYPES[argument.name]
    literal = not isinstance(argument, Ref)
    value: Any = argument if not isinstance(argument, Ref) else values[argument.name]
    if _single_fits(parameter.kind, value, literal):
        return [value] if parameter.kind is ArgumentKind.INTS else value
    if not literal and _is_int(value):
        raise OperationRefused(
            f"{node.op} uses the batch size as a number",
            "sizes that depend on the batch may stand in shapes only",
        )
    raise OperationRefused(
        f"{node.op}: {parameter.name!r} must be of kind {parameter.kind.value}, not {_name_kind(value)}"
    )


def _single_fits(kind: ArgumentKind, value: Any, literal: bool) -> bool:
    """Say whether one value, written as a literal or computed by a node, may stand where `kind` is asked for."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {
        ArgumentKind.TENSOR: isinstance(value, Tensor),
        ArgumentKind.TENSORS: isinstance(value, list),
        ArgumentKind.OPERAND: isinstance(value, Tensor) or (literal and number),
        ArgumentKind.NUMBER: literal and number,
        ArgumentKind.INT: literal and _is_int(value),
        ArgumentKind.INTS: literal and _is_int(value),
        ArgumentKind.SIZE: _is_int(value),
        ArgumentKind.BOOL: literal and isinstance(value, bool),
        ArgumentKind.TEXT: literal and isinstance(value, str),
    }.get(kind, False)


def _list_fits(kind: ArgumentKind, parts: list[Any], literal: bool) -> bool:
    """Say whether a list of values may stand where `kind` is asked for."""
    ints = all(_is_int(part) for part in parts)
    return {
        ArgumentKind.INTS: literal and ints,
        ArgumentKind.SIZES: ints,
        ArgumentKind.TENSORS: all(isinstance(part, Tensor) for part in parts),
        ArgumentKind.INDICES: all(part is None or isinstance(part, Tensor) for part in parts),
    }.get(kind, False)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**63 - 1


def _name_kind(value: Any) -> str:
    return "tensor" if isinstance(value, Tensor) else type(value).__name__


def _widened(value: Computed) -> Computed:
    if isinstance(value, list):
        return [part.double() if part.is_floating_point() else part for part in value]
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


def _shaken(value: Computed, random: torch.Generator) -> Computed:
    wide = _widened(value)
    if not isinstance(wide, Tensor) or not wide.is_floating_point():
        return wide
    noise = torch.rand(wide.shape, generator=random, dtype=torch.float64, device=wide.device)
    noise.sub_(0.5).mul_(2 * SHAKE).add_(1).mul_(wide)  # in place: these are the largest tensors there are
    return noise.masked_fill_(noise.abs() <= SMALLEST, 0.0)


def _wide_type(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value
