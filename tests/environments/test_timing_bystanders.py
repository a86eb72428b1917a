"""Others on the GPU while something is timed, from scripted readings."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from environments.machine.gpus import Nvml
from environments.triton_cumsum.timing.bystanders import Bystanders, own_processes
from environments.triton_cumsum.timing.gpu_state import (
    GpuReading,
    GpuUser,
    ScriptedReader,
    find_handle,
)

ME = GpuUser(pid=os.getpid(), name="scorer", memory_mb=9000.0, active=60)
WORKER = GpuUser(pid=70_001, name="worker", memory_mb=3000.0, active=90)
NOTEBOOK = GpuUser(pid=70_002, name="jupyter", memory_mb=4000.0)
TRAINING = GpuUser(pid=70_003, name="python train.py", memory_mb=20_000.0, active=97)


def busy(process: GpuUser, active: int) -> GpuUser:
    return GpuUser(process.pid, process.name, process.memory_mb, active)


def idle(*processes: GpuUser) -> GpuReading:
    return GpuReading(utilisation=0, processes=processes)


def at_work(*processes: GpuUser) -> GpuReading:
    return GpuReading(utilisation=99, processes=(ME, WORKER, *processes))


def bystanders(*readings: GpuReading | None) -> Bystanders:
    """Return them after the look before the scoring, which takes two of the readings."""
    own = {os.getpid(), WORKER.pid}
    made = Bystanders(ScriptedReader(readings), own=lambda: own, pause=0.0)
    assert made.why_busy() is None
    return made


def test_the_workers_own_processes_disturb_nobody() -> None:
    others = bystanders(idle(), idle(), at_work())
    assert others.why_disturbed() is None
    assert others.looks == 1


def test_who_comes_meanwhile_is_named() -> None:
    why = bystanders(idle(), idle(), at_work(TRAINING)).why_disturbed()
    assert why is not None
    assert "python train.py (process 70003" in why
    assert "worker" not in why


def test_who_comes_and_only_holds_memory_is_named_when_still_there_at_a_second_look() -> None:
    newcomer = GpuUser(pid=70_009, name="python", memory_mb=500.0)
    assert bystanders(idle(), idle(), at_work(newcomer)).why_disturbed() is not None
    assert bystanders(idle(), idle(), at_work(newcomer), at_work()).why_disturbed() is None


def test_who_held_memory_before_is_let_be_until_it_computes() -> None:
    others = bystanders(
        idle(NOTEBOOK),
        idle(NOTEBOOK),
        at_work(NOTEBOOK),
        at_work(busy(NOTEBOOK, 2)),
        at_work(busy(NOTEBOOK, 40)),
    )
    assert others.why_disturbed() is None
    assert others.why_disturbed() is None
    why = others.why_disturbed()
    assert why is not None
    assert "jupyter" in why


def test_who_came_computed_and_went_is_named_all_the_same() -> None:
    """The driver's samples of use tell of it although it is no longer listed as holding memory."""
    gone = GpuUser(pid=70_010, name="unknown", active=35, listed=False)
    assert bystanders(idle(), idle(), at_work(gone), at_work()).why_disturbed() is not None


def test_a_worker_process_that_has_ended_but_is_still_listed_is_known_from_before() -> None:
    own = {os.getpid(), WORKER.pid}
    others = Bystanders(ScriptedReader([idle(), idle(), at_work()]), own=lambda: set(own), pause=0.0)
    others.why_busy()
    assert others.why_disturbed() is None
    own.discard(WORKER.pid)
    assert others.why_disturbed() is None


def test_where_process_numbers_are_not_ours_nothing_is_told_of_processes() -> None:
    others = bystanders(idle(), idle(), GpuReading(utilisation=99, processes=(TRAINING,)))
    assert others.why_disturbed() is None
    assert others.looks == 0


def test_samples_of_use_with_other_numbers_than_the_list_blame_nobody() -> None:
    """In a container the list may hold the container's numbers, and the samples the host's."""
    me = GpuUser(pid=os.getpid(), name="scorer", memory_mb=9000.0)
    host = GpuUser(pid=990_001, name="unknown", active=98, listed=False)
    others = bystanders(idle(), idle(), GpuReading(utilisation=99, processes=(me, host)))
    assert others.why_disturbed() is None
    assert others.looks == 1


def test_a_gpu_still_in_use_after_the_scoring_is_found_and_the_workers_are_not_blamed() -> None:
    others = bystanders(idle(), idle(), GpuReading(utilisation=97, processes=(ME, WORKER, TRAINING)))
    why = others.why_busy()
    assert why is not None
    assert "train.py" in why
    assert "worker" not in why


def test_a_machine_without_nvml_is_let_be() -> None:
    others = bystanders(None)
    assert others.why_disturbed() is None
    assert others.why_busy() is None


def test_own_processes_are_this_one_and_those_below() -> None:
    import subprocess
    import sys

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert {os.getpid(), child.pid} <= own_processes()
        assert os.getppid() not in own_processes()
        assert child.stdin is not None
        child.stdin.write(b"\n")


class Cards:
    """NVML with two cards, of which CUDA_VISIBLE_DEVICES shows one."""

    class NVMLError(Exception):
        pass

    def __init__(self, count: int = 2, *, knows: bool = True) -> None:
        self.count, self.knows = count, knows

    def nvmlInit(self) -> None:  # noqa: N802
        pass

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return self._of(uuid, {"GPU-aa": "first", "GPU-bb": "second"})

    def nvmlDeviceGetHandleByPciBusId(self, address: str) -> str:  # noqa: N802
        return self._of(address, {"00000000:1b:00.0": "first", "00000001:c4:00.0": "second"})

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return ["first", "second"][index]

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.count

    def _of(self, key: str, known: dict[str, str]) -> str:
        if not self.knows or key not in known:
            raise self.NVMLError(key)
        return known[key]


@pytest.mark.parametrize(
    ("properties", "cards", "handle"),
    [
        (SimpleNamespace(uuid="bb"), Cards(), "second"),
        (SimpleNamespace(uuid="GPU-bb"), Cards(), "second"),
        (SimpleNamespace(pci_domain_id=1, pci_bus_id=0xC4, pci_device_id=0), Cards(), "second"),
        (SimpleNamespace(uuid="zz", pci_domain_id=0, pci_bus_id=0x1B, pci_device_id=0), Cards(), "first"),
        (SimpleNamespace(uuid="bb"), Cards(knows=False), None),
        (SimpleNamespace(), Cards(), None),
        (SimpleNamespace(), Cards(count=1, knows=False), "first"),
    ],
)
def test_a_card_is_found_by_what_it_is_and_never_by_cudas_number(
    properties: Any, cards: Cards, handle: str | None
) -> None:
    assert find_handle(Nvml(cards), properties) == handle


def test_use_since_the_last_look_is_told_by_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def sample(pid: int, at: int, used: int) -> SimpleNamespace:
        return SimpleNamespace(pid=pid, timeStamp=at, smUtil=used)

    nvml = SimpleNamespace(
        NVMLError=Cards.NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetProcessUtilization=lambda _h, _s: [
            sample(5, 90, 99),
            sample(5, 110, 7),
            sample(6, 120, 30),
        ],
    )
    assert Nvml(nvml).use_since(None, 100) == ({5: 7, 6: 30}, 120)
    assert Nvml(Cards()).use_since(None, 100) == ({}, 100)
