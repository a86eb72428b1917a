"""Where GPU figures come from: the driver's library, or a script in tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Protocol

from sessions.telemetry.samples import Gpu, GpuProcess


class GpuBackend(Protocol):
    """Whoever can read the devices; may be slow, may raise, may hang."""

    def read(self) -> tuple[Gpu, ...]: ...


class NoGpus:
    """A machine without GPUs."""

    def read(self) -> tuple[Gpu, ...]:
        return ()


class Nvml:
    """NVIDIA devices through the driver's management library.

    Raises:
        OSError: the library or the driver is not there.
    """

    def __init__(self) -> None:
        import pynvml

        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise OSError(f"no NVIDIA driver: {error}") from error

    def read(self) -> tuple[Gpu, ...]:
        return tuple(self._device(index) for index in range(self._nvml.nvmlDeviceGetCount()))

    def _device(self, index: int) -> Gpu:
        nvml = self._nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            name = nvml.nvmlDeviceGetName(handle)
        except nvml.NVMLError as error:
            return Gpu(index, f"GPU {index}", problem=str(error))
        memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        usage = self._ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        power = self._ask(nvml.nvmlDeviceGetPowerUsage, handle)
        mig = self._ask(nvml.nvmlDeviceGetMigMode, handle)
        return Gpu(
            index=index,
            name=name if isinstance(name, str) else name.decode(),
            utilisation=None if usage is None else float(usage.gpu),
            memory_used=None if memory is None else int(memory.used),
            memory_total=None if memory is None else int(memory.total),
            power_watts=None if power is None else power / 1000,
            temperature=self._ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            clock_mhz=self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            mig=bool(mig and mig[0]),
            processes=self._processes(handle),
        )

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """Return the driver's answer, or None where it has none."""
        try:
            return question(*arguments)
        except self._nvml.NVMLError:
            return None

    def _processes(self, handle: Any) -> tuple[GpuProcess, ...]:
        import psutil

        found = self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()
        processes = []
        for process in found:
            name, owner = "?", "?"
            with contextlib.suppress(psutil.Error):
                running = psutil.Process(process.pid)
                name, owner = running.name(), running.username()
            processes.append(GpuProcess(process.pid, name, owner, process.usedGpuMemory))
        return tuple(processes)


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
        return Nvml()
    except (OSError, ImportError):
        return NoGpus()
