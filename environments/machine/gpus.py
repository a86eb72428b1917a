"""NVIDIA cards through the driver's management library (NVML): the one place that asks it anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

_REASONS = {0x04: "power cap", 0x08: "hardware slowdown", 0x20: "temperature", 0x40: "hardware temperature",
            0x80: "hardware power brake"}  # fmt: skip


class GpusUnreadable(OSError):
    """NVML is absent or does not answer."""


class GpuReading(msgspec.Struct, frozen=True):
    """One look at a card; None where the driver does not say."""

    index: int
    """As the driver numbers cards, which is not as CUDA does."""
    name: str
    utilisation: int | None = None
    """Per cent of the last moment in which anything ran."""
    memory_used: int | None = None
    """Bytes."""
    memory_total: int | None = None
    """Bytes."""
    power_watts: float | None = None
    temperature: int | None = None
    """Degrees Celsius."""
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    throttled: tuple[str, ...] = ()
    """Why its clocks are held down."""
    mig: bool = False
    processes: dict[int, int | None] = {}
    """Process id -> bytes it holds."""
    problem: str | None = None
    """Why the card could not be read at all."""


class Nvml:
    """The driver's management library, opened.

    Raises:
        GpusUnreadable: the library or the driver is not there.
    """

    def __init__(self, library: Any = None) -> None:
        """`library` is what `import pynvml` gives; tests bring their own."""
        self._nvml = nvml = library or _library()
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            raise GpusUnreadable(f"NVML does not answer: {error}") from error

    def close(self) -> None:
        self._nvml.nvmlShutdown()

    def count(self) -> int:
        """Return how many cards there are.

        Raises:
            GpusUnreadable: the driver does not say.
        """
        try:
            return int(self._nvml.nvmlDeviceGetCount())
        except self._nvml.NVMLError as error:
            raise GpusUnreadable(f"NVML does not count cards: {error}") from error

    def read(self, index: int) -> GpuReading:
        """Look at card `index` of the driver's."""
        try:
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            return self.read_handle(handle, index)
        except self._nvml.NVMLError as error:
            return GpuReading(index, f"GPU {index}", problem=str(error))

    def read_handle(self, handle: Any, index: int = 0) -> GpuReading:
        """Look at the card with NVML's `handle`."""
        nvml = self._nvml
        memory = self.ask("nvmlDeviceGetMemoryInfo", handle)
        rates = self.ask("nvmlDeviceGetUtilizationRates", handle)
        power = self.ask("nvmlDeviceGetPowerUsage", handle)
        mig = self.ask("nvmlDeviceGetMigMode", handle)
        return GpuReading(
            index=index,
            name=_text(nvml.nvmlDeviceGetName(handle)),
            utilisation=None if rates is None else int(rates.gpu),
            memory_used=None if memory is None else int(memory.used),
            memory_total=None if memory is None else int(memory.total),
            power_watts=None if power is None else power / 1000,
            temperature=self.ask("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU),
            sm_clock_mhz=self.ask("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM),
            memory_clock_mhz=self.ask("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_MEM),
            throttled=_throttled(self.ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)),
            mig=bool(mig and mig[0]),
            processes={
                p.pid: p.usedGpuMemory for p in self.ask("nvmlDeviceGetComputeRunningProcesses", handle) or ()
            },
        )

    def ask(self, question: str, handle: Any, *arguments: Any) -> Any:
        """Return the driver's answer, or None where it has none."""
        try:
            return getattr(self._nvml, question)(handle, *arguments)
        except (self._nvml.NVMLError, AttributeError):
            return None

    def holders(self) -> set[int]:
        """Return the ids of all processes that hold memory of any card.

        Raises:
            GpusUnreadable: the driver does not list them.
        """
        nvml = self._nvml
        try:
            found: set[int] = set()
            for index in range(nvml.nvmlDeviceGetCount()):
                device = nvml.nvmlDeviceGetHandleByIndex(index)
                found.update(p.pid for p in nvml.nvmlDeviceGetComputeRunningProcesses(device))
                found.update(p.pid for p in nvml.nvmlDeviceGetGraphicsRunningProcesses(device))
        except nvml.NVMLError as error:
            raise GpusUnreadable(f"NVML does not list processes: {error}") from error
        return found

    def process_name(self, pid: int) -> str:
        """Return what the driver calls a process."""
        try:
            return _text(self._nvml.nvmlSystemGetProcessName(pid))
        except self._nvml.NVMLError:
            return "unknown"

    def find(self, uuid: str | None, bus: tuple[int, int, int] | None) -> Any:
        """Return the handle of the card with that identifier, or at that (domain, bus, slot); None where it is not sure.

        NVML numbers all cards of the machine, CUDA only those of CUDA_VISIBLE_DEVICES and in an order of its own, so
        that a number says nothing.
        """
        if uuid is not None:
            full = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
            if (found := self.ask("nvmlDeviceGetHandleByUUID", full)) is not None:
                return found
        if bus is not None:
            address = "{:08x}:{:02x}:{:02x}.0".format(*bus)
            if (found := self.ask("nvmlDeviceGetHandleByPciBusId", address)) is not None:
                return found
        return self._nvml.nvmlDeviceGetHandleByIndex(0) if self.count() == 1 else None

    def use_since(self, handle: Any, since: int) -> tuple[dict[int, int], int]:
        """Return what each process used at most of the multiprocessors since a moment, and the newest moment.

        Per cent, and microseconds; nothing where the driver does not tell.
        """
        samples = self.ask("nvmlDeviceGetProcessUtilization", handle, since)
        if samples is None:
            return {}, since
        most: dict[int, int] = {}
        for sample in samples:
            if sample.timeStamp > since:
                most[sample.pid] = max(most.get(sample.pid, 0), min(100, int(sample.smUtil)))
        return most, max([since, *(int(sample.timeStamp) for sample in samples)])


def _library() -> Any:
    try:
        import pynvml
    except ImportError as error:
        raise GpusUnreadable("the package nvidia-ml-py is not installed") from error
    return pynvml


def readings(nvml: Nvml) -> Iterator[GpuReading]:
    """Yield a look at every card."""
    for index in range(nvml.count()):
        yield nvml.read(index)


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _throttled(bits: int | None) -> tuple[str, ...]:
    return tuple(name for bit, name in _REASONS.items() if (bits or 0) & bit)
