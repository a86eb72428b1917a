"""The poller process: writes a sample a second to its standard output until nobody reads it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

from sessions.record.clock import Clock, SystemClock
from sessions.telemetry.backends import GpuBackend, machine_backend
from sessions.telemetry.samples import Gpu, Sample


def take_sample(clock: Clock, gpus: GpuBackend, place: Path) -> Sample:
    """Read the machine once; what cannot be read says so and hides nothing else."""
    problem = None
    devices: tuple[Gpu, ...] = ()
    try:
        devices = gpus.read()
    except Exception as error:  # noqa: BLE001  (drivers raise anything; the panel must say what)
        problem = f"{type(error).__name__}: {error}"
    each = tuple(psutil.cpu_percent(percpu=True))
    memory = psutil.virtual_memory()
    disk = psutil.disk_usage(str(place))
    network = psutil.net_io_counters()
    now = clock.now()
    return Sample(
        boottime=now.boottime,
        at=now.at,
        cpu_percent=round(sum(each) / max(1, len(each)), 1),
        cpu_each=each,
        load=os.getloadavg()[0],
        memory_used=memory.total - memory.available,
        memory_total=memory.total,
        disk_free=disk.free,
        disk_total=disk.total,
        network_sent=getattr(network, "bytes_sent", 0),
        network_received=getattr(network, "bytes_recv", 0),
        gpus=devices,
        gpu_problem=problem,
    )


def poll(
    place: Path,
    write: Callable[[bytes], object],
    *,
    every: float = 1.0,
    gpus: GpuBackend | None = None,
    clock: Clock | None = None,
) -> None:
    """Sample `place`'s machine until `write` fails because nobody reads any more."""
    backend, clock = gpus or machine_backend(), clock or SystemClock()
    psutil.cpu_percent(percpu=True)
    while True:
        began = time.monotonic()
        try:
            write(msgspec.json.encode(take_sample(clock, backend, place)) + b"\n")
        except OSError:
            return
        time.sleep(max(0.0, every - (time.monotonic() - began)))


def main() -> None:
    output = sys.stdout.buffer.raw if hasattr(sys.stdout.buffer, "raw") else sys.stdout.buffer
    poll(Path(sys.argv[1]), output.write)


if __name__ == "__main__":
    main()
