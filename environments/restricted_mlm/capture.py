"""Runs inside the sandboxed worker: loads the participant's model and writes it down as a graph of plain operations.

Nothing here is trusted by the scorer; it only has to be faithful for honest participants.
"""

from __future__ import annotations

import contextlib
import math
import operator
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from environments.restricted_mlm.graph import (
    FORMAT,
    INPUT,
    Argument,
    CaptureProblem,
    ElementType,
    Graph,
    Node,
    Ref,
    Single,
    encode_graph,
    node_refs,
)

EXAMPLE_ROWS = 3
LARGEST_BATCH = 65_536

_SIZE_ARITHMETIC = {
    operator.mul: "size.mul",
    operator.add: "size.add",
    operator.sub: "size.sub",
    operator.floordiv: "size.floordiv",
}
_SAME_TENSOR = {
    "aten.lift_fresh_copy.default",
    "aten.lift_fresh.default",
    "aten.detach.default",
    "aten.detach_.default",
    "aten.alias.default",
}
_NO_RESULT = {"aten._assert_tensor_metadata.default", "aten.sym_constrain_range_for_size.default"}
_PLACEMENT = {"device", "pin_memory", "layout", "memory_format", "non_blocking", "copy"}
"""Keywords that say where a tensor lies, which the evaluator decides for itself."""


class NotCapturable(Exception):
    """The model cannot be written down; carries what the participant is told."""

    def __init__(self, what: str, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.problem = CaptureProblem(what=what, where=where, hint=hint)


def answer(request: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Answer the scorer: the graph and its weights, or the problem."""
    root: Path = request.places["root"]
    request.progress("importing model.py", None)
    torch.manual_seed(0)
    try:
        module = request.load("model.py")
        if not callable(getattr(module, "get_trained_model", None)):
            raise NotCapturable("model.py has no function get_trained_model()", "model.py")
        model = module.get_trained_model()
        request.progress("capturing the model", None)
        graph, weights = capture(model, request.body["vocabulary"], request.body["length"], root)
    except NotCapturable as error:
        problem = error.problem
        return {"problem": {"what": problem.what, "where": problem.where, "hint": problem.hint}}, {}
    return {}, {"graph": encode_graph(graph), "weights": save(weights)}


def capture(model: Any, vocabulary: int, length: int, root: Path) -> tuple[Graph, dict[str, torch.Tensor]]:
    """Return the model's graph and the tensors it refers to.

    Raises:
        NotCapturable: it is no module, or its forward cannot be traced with a free batch size.
    """
    if not isinstance(model, torch.nn.Module):
        raise NotCapturable(
            f"get_trained_model() returned {type(model).__name__}, not a torch.nn.Module", "model.py"
        )
    model = model.cpu().eval()
    ids = torch.arange(EXAMPLE_ROWS * length).remainder(vocabulary).reshape(EXAMPLE_ROWS, length)
    batch = torch.export.Dim("batch", min=1, max=LARGEST_BATCH)
    with torch.no_grad(), _autocast_ignored(), _size_decisions(root) as decided_at:
        try:
            program = torch.export.export(model, (ids,), dynamic_shapes=({0: batch},), strict=False)
        except Exception as error:
            raise _explain(error, root, decided_at) from error
    return _write_down(program, root)


def _write_down(program: Any, root: Path) -> tuple[Graph, dict[str, torch.Tensor]]:
    tensors = {
        **dict(program.named_parameters()),
        **dict(program.named_buffers()),
        **program.constants,
        **program.state_dict,
    }
    names: dict[str, str] = {}  # torch's node name -> our name
    weights: dict[str, str] = {}
    nodes: list[Node] = []
    user_inputs = [spec for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    if len(user_inputs) != 1:
        raise NotCapturable(
            f"forward must take the token ids and nothing else, not {len(user_inputs)} inputs", "model.py"
        )
    for spec in program.graph_signature.output_specs:
        if spec.kind.name != "USER_OUTPUT":
            raise NotCapturable(
                f"forward changes state it keeps between calls ({spec.kind.name.lower()}: {spec.target})",
                hint="a model may carry nothing from one call to the next: compute new tensors and leave buffers alone",
            )
    targets = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs}
    output = ""
    for node in program.graph.nodes:
        if node.op == "placeholder":
            target = targets[node.name]
            names[node.name] = INPUT if target is None else node.name
            if target is not None:
                weights[node.name] = target
        elif node.op == "call_function":
            _write_node(node, names, nodes, root)
        elif node.op == "output":
            (results,) = node.args
            if len(results) != 1 or not isinstance(results[0], torch.fx.Node):
                raise NotCapturable("forward must return one tensor of logits and nothing else", "model.py")
            output = names[results[0].name]
        else:
            raise NotCapturable(
                f"the graph holds a part of kind {node.op} ({node.target})",
                hint="write forward without control flow and context managers other than autocast and no_grad",
            )
    used = {name for node in nodes for name in node_refs(node)} | {output}
    weights = {name: key for name, key in weights.items() if name in used}
    return (
        Graph(format=FORMAT, weights=weights, nodes=nodes, output=output),
        {key: tensors[key].detach().cpu().contiguous().clone() for key in set(weights.values())},
    )


def _write_node(node: Any, names: dict[str, str], nodes: list[Node], root: Path) -> None:
    target = node.target
    op = _SIZE_ARITHMETIC.get(target) or ("getitem" if target is operator.getitem else str(target))
    where = source_line(node.meta.get("stack_trace"), root)
    if op in _NO_RESULT:
        return
    if op in _SAME_TENSOR:
        names[node.name] = names[node.args[0].name]
        return
    try:
        arguments = [_argument(argument, names) for argument in node.args]
        keywords = {
            key: _argument(value, names) for key, value in node.kwargs.items() if key not in _PLACEMENT
        }
    except NotCapturable as error:
        raise NotCapturable(f"{op}: {error.problem.what}", where, error.problem.hint) from error
    names[node.name] = node.name
    nodes.append(Node(node.name, op, arguments, keywords, where))


def _argument(value: Any, names: dict[str, str]) -> Argument:
    if isinstance(value, (list, tuple)):
        return [_single(item, names) for item in value]
    return _single(value, names)


def _single(value: Any, names: dict[str, str]) -> Single:
    if isinstance(value, torch.fx.Node):
        return Ref(names[value.name])
    if isinstance(value, torch.dtype):
        return ElementType(str(value).removeprefix("torch."))
    if isinstance(value, float) and not math.isfinite(value):
        raise NotCapturable(f"the literal {value} is not a finite number", hint="use a large finite number")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.device):
        return None
    raise NotCapturable(f"an argument of type {type(value).__name__} has no place in the graph")


def source_line(trace: str | None, root: Path) -> str | None:
    """Return the innermost line of `trace` that lies in the submission, as `model.py:41`."""
    found = None
    for file, line in re.findall(r'File "([^"]+)", line (\d+)', trace or ""):
        with contextlib.suppress(ValueError):
            found = f"{Path(file).relative_to(root).as_posix()}:{line}"
    return found


@contextlib.contextmanager
def _autocast_ignored() -> Iterator[None]:
    """Let autocast regions run in the tensors' own precision, so that they leave no nested graph behind."""
    kind: Any = torch.amp.autocast_mode.autocast
    enter, leave = kind.__enter__, kind.__exit__
    kind.__enter__, kind.__exit__ = lambda self: self, lambda self, *_: None
    try:
        yield
    finally:
        kind.__enter__, kind.__exit__ = enter, leave


@contextlib.contextmanager
def _size_decisions(root: Path) -> Iterator[list[str]]:
    """Collect the participant's lines at which the trace was narrowed to some batch sizes."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    kind: Any = ShapeEnv
    evaluate = kind.evaluate_expr
    found: list[str] = []

    def watched(self: Any, *arguments: Any, **keywords: Any) -> Any:
        before = len(self.guards)
        result = evaluate(self, *arguments, **keywords)
        if len(self.guards) > before:
            frames = traceback.extract_stack()
            line = source_line("\n".join(f'File "{f.filename}", line {f.lineno}' for f in frames), root)
            found.extend([line] if line else [])
        return result

    kind.evaluate_expr = watched
    try:
        yield found
    finally:
        kind.evaluate_expr = evaluate


_DEPENDS_ON_BATCH = "the model depends on the batch size"
_EXPLANATIONS = (
    (
        r"GuardOnDataDependent|data.dependent|_local_scalar_dense|\.item\(\)",
        "the model's path or shape depends on tensor values",
        "no `if`, `while`, `.item()`, `int(...)` or boolean index on values: write the same computation for every input",
    ),
    (
        r"ConstraintViolation|Constraints violated|specialized|batch.*(constant|divisible)|must be equal to \d+",
        _DEPENDS_ON_BATCH,
        "forward must work for any number of rows: take it from ids.shape[0] and use it in shapes only",
    ),
)


def _explain(error: Exception, root: Path, decided_at: list[str]) -> NotCapturable:
    """Turn what torch.export raised into one sentence with the participant's line."""
    text = f"{type(error).__name__}: {error}"
    where = None
    step: BaseException | None = error
    while step is not None and where is None:
        frames = []
        trace = step.__traceback__
        while trace is not None:
            frames.append(f'File "{trace.tb_frame.f_code.co_filename}", line {trace.tb_lineno}')
            trace = trace.tb_next
        where = source_line("\n".join(frames), root)
        step = step.__cause__ or step.__context__
    where = where or source_line(text, root)
    for pattern, what, hint in _EXPLANATIONS:
        if re.search(pattern, text):
            if what == _DEPENDS_ON_BATCH and decided_at:
                where = decided_at[0]
            return NotCapturable(what, where, hint)
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return NotCapturable(
        f"torch.export could not capture the model: {type(error).__name__}: {first[:300]}",
        where,
        "`rebench-workbench check` runs this capture; the brief lists ways to write what cannot be captured",
    )
