"""The machine: each GPU with its history and processes, or CPU, memory and disk where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sessions.telemetry.samples import Gpu, Sample
from workbench.ink import words
from workbench.ink.lines import EMPTY, Line, Span, Tone, beside, gauge, heading, sparkline
from workbench.ink.text import cut, one_line
from workbench.tui.view import HISTORY, View
from workbench.tui.widgets.drawing import Drawing

STALE_SECONDS = 5
LOW_DISK = 5_000_000_000
_SPARK = 24
"""Cells of a history; longer ones say no more."""
Figure = Callable[[Sample], float | None]


def machine(view: View, width: int, height: int) -> list[Line]:
    """Return the panel; says N/A, MIG and stale plainly."""
    sample = view.sample
    label = "GPU" if sample and sample.gpus else "MACHINE"
    if sample is None:
        return [heading(label, width), EMPTY, (("no figures yet", Tone.MUTED),)]
    stale = view.stale_seconds > STALE_SECONDS
    marker: Line = ((f"stale {int(view.stale_seconds)} s", Tone.WARN),) if stale else EMPTY
    lines = [heading(label, width, right=marker)]
    if height >= 7:
        lines.append(EMPTY)
    room = height - len(lines)
    if sample.gpus:
        lines += _gpus(view.samples, sample, width, room)
    else:
        if sample.gpu_problem:
            lines.append(
                (("GPU  N/A  ", Tone.BAD), (cut(one_line(sample.gpu_problem), width - 10), Tone.MUTED))
            )
        lines += _host(view.samples, sample, width, room)
    return lines


def _gpus(samples: Sequence[Sample], sample: Sample, width: int, room: int) -> list[Line]:
    """Give each device two lines, the rest to processes, and the last to the machine."""
    lines: list[Line] = []
    each = max(1, (room - 1) // max(1, len(sample.gpus)))
    spaced = each >= 4
    for gpu in sample.gpus:
        lines += _gpu(samples, gpu, width, each - spaced)
        lines += [EMPTY] if spaced else []
    return [*lines[: room - 1], _short_host(sample, width)]


def _gpu(samples: Sequence[Sample], gpu: Gpu, width: int, room: int) -> list[Line]:
    if gpu.problem:
        return [((f"{gpu.index}  {cut(one_line(gpu.name), width // 2)}  ", Tone.TEXT), ("lost  ", Tone.BAD),
                 (one_line(gpu.problem), Tone.MUTED))]  # fmt: skip
    degrees = "N/A" if gpu.temperature is None else f"{gpu.temperature:.0f} °C"
    watts = "N/A" if gpu.power_watts is None else f"{gpu.power_watts:.0f} W"
    name: list[Span] = [(f"{gpu.index}  ", Tone.MUTED), (one_line(gpu.name), Tone.TEXT)]
    if gpu.mig:
        name.append(("  MIG", Tone.WARN))
    title = beside(tuple(name), ((f"{degrees}  {watts:>6}", Tone.MUTED),), width)
    index = gpu.index
    busy = _percent(gpu.utilisation)
    memory = f"{words.gigabytes(gpu.memory_used)} / {words.gigabytes(gpu.memory_total)} GB"
    room_left = width - len(busy) - len(memory) - 4
    history = _history(samples, lambda one: _utilisation(one, index), min(_SPARK, room_left))
    figures = beside(
        ((busy, Tone.STRONG), ("  ", Tone.TEXT), (history, Tone.SPARK)), ((memory, Tone.TEXT),), width
    )
    if room <= 1:
        return [figures]
    spare = room - 2
    processes = [_process(pid, name, owner, memory, width) for pid, name, owner, memory in (
        (one.pid, one.name, one.owner, one.memory_bytes) for one in gpu.processes)]  # fmt: skip
    if len(processes) > spare:
        hidden = len(processes) - max(0, spare - 1)
        processes = [*processes[: max(0, spare - 1)], ((f"           and {hidden} more", Tone.MUTED),)]
        processes = processes[:spare]
    return [title, figures, *processes]


def _process(pid: int, name: str, owner: str, memory: int | None, width: int) -> Line:
    left: Line = (
        (f"   {pid:>7} ", Tone.MUTED),
        (one_line(name), Tone.TEXT),
        (f"  {one_line(owner)}", Tone.MUTED),
    )
    return beside(
        left, ((f"{words.gigabytes(memory)} GB" if memory is not None else "N/A", Tone.TEXT),), width
    )


def _utilisation(sample: Sample, index: int) -> float | None:
    return next((gpu.utilisation for gpu in sample.gpus if gpu.index == index), None)


def _host(samples: Sequence[Sample], sample: Sample, width: int, room: int) -> list[Line]:
    """Return CPU, memory and disk, a line each, with their histories."""
    brief = width < 36
    cores = f"load {sample.load:.1f}" if brief else f"{len(sample.cpu_each)} cores · load {sample.load:.1f}"
    memory_share = 100 * sample.memory_used / max(1, sample.memory_total)
    memory = f"{words.gigabytes(sample.memory_used)} of {words.gigabytes(sample.memory_total)} GB"
    disk = f"{words.gigabytes(sample.disk_free)} GB free"
    disk_share = 100 - 100 * sample.disk_free / max(1, sample.disk_total)
    tail = max(len(cores), len(memory), len(disk))
    bar = width - 13 - tail
    spark = min(_SPARK, bar)
    blank = [EMPTY] if room >= 6 else []
    low = sample.disk_free < LOW_DISK
    return [
        ((f"cpu  {_percent(sample.cpu_percent)}  ", Tone.TEXT),
         (_history(samples, lambda one: one.cpu_percent, spark), Tone.SPARK), (" " * (bar - spark) + f"  {cores:>{tail}}", Tone.MUTED)),
        *blank,
        ((f"mem  {_percent(memory_share)}  ", Tone.TEXT), *gauge(memory_share / 100, max(0, bar)),
         (f"  {memory:>{tail}}", Tone.MUTED)),
        *blank,
        ((f"disk {_percent(disk_share)}  ", Tone.TEXT),
         *gauge(disk_share / 100, max(0, bar), Tone.BAD if low else Tone.ACCENT),
         (f"  {disk:>{tail}}", Tone.BAD if low else Tone.MUTED)),
    ]  # fmt: skip


def _short_host(sample: Sample, width: int) -> Line:
    text = (
        f"cpu {sample.cpu_percent:.0f} % · mem {words.gigabytes(sample.memory_used)}/"
        f"{words.gigabytes(sample.memory_total)} GB · disk {words.gigabytes(sample.disk_free)} GB"
    )
    return ((cut(text, width), Tone.BAD if sample.disk_free < LOW_DISK else Tone.MUTED),)


def _percent(value: float | None) -> str:
    return " N/A" if value is None else f"{value:3.0f}%"


def _history(samples: Sequence[Sample], figure: Figure, width: int) -> str:
    """Return ten minutes as bars, each a fixed slice of time, so that it moves only when a slice is full."""
    if width <= 0 or not samples:
        return ""
    slice_ns = HISTORY * 1_000_000_000 // width
    now = samples[-1].boottime // slice_ns
    slices: list[list[float]] = [[] for _ in range(width)]
    for sample in samples:
        at = width - 1 - (now - sample.boottime // slice_ns)
        value = figure(sample)
        if 0 <= at < width and value is not None:
            slices[at].append(value)
    return sparkline([sum(each) / len(each) if each else None for each in slices], width)


class Machine(Drawing):
    """See `machine`."""

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        return machine(view, width, height)
