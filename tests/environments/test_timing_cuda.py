"""What of the GPU side can be held to without a GPU: structures, messages, and a round trip where there is one."""

from __future__ import annotations

import ctypes
import os
from types import SimpleNamespace
from typing import Any

import pytest

from environments.triton_cumsum.timing import cuda_driver
from environments.triton_cumsum.timing.cuda_driver import (
    ArrayInterface,
    CudaFailed,
    SharedRegion,
    tensor_over,
)


def test_structures_have_the_drivers_sizes() -> None:
    assert ctypes.sizeof(cuda_driver._Properties) == 32
    assert ctypes.sizeof(cuda_driver._Access) == 12


def test_an_array_interface_describes_contiguous_memory() -> None:
    said = ArrayInterface(4096, (2, 3), "|u1").__cuda_array_interface__
    assert said["data"] == (4096, False)
    assert said["shape"] == (2, 3)
    assert said["strides"] is None


def test_without_a_driver_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_name: str) -> ctypes.CDLL:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(cuda_driver.ctypes, "CDLL", absent)
    cuda_driver._library.cache_clear()
    with pytest.raises(CudaFailed, match=r"driver's library cannot be loaded: libcuda\.so\.1"):
        SharedRegion.create(4096, 0)
    cuda_driver._library.cache_clear()


def test_a_driver_call_that_fails_is_named_with_the_drivers_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def put_text(_status: object, text: Any) -> int:
        text._obj.value = b"out of memory"
        return 0

    driver = SimpleNamespace(cuMemGetAllocationGranularity=lambda *_: 2, cuGetErrorString=put_text)
    monkeypatch.setattr(cuda_driver, "_library", lambda: driver)
    with pytest.raises(CudaFailed, match="cuMemGetAllocationGranularity failed with error 2: out of memory"):
        SharedRegion.create(4096, 0)


@pytest.mark.gpu
def test_what_one_mapping_writes_the_other_reads() -> None:
    import torch

    torch.zeros(1, device="cuda")
    ours = SharedRegion.create(5_000_000, 0)
    assert ours.descriptor is not None
    theirs = SharedRegion.open(ours.descriptor, 5_000_000, 0)
    os.close(ours.descriptor)
    tensor_over(ours.address, (1000,), "int32", "cuda:0").fill_(7)
    assert int(tensor_over(theirs.address, (1000,), "int32", "cuda:0").sum()) == 7000
    theirs.close()
    ours.close()
