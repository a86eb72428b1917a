"""Stands in for a GPU, so that `DeviceBench` and its worker can be tried on any machine: device memory is shared host
memory, kernels run on the host at once, events are clocks. Flags, revealing, reading and judging are the real code.

Imported on both sides: by a test, and by a worker's entry before the bench's own code is."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from typing import Any

DEVICE = "cpu:0"
"""Not `cpu`, which would mean the host's bench."""


class Region:
    """`SharedRegion` in memory of the host."""

    def __init__(self, descriptor: int, size: int, *, owner: bool) -> None:
        self.memory = mmap.mmap(descriptor, size)
        self._view = (ctypes.c_char * size).from_buffer(self.memory)
        self.address, self.size = ctypes.addressof(self._view), size
        self.descriptor = descriptor if owner else None

    @classmethod
    def create(cls, size: int, _device: int) -> Region:
        descriptor = os.memfd_create("device-twin")
        os.ftruncate(descriptor, size)
        return cls(descriptor, size, owner=True)

    @classmethod
    def open(cls, descriptor: int, size: int, _device: int) -> Region:
        return cls(descriptor, size, owner=False)

    def close(self) -> None:
        """Keep the mapping: arrays may still lie over it."""


class Event:
    def __init__(self, **_options: Any) -> None:
        self.at = 0.0

    def record(self, *_stream: Any) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, other: Event) -> float:
        return 1000 * (other.at - self.at)


def tensor_over(address: int, shape: Any, dtype: str, _device: str) -> Any:
    import torch

    kind = getattr(torch, dtype)
    count = 1
    for length in shape:
        count *= length
    if not count:
        return torch.empty(tuple(shape), dtype=kind)
    size = torch.empty(0, dtype=kind).element_size()
    raw = torch.frombuffer((ctypes.c_char * (count * size)).from_address(address), dtype=kind)
    return raw.view(tuple(shape))


def nothing(*_arguments: Any, **_options: Any) -> None:
    """Take the place of what only a GPU needs."""


def install(replace: Any = setattr) -> None:
    """Put the twin in the GPU's place in this process."""
    import torch

    from environments.triton_cumsum.timing import cuda_arrays, cuda_driver

    for module in (cuda_driver, cuda_arrays):
        replace(module, "SharedRegion", Region)
        replace(module, "tensor_over", tensor_over)
        replace(module, "wait_for_everything", nothing)
    replace(torch.cuda, "is_available", lambda: True)
    replace(torch.cuda, "set_device", nothing)
    replace(torch.cuda, "synchronize", nothing)
    replace(torch.cuda, "Event", Event)


def install_for_scorer(replace: Any) -> None:
    """The same for the process with the clock."""
    import torch

    install(replace)
    from environments.triton_cumsum.timing import device_bench

    replace(device_bench, "SharedRegion", Region)
    replace(device_bench, "tensor_over", tensor_over)
    replace(device_bench, "_FLUSH_BYTES", 2**20)
    replace(
        device_bench.DeviceBench, "_landing",
        lambda self, count: torch.empty(count, dtype=self._all_out.dtype),
    )  # fmt: skip
