"""What the measuring loop needs of a bench, whatever device the arrays are on."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from environments.triton_cumsum.timing.cases import Case, Mismatch, Workload
from environments.triton_cumsum.timing.memory import Layout
from environments.worker import Answered, Failed, Mount, WorkerJob, WorkerLimits
from environments.worker.output import printable
from environments.worker.run import Worker

_HERE = Path(__file__).parent
_STAGED = ("serve.py", "arrays.py", "memory.py", "cuda_arrays.py", "cuda_driver.py")
_DRIVER_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "LD_LIBRARY_PATH")
KNOWN = _HERE / "known.py"


@dataclass(frozen=True)
class Interval:
    """One timed stretch: `calls` calls on fresh inputs, from our start until we had read the results."""

    seconds: float
    calls: int
    inner: float | None
    """Seconds the worker measured around its calls: believed from our own known function only."""
    refused: str | None
    """Why the worker could not deliver a result, in its own words: text from an untrusted process."""
    late: bool
    answered: Answered
    reveal: float = 0.0
    """Seconds from our start until the inputs were there: our own work, measured by ourselves."""

    @classmethod
    def of(cls, seconds: float, calls: int, answered: Answered, reveal: float = 0.0) -> Interval:
        body = answered.body
        inner, refused = body.get("seconds"), body.get("refused")
        return cls(
            seconds, calls,
            inner if isinstance(inner, float) and inner > 0 else None,
            printable(refused, 300) if refused is not None else None,
            body.get("late") is True, answered, reveal,
        )  # fmt: skip

    @property
    def overhead(self) -> float | None:
        """What the harness added to the worker's own time, for the whole interval."""
        return None if self.inner is None else self.seconds - self.inner


class Bench(Protocol):
    """Shared memory, fresh inputs, a clock, and the judgement of what comes back."""

    @property
    def device(self) -> str: ...

    @property
    def workload(self) -> Workload: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def descriptors(self) -> Mapping[str, int]: ...

    def interval(self, worker: Worker, cases: Sequence[Case], seconds: float) -> Interval | Failed:
        """Let the worker answer fresh inputs of `cases`, one a slot, and return how long that took."""

    def verify(self, slot: int) -> Mismatch | None:
        """Compare what came out of a slot with the right answer."""

    def close(self) -> None: ...


def worker_job(
    entry: Path,
    bench: Bench,
    limits: WorkerLimits,
    *,
    mounts: Mapping[str, Mount] | None = None,
    modules: Sequence[Path] = (),
    masks: Sequence[Path] = (),
    variables: Mapping[str, str] | None = None,
) -> WorkerJob:
    """Return the job of a worker that serves `bench`; `entry` holds `answer = Server(load).answer`."""
    return WorkerJob(
        entry=entry,
        mounts=mounts or {},
        limits=limits,
        modules=(*(_HERE / name for name in _STAGED if (_HERE / name).is_file()), *modules),
        variables={**(_driver_variables() if bench.device != "cpu" else {}), **(variables or {})},
        descriptors=bench.descriptors,
        masks=tuple(masks),
        gpus=bench.device != "cpu",
    )


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Keep Python's garbage collector from running while our clock does."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def request_to(do: str, bench: Bench) -> dict[str, Any]:
    """Return the body of the first requests to a worker: `open`, then `load`."""
    return {"do": do, "layout": bench.layout.as_json(), "device": bench.device}


def _driver_variables() -> dict[str, str]:
    """Return what a worker must share with us to see the same GPU under the same number."""
    return {name: os.environ[name] for name in _DRIVER_VARIABLES if name in os.environ}
