"""Reads a GPU's state through NVML: who else uses it, and its clocks, temperature and power while something is timed."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from environments.contract import Value
from environments.machine.gpus import GpusUnreadable, Nvml

BUSY_PERCENT = 5
"""Utilisation from which a GPU counts as busy."""


class GpuUser(Value, frozen=True):
    """A process on the GPU, and what it did there since the last look."""

    pid: int
    name: str
    memory_mb: float | None = None
    active: int | None = None
    """Per cent of the GPU's multiprocessors that it used at most since the last look."""
    listed: bool = True
    """Whether the driver lists it now; else only its use since the last look is known."""

    def label(self) -> str:
        memory = "" if self.memory_mb is None else f", {self.memory_mb:,.0f} MB"
        return f"{self.name} (process {self.pid}{memory})"


class GpuReading(Value, frozen=True):
    """One look at a GPU; None where the driver does not say."""

    name: str | None = None
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttled: tuple[str, ...] = ()
    utilisation: int | None = None
    """Per cent of the last moment in which anything ran."""
    processes: tuple[GpuUser, ...] = ()


class GpuReader(Protocol):
    """Where readings come from."""

    def read(self) -> GpuReading | None:
        """Look once; None where there is no NVML."""


class NvmlReader:
    """Readings of the device that PyTorch calls `device`."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._nvml: Nvml | None = None
        self._handle: Any = None
        self._since = 0
        """Microseconds of the newest sample of use that was seen."""

    def read(self) -> GpuReading | None:
        try:
            if self._nvml is None:
                self._nvml = Nvml()
                self._handle = self._find(self._nvml)
            if self._handle is None:
                return None
            active, self._since = self._nvml.use_since(self._handle, self._since)
            return _look(self._nvml, self._handle, active)
        except GpusUnreadable:
            return None

    def _find(self, nvml: Nvml) -> Any:
        """Return NVML's handle; None where the device cannot be told from others."""
        import torch

        try:
            return find_handle(nvml, torch.cuda.get_device_properties(self._device))
        except (RuntimeError, AssertionError):
            return None


def find_handle(nvml: Nvml, properties: Any) -> Any:
    """Return NVML's handle of the device with PyTorch's `properties`; None where it cannot be told from others."""
    uuid = getattr(properties, "uuid", None)
    place = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    domain, bus, slot = (part if isinstance(part, int) else None for part in place)
    at = None if domain is None or bus is None or slot is None else (domain, bus, slot)
    return nvml.find(None if uuid is None else str(uuid), at)


class ScriptedReader:
    """Readings given beforehand, for tests."""

    def __init__(self, readings: Sequence[GpuReading | None]) -> None:
        self._readings = list(readings)

    def read(self) -> GpuReading | None:
        return self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]


def why_busy(
    reader: GpuReader, *, own: Collection[int] = (), looks: int = 6, pause: float = 0.3
) -> str | None:
    """Return why nothing should be timed on the GPU now, naming the processes; None when it is idle or nothing can be told.

    Ask while neither this process nor those in `own` use the GPU. One idle look is enough: the driver's figure lags
    behind by up to a second. A process that only holds memory does not disturb and is let be.
    """
    least, reading = 100, None
    for number in range(looks):
        if number:
            time.sleep(pause)
        reading = reader.read()
        if reading is None or (reading.utilisation or 0) < BUSY_PERCENT:
            return None
        least = min(least, reading.utilisation or 0)
    assert reading is not None
    others = [p.label() for p in reading.processes if p.pid != os.getpid() and p.pid not in own]
    whom = f"by {', '.join(others)}" if others else "by processes that the driver does not list"
    return f"the GPU is in use ({least} % and more) {whom}; stop them and score again"


def summary(before: GpuReading | None, after: GpuReading | None) -> dict[str, Any]:
    """Return two readings for a score's details."""
    import msgspec

    return {
        name: msgspec.to_builtins(reading)
        for name, reading in (("before", before), ("after", after))
        if reading is not None
    }


def _look(nvml: Nvml, handle: Any, active: Mapping[int, int]) -> GpuReading:
    found = nvml.read_handle(handle)
    pids = {**dict.fromkeys(active), **dict.fromkeys(found.processes)}
    return GpuReading(
        name=found.name,
        sm_clock_mhz=found.sm_clock_mhz,
        memory_clock_mhz=found.memory_clock_mhz,
        temperature_c=found.temperature,
        power_w=found.power_watts,
        throttled=found.throttled,
        utilisation=found.utilisation,
        processes=tuple(_user(nvml, pid, found.processes, active) for pid in pids),
    )


def _user(nvml: Nvml, pid: int, held: Mapping[int, int | None], active: Mapping[int, int]) -> GpuUser:
    memory = held.get(pid)
    return GpuUser(
        pid,
        nvml.process_name(pid)[-80:],
        None if memory is None else memory / 2**20,
        active.get(pid),
        listed=pid in held,
    )
