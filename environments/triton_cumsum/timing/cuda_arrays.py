"""The worker's side on a GPU: CUDA tensors over the memory that the scorer shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from environments.triton_cumsum.timing.arrays import ResultRefused
from environments.triton_cumsum.timing.cuda_driver import SharedRegion, tensor_over, wait_for_everything
from environments.triton_cumsum.timing.memory import INPUTS, OUTPUTS, Layout, Shapes


class DeviceArrays:
    """Tensors over shared device memory."""

    def __init__(self, layout: Layout, descriptors: dict[str, int], device: str) -> None:
        import torch

        self._torch = torch
        self._device = torch.device(device)
        torch.cuda.set_device(self._device)
        torch.zeros(1, device=self._device)  # makes the context that the driver calls below work in
        number = self._device.index or 0
        self._layout = layout
        self._in = SharedRegion.open(descriptors[INPUTS], layout.input_bytes, number)
        self._out = SharedRegion.open(descriptors[OUTPUTS], layout.output_bytes, number)

    def inputs(self, slot: int, shapes: Shapes) -> tuple[Any, ...]:
        return tuple(
            tensor_over(
                self._in.address + self._layout.input_place(slot, index),
                shape,
                block.dtype,
                str(self._device),
            )
            for index, (block, shape) in enumerate(zip(self._layout.inputs, shapes.inputs, strict=True))
        )

    def output(self, slot: int, shapes: Shapes) -> Any:
        place = self._out.address + self._layout.output_place(slot)
        return tensor_over(place, shapes.output, self._layout.output.dtype, str(self._device))

    def deliver(self, result: Any, output: Any) -> None:
        if type(result) is not self._torch.Tensor:
            raise ResultRefused(f"expected a torch.Tensor, found {type(result).__name__}")
        if result.dtype != output.dtype or result.shape != output.shape or result.device != output.device:
            raise ResultRefused(
                f"expected {output.dtype} of shape {list(output.shape)} on {output.device}, "
                f"found {result.dtype} of shape {list(result.shape)} on {result.device}"
            )
        output.copy_(result)

    def stopwatch(self) -> Callable[[], float]:
        """Measure by events on the device, from the first call's start to the last one's end."""
        first = self._torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        last = self._torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        first.record()

        def stop() -> float:
            last.record()
            wait_for_everything()
            return float(first.elapsed_time(last)) / 1000

        return stop
