"""The allowed operations: for each its parameters, what it may do, and the function that carries it out.

The checker and the evaluator share this table, so what is run is what was allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

LARGEST_PARTS = 4096
"""Tensors that one operation may yield."""


class Role(StrEnum):
    """What an operation does with the numbers it is given."""

    ARITHMETIC = "arithmetic"
    """Adds, multiplies or rectifies; never on token ids."""
    MOVEMENT = "movement"
    """Copies numbers to other places."""
    LOOKUP = "look-up"
    """Fetches by integer indices."""
    CAST = "cast"
    """Changes the element type."""
    CONSTANT = "constant"
    """Makes a tensor from literals."""
    SIZE = "size"
    """Computes a shape."""


class ArgumentKind(StrEnum):
    """What may stand in an argument's place."""

    TENSOR = "tensor"
    TENSORS = "tensors"
    INDICES = "indices"
    OPERAND = "operand"
    """A tensor or a literal number."""
    NUMBER = "number"
    INT = "int"
    INTS = "ints"
    SIZE = "size"
    """A literal or a computed size."""
    SIZES = "sizes"
    BOOL = "bool"
    DTYPE = "dtype"
    TEXT = "text"


@dataclass(frozen=True)
class Parameter:
    """One argument of an operation."""

    name: str
    kind: ArgumentKind
    optional: bool
    """May be None or left out."""


@dataclass(frozen=True)
class Operation:
    """One allowed operation."""

    role: Role
    parameters: tuple[Parameter, ...]
    run: Callable[..., Any]
    """Takes the parameters by name; those left out are not passed."""


class OperationRefused(Exception):
    """An allowed operation was used in a way that is not."""

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


def _operation(role: Role, parameters: str, run: Callable[..., Any]) -> Operation:
    """Build an entry; `parameters` reads `self:tensor other:operand alpha:number?`."""
    parsed = []
    for word in parameters.split():
        name, _, kind = word.partition(":")
        parsed.append(Parameter(name, ArgumentKind(kind.removesuffix("?")), kind.endswith("?")))
    return Operation(role, tuple(parsed), run)


def _in_range(index: Tensor, size: int, lowest: int = 0) -> None:
    """Refuse indices outside lowest..size-1, which on a GPU would poison the process; shapes-only tensors pass."""
    if index.is_meta or not index.numel():
        return
    if index.is_floating_point():
        raise OperationRefused("a look-up by floating-point numbers", "indices are integers")
    low, high = torch.stack(index.aminmax()).tolist()
    if (
        low < lowest or high >= size
    ):  # which one stays unsaid: it may have been looked up from held-out tokens
        raise OperationRefused(f"an index lies outside 0..{size - 1}")


def _embedding(weight: Tensor, indices: Tensor, **_: Any) -> Tensor:
    _in_range(indices, weight.shape[0])
    return functional.embedding(indices, weight)


def _gather(self: Tensor, dim: int, index: Tensor, **_: Any) -> Tensor:
    _in_range(index, self.shape[dim])
    return torch.gather(self, dim, index)


def _index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    _in_range(index, self.shape[dim])
    return torch.index_select(self, dim, index)


def _index(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    if len(indices) > self.dim():
        raise OperationRefused(f"{len(indices)} indices for a tensor of {self.dim()} dimensions")
    for dim, index in enumerate(indices):
        if index is not None:
            _in_range(index, self.shape[dim], lowest=-self.shape[dim])
    return self[tuple(slice(None) if index is None else index for index in indices)]


def _as_strided(
    self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Only windows inside a tensor that owns its memory: no view of something larger, nothing out of bounds."""
    whole = self.untyped_storage().nbytes() == self.numel() * self.element_size()
    if not (self.is_contiguous() and self.storage_offset() == 0 and whole):
        raise OperationRefused(
            "as_strided on a view of another tensor", "call .contiguous() or .clone() on it first"
        )
    offset = storage_offset or 0
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if offset < 0 or min(stride, default=0) < 0 or (min(size, default=1) > 0 and last >= self.numel()):
        raise OperationRefused(
            f"as_strided(size={list(size)}, stride={list(stride)}, offset={offset}) reaches outside its tensor of "
            f"{self.numel()} numbers"
        )
    return torch.as_strided(self, list(size), list(stride), offset)


def _pad(self: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    if mode != "constant":
        raise OperationRefused(
            f"padding of mode {mode!r}", "pad with a constant, or put slices together with cat"
        )
    return functional.pad(self, list(pad), value=value if value is not None else 0.0)


def _dropout(self: Tensor, p: float, train: bool) -> Tensor:
    if train:
        raise OperationRefused(
            "dropout is switched on at inference", "use nn.Dropout, or F.dropout(x, p, self.training)"
        )
    return self


def _slice(
    self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    return self[(slice(None),) * (dim % self.dim()) + (slice(start, end, step),)]


def _squeeze(self: Tensor, dim: int) -> Tensor:
    return self.squeeze(dim)


def _cast(self: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    return self if dtype is None else self.to(dtype)


def _copy(self: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    return self.to(dtype or self.dtype, copy=True)


def _unbind(self: Tensor, dim: int = 0) -> list[Tensor]:
    _few_parts(self.shape[dim])
    return list(self.unbind(dim))


def _split(self: Tensor, split_size: int | list[int], dim: int = 0) -> list[Tensor]:
    if isinstance(split_size, int):
        _few_parts(self.shape[dim] // max(1, split_size))
    return list(self.split(split_size, dim))  # type: ignore[no-untyped-call]


def _chunk(self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    _few_parts(min(chunks, self.shape[dim]))
    return list(self.chunk(chunks, dim))


def _few_parts(count: int) -> None:
    if count > LARGEST_PARTS:
        raise OperationRefused(
            f"a tensor taken apart into {count:,} parts, more than {LARGEST_PARTS:,}", "use reshape"
        )


A, M, L, C, K, S = Role.ARITHMETIC, Role.MOVEMENT, Role.LOOKUP, Role.CAST, Role.CONSTANT, Role.SIZE

# fmt: off
OPERATIONS: dict[str, Operation] = {
    # multiplication and addition
    "aten.linear.default": _operation(A, "input:tensor weight:tensor bias:tensor?", functional.linear),
    "aten.matmul.default": _operation(A, "self:tensor other:tensor", lambda self, other: self @ other),
    "aten.mm.default": _operation(A, "self:tensor mat2:tensor", lambda self, mat2: self.mm(mat2)),
    "aten.bmm.default": _operation(A, "self:tensor mat2:tensor", lambda self, mat2: self.bmm(mat2)),
    "aten.mv.default": _operation(A, "self:tensor vec:tensor", lambda self, vec: self.mv(vec)),
    "aten.dot.default": _operation(A, "self:tensor tensor:tensor", lambda self, tensor: self.dot(tensor)),
    "aten.outer.default": _operation(A, "self:tensor vec2:tensor", lambda self, vec2: self.outer(vec2)),
    "aten.addmm.default": _operation(
        A, "self:tensor mat1:tensor mat2:tensor beta:number? alpha:number?",
        lambda self, mat1, mat2, **scale: torch.addmm(self, mat1, mat2, **scale),
    ),
    "aten.baddbmm.default": _operation(
        A, "self:tensor batch1:tensor batch2:tensor beta:number? alpha:number?",
        lambda self, batch1, batch2, **scale: torch.baddbmm(self, batch1, batch2, **scale),
    ),
    "aten.einsum.default": _operation(
        A, "equation:text tensors:tensors", lambda equation, tensors: torch.einsum(equation, *tensors)
    ),
    "aten.add.Tensor": _operation(
        A, "self:operand other:operand alpha:number?", lambda self, other, alpha=1: self + (other if alpha == 1 else other * alpha)
    ),
    "aten.sub.Tensor": _operation(
        A, "self:operand other:operand alpha:number?", lambda self, other, alpha=1: self - (other if alpha == 1 else other * alpha)
    ),
    "aten.rsub.Scalar": _operation(
        A, "self:tensor other:number alpha:number?", lambda self, other, alpha=1: other - (self if alpha == 1 else self * alpha)
    ),
    "aten.rsub.Tensor": _operation(
        A, "self:tensor other:tensor alpha:number?", lambda self, other, alpha=1: other - (self if alpha == 1 else self * alpha)
    ),
    "aten.mul.Tensor": _operation(A, "self:operand other:operand", lambda self, other: self * other),
    "aten.neg.default": _operation(A, "self:tensor", lambda self: -self),
    "aten.sum.default": _operation(A, "self:tensor dtype:dtype?", lambda self, dtype=None: self.sum(dtype=dtype)),
    "aten.sum.dim_IntList": _operation(
        A, "self:tensor dim:ints? keepdim:bool? dtype:dtype?",
        lambda self, dim=None, keepdim=False, dtype=None: torch.sum(self, dim, keepdim=keepdim, dtype=dtype),
    ),
    # the only non-linearity
    "aten.relu.default": _operation(A, "self:tensor", lambda self: self.relu()),
    # look-ups
    "aten.embedding.default": _operation(
        L, "weight:tensor indices:tensor padding_idx:int? scale_grad_by_freq:bool? sparse:bool?", _embedding
    ),
    "aten.gather.default": _operation(L, "self:tensor dim:int index:tensor sparse_grad:bool?", _gather),
    "aten.index_select.default": _operation(L, "self:tensor dim:int index:tensor", _index_select),
    "aten.index.Tensor": _operation(L, "self:tensor indices:indices", _index),
    # shapes
    "aten.reshape.default": _operation(M, "self:tensor shape:sizes", lambda self, shape: self.reshape(shape)),
    "aten.view.default": _operation(M, "self:tensor size:sizes", lambda self, size: self.view(size)),
    "aten.transpose.int": _operation(M, "self:tensor dim0:int dim1:int", lambda self, dim0, dim1: self.transpose(dim0, dim1)),
    "aten.swapaxes.default": _operation(M, "self:tensor axis0:int axis1:int", lambda self, axis0, axis1: self.transpose(axis0, axis1)),
    "aten.t.default": _operation(M, "self:tensor", lambda self: self.t()),
    "aten.mT.default": _operation(M, "self:tensor", lambda self: self.mT),
    "aten.numpy_T.default": _operation(M, "self:tensor", lambda self: self.permute(*reversed(range(self.dim())))),
    "aten.permute.default": _operation(M, "self:tensor dims:ints", lambda self, dims: self.permute(dims)),
    "aten.movedim.int": _operation(M, "self:tensor source:int destination:int", lambda self, source, destination: self.movedim(source, destination)),
    "aten.movedim.intlist": _operation(M, "self:tensor source:ints destination:ints", lambda self, source, destination: self.movedim(source, destination)),
    "aten.expand.default": _operation(M, "self:tensor size:sizes implicit:bool?", lambda self, size, implicit=False: self.expand(size)),
    "aten.expand_as.default": _operation(M, "self:tensor other:tensor", lambda self, other: self.expand(other.shape)),
    "aten.broadcast_to.default": _operation(M, "self:tensor size:sizes", lambda self, size: self.expand(size)),
    "aten.contiguous.default": _operation(M, "self:tensor", lambda self: self.contiguous()),
    "aten.clone.default": _operation(M, "self:tensor", lambda self: self.clone(memory_format=torch.contiguous_format)),
    "aten.as_strided.default": _operation(M, "self:tensor size:sizes stride:sizes storage_offset:size?", _as_strided),
    "aten.unfold.default": _operation(
        M, "self:tensor dimension:int size:int step:int", lambda self, dimension, size, step: self.unfold(dimension, size, step)
    ),
    "aten.cat.default": _operation(M, "tensors:tensors dim:int?", lambda tensors, dim=0: torch.cat(tensors, dim)),
    "aten.stack.default": _operation(M, "tensors:tensors dim:int?", lambda tensors, dim=0: torch.stack(tensors, dim)),
    "aten.pad.default": _operation(M, "self:tensor pad:ints mode:text? value:number?", _pad),
    "aten.constant_pad_nd.default": _operation(M, "self:tensor pad:ints value:number?", _pad),
    "aten.unsqueeze.default": _operation(M, "self:tensor dim:int", lambda self, dim: self.unsqueeze(dim)),
    "aten.squeeze.dim": _operation(M, "self:tensor dim:int", _squeeze),
    "aten.flatten.using_ints": _operation(
        M, "self:tensor start_dim:int? end_dim:int?", lambda self, start_dim=0, end_dim=-1: self.flatten(start_dim, end_dim)
    ),
    "aten.unflatten.int": _operation(M, "self:tensor dim:int sizes:sizes", lambda self, dim, sizes: self.unflatten(dim, sizes)),
    "aten.select.int": _operation(M, "self:tensor dim:int index:int", lambda self, dim, index: self.select(dim, index)),
    "aten.slice.Tensor": _operation(M, "self:tensor dim:int? start:size? end:size? step:int?", _slice),
    "aten.narrow.default": _operation(
        M, "self:tensor dim:int start:size length:size", lambda self, dim, start, length: self.narrow(dim, start, length)
    ),
    "aten.split.Tensor": _operation(M, "self:tensor split_size:int dim:int?", _split),
    "aten.split_with_sizes.default": _operation(
        M, "self:tensor split_sizes:ints dim:int?", lambda self, split_sizes, dim=0: list(self.split(split_sizes, dim))
    ),
    "aten.split.sizes": _operation(M, "self:tensor split_size:ints dim:int?", _split),
    "aten.chunk.default": _operation(M, "self:tensor chunks:int dim:int?", _chunk),
    "aten.unbind.int": _operation(M, "self:tensor dim:int?", _unbind),
    "getitem": _operation(M, "parts:tensors index:int", lambda parts, index: parts[index]),
    "aten.dropout.default": _operation(M, "self:tensor p:number train:bool", _dropout),
    # element types
    "aten.to.dtype": _operation(C, "self:tensor dtype:dtype non_blocking:bool? copy:bool?", lambda self, dtype, **_: _cast(self, dtype)),
    "aten.to.dtype_layout": _operation(C, "self:tensor dtype:dtype?", _cast),
    "aten.to.device": _operation(C, "self:tensor device:text? dtype:dtype? non_blocking:bool? copy:bool?", lambda self, dtype=None, **_: _cast(self, dtype)),
    "aten._to_copy.default": _operation(C, "self:tensor dtype:dtype?", _copy),
    "aten.type_as.default": _operation(C, "self:tensor other:tensor", lambda self, other: self.to(other.dtype)),
    # constants
    "aten.zeros.default": _operation(K, "size:sizes dtype:dtype?", torch.zeros),
    "aten.ones.default": _operation(K, "size:sizes dtype:dtype?", torch.ones),
    "aten.full.default": _operation(K, "size:sizes fill_value:number dtype:dtype?", torch.full),
    "aten.arange.default": _operation(K, "end:number dtype:dtype?", lambda end, **type_: torch.arange(end, **type_)),
    "aten.arange.start": _operation(K, "start:number end:number dtype:dtype?", lambda start, end, **type_: torch.arange(start, end, **type_)),
    "aten.arange.start_step": _operation(
        K, "start:number end:number step:number dtype:dtype?", lambda start, end, step, **type_: torch.arange(start, end, step, **type_)
    ),
    "aten.new_zeros.default": _operation(K, "self:tensor size:sizes dtype:dtype?", lambda self, size, **type_: self.new_zeros(size, **type_)),
    "aten.new_ones.default": _operation(K, "self:tensor size:sizes dtype:dtype?", lambda self, size, **type_: self.new_ones(size, **type_)),
    "aten.new_full.default": _operation(
        K, "self:tensor size:sizes fill_value:number dtype:dtype?", lambda self, size, fill_value, **type_: self.new_full(size, fill_value, **type_)
    ),
    "aten.zeros_like.default": _operation(K, "self:tensor dtype:dtype?", lambda self, **type_: torch.zeros_like(self, **type_)),
    "aten.ones_like.default": _operation(K, "self:tensor dtype:dtype?", lambda self, **type_: torch.ones_like(self, **type_)),
    "aten.full_like.default": _operation(
        K, "self:tensor fill_value:number dtype:dtype?", lambda self, fill_value, **type_: torch.full_like(self, fill_value, **type_)
    ),
    # sizes
    "aten.sym_size.int": _operation(S, "self:tensor dim:int", lambda self, dim: int(self.shape[dim])),
    "size.mul": _operation(S, "left:size right:size", lambda left, right: left * right),
    "size.add": _operation(S, "left:size right:size", lambda left, right: left + right),
    "size.sub": _operation(S, "left:size right:size", lambda left, right: left - right),
    "size.floordiv": _operation(S, "left:size right:size", lambda left, right: left // right),
}
# fmt: on

HINTS: dict[str, str] = {
    "div": "multiply by a number computed beforehand: x * (1 / 8)",
    "pow": "multiply: x * x",
    "square": "multiply: x * x",
    "mean": "sum and multiply by a fraction computed beforehand: x.sum(-1) * (1 / 64)",
    "softmax": "weights must come from relu, multiplication and addition, as in relu(q @ k) * (1 / length)",
    "where": "multiply by a constant of zeros and ones; a property of a token can be an embedding of its id",
    "masked_fill": "multiply by a constant of zeros and ones, or add a constant",
    "eq": "no comparisons: a property of a token can be an embedding of its id",
    "layer_norm": "scale by constants or learned weights; start residual branches small",
    "dropout": "use nn.Dropout or pass self.training",
    "copy": "build the tensor from parts with cat, stack or pad",
    "fill": "build the tensor from parts with cat, stack or pad",
    "index_put": "build the tensor from parts with cat, stack or pad",
    "conv1d": "pad, take windows with unfold or as_strided, and use a Linear layer",
    "scaled_dot_product_attention": "weights must come from relu, multiplication and addition",
    "squeeze": "name the dimension: x.squeeze(-1)",
    "repeat": "use expand and reshape",
    "tril": "multiply by a constant of zeros and ones made in __init__",
    "triu": "multiply by a constant of zeros and ones made in __init__",
    "roll": "put two slices together with cat",
    "flip": "index with a constant tensor of positions",
    "addcmul": "write a + b * c",
}
IN_PLACE_HINT = "write it without changing a tensor in place: x = x + y, torch.relu(x)"
