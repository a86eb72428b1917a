"""The environment triton_cumsum in a store of its own, for `triton_cumsum.py` to score and time things on."""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from environments import assets, registry
from environments.contract import ScoreReport, Submission
from environments.sealing import PUBLIC_PASSPHRASE, unseal
from environments.triton_cumsum import environment as cumsum
from environments.triton_cumsum.settings import decode_settings
from environments.worker import Mount, WorkerLimits

PLAIN = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from solution import prefix_sum
import inspect
length, slots, repeats, device = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
takes = "out" in inspect.signature(prefix_sum).parameters
def run(x, out):
    if takes:
        prefix_sum(x, out=out)
    else:
        out[...] = prefix_sum(x)
times = []
if device == "cpu":
    import numpy as np
    for _ in range(repeats + 3):
        x = np.random.default_rng().integers(-10, 10, length, dtype=np.int8).astype(np.int32)
        out = np.zeros_like(x)
        start = time.perf_counter(); run(x, out); times.append(1000 * (time.perf_counter() - start))
else:
    import torch
    xs = [torch.empty(length, dtype=torch.int32, device="cuda") for _ in range(slots)]
    outs = [torch.empty_like(x) for x in xs]
    for _ in range(repeats + 3):
        for x in xs: x.copy_(torch.randint(-10, 10, (length,), dtype=torch.int32, device="cuda"))
        torch.cuda.synchronize()
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for x, out in zip(xs, outs): run(x, out)
        last.record(); torch.cuda.synchronize()
        times.append(first.elapsed_time(last) / slots)
print(json.dumps(times[3:]))
"""


class Bench:
    """The environment prepared in a store of its own."""

    def __init__(self, profile_name: str, changes: dict[str, Any]) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="cumsum-bench-"))
        self.found = registry.find("triton_cumsum")
        self.environment = registry.load(self.found)
        self.name = profile_name
        spec = self.found.spec
        assets.prepare(self.environment, spec, profile_name, PUBLIC_PASSPHRASE, self.home, quiet)
        self.folders = assets.folders_for(spec, profile_name, self.home)
        whole = spec.profile(profile_name)
        self.profile = msgspec.structs.replace(whole, settings={**whole.settings, **changes})
        self.settings = decode_settings(self.profile.settings)
        device = "gpu" if self.settings.on_gpu else "cpu"
        self.starter = self.found.folder / "starter" / device
        self.reference = self.home / "reference"
        unseal(self.found.folder / "protected" / "reference.sealed", self.reference, PUBLIC_PASSPHRASE)

    @contextmanager
    def laid_out(self, source: Path) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="cumsum-") as folder:
            root = Path(folder) / "root"
            if source.is_dir():
                shutil.copytree(source, root)
            else:
                root.mkdir()
                shutil.copyfile(source, root / "solution.py")
            yield root

    def score(self, source: Path) -> ScoreReport:
        with self.laid_out(source) as root, tempfile.TemporaryDirectory() as scratch:
            submission = Submission(
                root=root, profile_name=self.name, profile=self.profile, assets=self.folders,
                scratch=Path(scratch), seed=random.SystemRandom().randrange(2**31),
            )  # fmt: skip
            return self.environment.score(submission, quiet)

    def plain(self, source: Path, repeats: int = 20) -> float:
        """Return the milliseconds of one call in a process of its own, without any harness."""
        with self.laid_out(source) as root:
            command = [sys.executable, "-c", PLAIN, str(root), str(self.settings.length)]
            command += [str(self.settings.slots), str(repeats), "cuda" if self.settings.on_gpu else "cpu"]
            hidden = {} if self.settings.on_gpu else {"CUDA_VISIBLE_DEVICES": ""}
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, env={**os.environ, **hidden}
            )
        return statistics.median(json.loads(done.stdout.splitlines()[-1]))

    def figures(self, source: Path, *, copies: bool) -> dict[str, Any]:
        """Return what the harness measures, in milliseconds; `copies` judges results as copies of the input."""
        from environments.triton_cumsum.timing import NotTimed, time_submission, worker_job

        made = cumsum.make_bench(self.settings, cumsum.Keys(lengths=()), 1, self.settings.length)
        if copies:
            made.workload.expected = lambda inputs: inputs[0]  # type: ignore[method-assign]
        try:
            with self.laid_out(source) as root:
                limits = WorkerLimits.of(self.profile.limits, threads=self.settings.threads)
                job = worker_job(cumsum.HERE / "call.py", made, limits, mounts={"root": Mount(root)})
                timed = time_submission(made, job, cumsum.make_plan(self.settings), random.Random(1), quiet)
        finally:
            made.close()
        if isinstance(timed, NotTimed):
            raise RuntimeError(  # noqa: TRY004  (a wrong result, not a wrong type)
                f"{source}: {timed.message}\n{timed.log}"
            )
        details = timed.details()
        return {**details["milliseconds"], "flags": details["flags"], "uncertainty": timed.uncertainty}


def quiet(_progress: object) -> None:
    """Take progress and show nothing."""
