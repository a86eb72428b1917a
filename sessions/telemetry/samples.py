"""What one sample holds, and the append-only file samples are kept in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec


class GpuProcess(msgspec.Struct, frozen=True, array_like=True):
    """A process with memory on a GPU."""

    pid: int
    name: str
    owner: str
    memory_bytes: int | None


class Gpu(msgspec.Struct, frozen=True, array_like=True):
    """One device. None is what the driver would not tell: shown as N/A, never as 0."""

    index: int
    name: str
    utilisation: float | None = None
    """Percent."""
    memory_used: int | None = None
    """Bytes."""
    memory_total: int | None = None
    """Bytes."""
    power_watts: float | None = None
    temperature: float | None = None
    """Degrees Celsius."""
    clock_mhz: int | None = None
    mig: bool = False
    processes: tuple[GpuProcess, ...] = ()
    problem: str | None = None
    """Why the device could not be read."""


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """The machine at one moment."""

    boottime: int
    """Nanoseconds, as in events."""
    at: str
    cpu_percent: float
    cpu_each: tuple[float, ...]
    load: float
    memory_used: int
    memory_total: int
    disk_free: int
    """Bytes free where the work tree lies."""
    disk_total: int
    network_sent: int
    """Bytes since boot."""
    network_received: int
    gpus: tuple[Gpu, ...] = ()
    gpu_problem: str | None = None
    """Why there are no GPUs to show, where that is news: a driver that failed."""


_decoder = msgspec.json.Decoder(Sample)


def read_samples(folder: Path) -> Iterator[Sample]:
    """Yield the samples of a record, passing over lines torn by a crash."""
    path = folder / "samples.jsonl"
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            with contextlib.suppress(msgspec.DecodeError):
                yield _decoder.decode(line)
