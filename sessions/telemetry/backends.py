"""Where GPU figures come from: the driver's library, or a script in tests."""

from __future__ import annotations

import contextlib
from typing import Protocol

from environments.machine.gpus import GpuReading, GpusUnreadable, Nvml, readings
from sessions.telemetry.samples import Gpu, GpuProcess


class GpuBackend(Protocol):
    """Whoever can read the devices; may be slow, may raise, may hang."""

    def read(self) -> tuple[Gpu, ...]: ...


class NoGpus:
    """A machine without GPUs."""

    def read(self) -> tuple[Gpu, ...]:
        return ()


class DriverGpus:
    """NVIDIA devices through the driver's management library, with who owns the processes on them.

    Raises:
        GpusUnreadable: the library or the driver is not there.
    """

    def __init__(self) -> None:
        self._nvml = Nvml()

    def read(self) -> tuple[Gpu, ...]:
        return tuple(map(_sampled, readings(self._nvml)))


def _sampled(reading: GpuReading) -> Gpu:
    return Gpu(
        index=reading.index,
        name=reading.name,
        utilisation=None if reading.utilisation is None else float(reading.utilisation),
        memory_used=reading.memory_used,
        memory_total=reading.memory_total,
        power_watts=reading.power_watts,
        temperature=reading.temperature,
        clock_mhz=reading.sm_clock_mhz,
        mig=reading.mig,
        processes=tuple(_owned(pid, held) for pid, held in reading.processes.items()),
        problem=reading.problem,
    )


def _owned(pid: int, held: int | None) -> GpuProcess:
    import psutil

    name, owner = "?", "?"
    with contextlib.suppress(psutil.Error):
        running = psutil.Process(pid)
        name, owner = running.name(), running.username()
    return GpuProcess(pid, name, owner, held)


class ScriptedGpus:
    """Devices that say what a test gives them; an exception in the list is raised."""

    def __init__(self, *readings: tuple[Gpu, ...] | Exception) -> None:
        self._readings = list(readings)

    def read(self) -> tuple[Gpu, ...]:
        reading = self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]
        if isinstance(reading, Exception):
            raise reading
        return reading


def machine_backend() -> GpuBackend:
    """Return the backend of this machine."""
    try:
        return DriverGpus()
    except GpusUnreadable:
        return NoGpus()
