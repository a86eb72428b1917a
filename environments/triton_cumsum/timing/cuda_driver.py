"""GPU memory that two processes share through a file descriptor, by the CUDA driver's virtual memory calls.

A descriptor can be inherited by a sandboxed process under another account, where handles of `cudaIpcGetMemHandle` want a
common process id namespace. Standard library only; PyTorch must have made its context current first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

_FILE_DESCRIPTOR = 1
"""CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR"""
_PINNED = 1
"""CU_MEM_ALLOCATION_TYPE_PINNED"""
_DEVICE = 1
"""CU_MEM_LOCATION_TYPE_DEVICE"""
_READ_AND_WRITE = 3
"""CU_MEM_ACCESS_FLAGS_PROT_READWRITE; the driver has no read-only mapping of device memory."""


class CudaFailed(RuntimeError):
    """A driver call returned an error."""


class _Location(ctypes.Structure):
    _fields_: ClassVar[Sequence[tuple[str, Any]]] = (("kind", ctypes.c_int), ("device", ctypes.c_int))


class _Properties(ctypes.Structure):
    """CUmemAllocationProp"""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = (
        ("kind", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", _Location),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    """CUmemAccessDesc"""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = (("location", _Location), ("rights", ctypes.c_int))


class SharedRegion:
    """Device memory mapped into this process; `descriptor` is what another process imports."""

    def __init__(self, address: int, size: int, handle: int, descriptor: int | None) -> None:
        self.address, self.size, self.descriptor = address, size, descriptor
        self._handle = handle

    @classmethod
    def create(cls, size: int, device: int) -> SharedRegion:
        """Allocate at least `size` bytes on `device` and export them."""
        properties = _properties(device)
        granularity = ctypes.c_size_t()
        _call("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(properties), 0)
        size = -(-size // granularity.value) * granularity.value
        handle = ctypes.c_ulonglong()
        _call(
            "cuMemCreate", ctypes.byref(handle), _size(size), ctypes.byref(properties), ctypes.c_ulonglong(0)
        )
        descriptor = ctypes.c_int(-1)
        _call(
            "cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, _FILE_DESCRIPTOR,
            ctypes.c_ulonglong(0),
        )  # fmt: skip
        return cls(_map(handle, size, device), size, handle.value, descriptor.value)

    @classmethod
    def open(cls, descriptor: int, size: int, device: int) -> SharedRegion:
        """Map what another process exported with at least `size` bytes."""
        granularity = ctypes.c_size_t()
        properties = _properties(device)
        _call("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(properties), 0)
        size = -(-size // granularity.value) * granularity.value
        handle = ctypes.c_ulonglong()
        _call(
            "cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(descriptor),
            _FILE_DESCRIPTOR,
        )  # fmt: skip
        return cls(_map(handle, size, device), size, handle.value, None)

    def close(self) -> None:
        """Unmap and release; no array over the region may be used afterwards."""
        _call("cuMemUnmap", ctypes.c_ulonglong(self.address), _size(self.size))
        _call("cuMemRelease", ctypes.c_ulonglong(self._handle))
        _call("cuMemAddressFree", ctypes.c_ulonglong(self.address), _size(self.size))


class ArrayInterface:
    """Raw device memory as an object that PyTorch makes a tensor of without copying."""

    def __init__(self, address: int, shape: Sequence[int], typestr: str) -> None:
        self.__cuda_array_interface__ = {
            "shape": tuple(shape),
            "typestr": typestr,
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def tensor_over(address: int, shape: Sequence[int], dtype: str, device: str) -> Any:
    """Return a tensor of `shape` over device memory."""
    import torch

    kind = getattr(torch, dtype)
    if 0 in shape:
        return torch.empty(tuple(shape), dtype=kind, device=device)
    size = torch.empty(0, dtype=kind).element_size()
    count = 1
    for length in shape:
        count *= length
    raw = torch.as_tensor(ArrayInterface(address, (count * size,), "|u1"), device=device)
    return raw.view(kind).view(tuple(shape))


def wait_for_everything() -> None:
    """Wait until all work of this process's context is over, whatever has become of PyTorch's own functions."""
    _call("cuCtxSynchronize")


def _map(handle: ctypes.c_ulonglong, size: int, device: int) -> int:
    address = ctypes.c_ulonglong()
    zero = ctypes.c_ulonglong(0)
    _call("cuMemAddressReserve", ctypes.byref(address), _size(size), _size(0), zero, zero)
    _call("cuMemMap", address, _size(size), _size(0), handle, zero)
    access = _Access(_Location(_DEVICE, device), _READ_AND_WRITE)
    _call("cuMemSetAccess", address, _size(size), ctypes.byref(access), _size(1))
    return address.value


def _properties(device: int) -> _Properties:
    return _Properties(_PINNED, _FILE_DESCRIPTOR, _Location(_DEVICE, device), None)


def _size(value: int) -> ctypes.c_size_t:
    return ctypes.c_size_t(value)


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_library(), name)(*arguments)
    if status != 0:
        text = ctypes.c_char_p()
        _library().cuGetErrorString(ctypes.c_int(status), ctypes.byref(text))
        said = text.value.decode() if text.value else "unknown error"
        raise CudaFailed(f"{name} failed with error {status}: {said}")


@cache
def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise CudaFailed(f"the CUDA driver's library cannot be loaded: {error}") from error
