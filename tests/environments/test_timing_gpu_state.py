"""Whether a GPU is busy, from scripted readings."""

from __future__ import annotations

import os

from environments.triton_cumsum.timing.gpu_state import (
    GpuReading,
    GpuUser,
    NvmlReader,
    ScriptedReader,
    summary,
    why_busy,
)

TRAINING = GpuUser(pid=4242, name="python train.py", memory_mb=20_000.0)
OURS = GpuUser(pid=os.getpid(), name="python", memory_mb=500.0)


def busy(utilisation: int, *processes: GpuUser) -> GpuReading:
    return GpuReading(utilisation=utilisation, processes=processes)


def test_a_busy_gpu_is_refused_and_its_processes_named() -> None:
    why = why_busy(ScriptedReader([busy(93, TRAINING, OURS)]), pause=0.0)
    assert why is not None
    assert "python train.py (process 4242, 20,000 MB)" in why
    assert "93 %" in why
    assert str(os.getpid()) not in why


def test_processes_that_the_driver_does_not_list_are_said_to_be_there() -> None:
    why = why_busy(ScriptedReader([busy(50)]), pause=0.0)
    assert why is not None
    assert "does not list" in why


def test_memory_that_is_only_held_does_not_keep_from_timing() -> None:
    assert why_busy(ScriptedReader([busy(0, TRAINING)]), pause=0.0) is None


def test_a_figure_that_lags_behind_is_waited_for() -> None:
    assert why_busy(ScriptedReader([busy(80), busy(40), busy(1)]), pause=0.0) is None


def test_a_machine_without_nvml_is_not_refused() -> None:
    assert why_busy(ScriptedReader([None]), pause=0.0) is None


def test_readings_go_into_the_details_as_plain_values() -> None:
    told = summary(GpuReading(name="X", power_w=77.5, throttled=("power cap",)), None)
    assert told["before"]["throttled"] in (("power cap",), ["power cap"])
    assert "after" not in told


def test_without_a_gpu_nvml_gives_no_reading() -> None:
    reading = NvmlReader("cuda:0").read()
    assert reading is None or reading.name
