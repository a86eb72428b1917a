"""Reads a GPU's state through NVML: who else uses it, and its clocks, temperature and power while something is timed."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from environments.contract import Value

BUSY_PERCENT = 5
"""Utilisation from which a GPU counts as busy."""


class GpuProcess(Value, frozen=True):
    """A process that holds memory on the GPU."""

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
    processes: tuple[GpuProcess, ...] = ()


class GpuReader(Protocol):
    """Where readings come from."""

    def read(self) -> GpuReading | None:
        """Look once; None where there is no NVML."""


class NvmlReader:
    """Readings of the device that PyTorch calls `device`."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._handle: Any = None
        self._since = 0
        """Microseconds of the newest sample of use that was seen."""

    def read(self) -> GpuReading | None:
        try:
            import pynvml
        except ImportError:
            return None
        try:
            if self._handle is None:
                pynvml.nvmlInit()
                self._handle = self._find(pynvml)
            if self._handle is None:
                return None
            active, self._since = _samples(pynvml, self._handle, self._since)
            return _look(pynvml, self._handle, active)
        except pynvml.NVMLError:
            return None

    def _find(self, nvml: Any) -> Any:
        """Return NVML's handle; None where the device cannot be told from others.

        NVML numbers all cards of the machine, CUDA only those of CUDA_VISIBLE_DEVICES and in an order of its own, so
        that a number says nothing: the identifier does, or the address on the bus.
        """
        import torch

        try:
            properties = torch.cuda.get_device_properties(self._device)
        except (RuntimeError, AssertionError):
            return None
        return find_handle(nvml, properties)


def find_handle(nvml: Any, properties: Any) -> Any:
    """Return NVML's handle of the device with PyTorch's `properties`; None where it cannot be told from others."""
    if (uuid := getattr(properties, "uuid", None)) is not None:
        text = str(uuid)
        try:
            return nvml.nvmlDeviceGetHandleByUUID(
                text if text.startswith(("GPU-", "MIG-")) else f"GPU-{text}"
            )
        except nvml.NVMLError:
            pass
    domain, bus, slot = (getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device"))
    if isinstance(domain, int) and isinstance(bus, int) and isinstance(slot, int):
        try:
            return nvml.nvmlDeviceGetHandleByPciBusId(f"{domain:08x}:{bus:02x}:{slot:02x}.0")
        except nvml.NVMLError:
            pass
    return nvml.nvmlDeviceGetHandleByIndex(0) if nvml.nvmlDeviceGetCount() == 1 else None


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


def _samples(nvml: Any, handle: Any, since: int) -> tuple[dict[int, int], int]:
    """Return what each process used at most since a moment, and the newest moment; nothing where it is not told."""
    try:
        samples = nvml.nvmlDeviceGetProcessUtilization(handle, since)
    except (nvml.NVMLError, AttributeError):
        return {}, since
    most: dict[int, int] = {}
    for sample in samples:
        if sample.timeStamp > since:
            most[sample.pid] = max(most.get(sample.pid, 0), min(100, int(sample.smUtil)))
    return most, max([since, *(int(sample.timeStamp) for sample in samples)])


def _look(nvml: Any, handle: Any, active: Mapping[int, int]) -> GpuReading:
    def ask(question: str, *arguments: Any) -> Any:
        try:
            return getattr(nvml, question)(handle, *arguments)
        except (nvml.NVMLError, AttributeError):
            return None

    listed = {p.pid: p.usedGpuMemory for p in ask("nvmlDeviceGetComputeRunningProcesses") or ()}
    known = {**dict.fromkeys(active), **listed}
    power = ask("nvmlDeviceGetPowerUsage")
    rates = ask("nvmlDeviceGetUtilizationRates")
    name = ask("nvmlDeviceGetName")
    return GpuReading(
        name=name.decode() if isinstance(name, bytes) else name,
        sm_clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
        memory_clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        temperature_c=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        power_w=None if power is None else power / 1000,
        throttled=_throttled(ask("nvmlDeviceGetCurrentClocksThrottleReasons")),
        utilisation=None if rates is None else int(rates.gpu),
        processes=tuple(
            _process(nvml, pid, used, active.get(pid), listed=pid in listed) for pid, used in known.items()
        ),
    )


def _process(nvml: Any, pid: int, used: int | None, active: int | None, *, listed: bool) -> GpuProcess:
    try:
        name = nvml.nvmlSystemGetProcessName(pid)
    except nvml.NVMLError:
        name = "unknown"
    text = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
    return GpuProcess(pid, text[-80:], None if used is None else used / 2**20, active, listed)


_REASONS = {0x04: "power cap", 0x08: "hardware slowdown", 0x20: "temperature", 0x40: "hardware temperature",
            0x80: "hardware power brake"}  # fmt: skip


def _throttled(bits: int | None) -> tuple[str, ...]:
    return tuple(name for bit, name in _REASONS.items() if (bits or 0) & bit)
