"""Chooses the torch build, so that no practice session pulls gigabytes of CUDA unasked."""

import json
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.bootstrap.pip import Pip
from scripts.bootstrap.talk import Stopped, Talk

TORCH = "torch==2.13.0"
CUDA_PARTS = re.compile(r"^(nvidia-|cuda-|triton$|pytorch-triton)", re.IGNORECASE)
CPU_DISK = 2_000_000_000
CUDA_DISK = 9_000_000_000


@dataclass(frozen=True, slots=True)
class Resolved:
    """What pip would install for a torch requirement."""

    version: str
    cuda_parts: tuple[str, ...]

    @property
    def is_cuda(self) -> bool:
        return bool(self.cuda_parts) or "+cu" in self.version


def read_report(report: Mapping[str, object]) -> Resolved:
    """The torch in a report of `pip install --dry-run --report`, and the CUDA packages beside it."""
    version = "?"
    parts: list[str] = []
    items = report.get("install")
    assert isinstance(items, list)
    for item in items:
        metadata = item["metadata"]
        if metadata["name"].lower() == "torch":
            version = metadata["version"]
        elif CUDA_PARTS.match(metadata["name"]):
            parts.append(metadata["name"])
    return Resolved(version, tuple(sorted(parts)))


def resolve(pip: Pip, requirement: str) -> Resolved:
    """Ask pip what it would take from the indexes it is configured with."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip.run("install", "--dry-run", "--report", str(report), requirement)
        return read_report(json.loads(report.read_text(encoding="utf-8")))


def arguments_for_torch(
    pip: Pip,
    talk: Talk,
    *,
    gpu: bool,
    environ: Mapping[str, str] = os.environ,
    ask: Callable[[str], bool] | None = None,
) -> list[str]:
    """pip's arguments for the right torch, or Stopped when that would be an unwanted CUDA build."""
    requirement = environ.get("REBENCH_TORCH") or TORCH
    if index := environ.get("REBENCH_TORCH_INDEX"):
        return ["--index-url", index, requirement]
    if gpu or platform.system() != "Linux":
        if gpu:
            talk.note(
                "an NVIDIA driver is here: torch comes with CUDA, about 3 GB to fetch and 6 GB on disk."
            )
        return [requirement]
    found = resolve(pip, requirement)
    if not found.is_cuda or environ.get("REBENCH_ALLOW_CUDA") == "1":
        return [requirement]
    if ask and ask(_question(found)):
        return [requirement]
    raise Stopped(_refusal(found))


def ask_on_terminal(question: str) -> bool:
    """Put a yes-or-no question to whoever sits there."""
    print(question, file=sys.stderr, end=" [y/N] ", flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _question(found: Resolved) -> str:
    return (
        f"  This machine has no NVIDIA GPU, and pip would take the CUDA build of torch {found.version}:\n"
        f"  {len(found.cuda_parts)} extra packages, about 3 GB to fetch and 6 GB on disk, none of use here.\n"
        f"  Take it all the same?"
    )


def _refusal(found: Resolved) -> str:
    return (
        f"This machine has no NVIDIA GPU, and pip would take the CUDA build of torch {found.version}\n"
        f"({len(found.cuda_parts)} extra packages, about 3 GB to fetch and 6 GB on disk). Nothing was fetched. Choose:\n"
        "  REBENCH_TORCH_INDEX=URL  take torch from that index; PyTorch's install page names its CPU index\n"
        "  PIP_FIND_LINKS=FOLDER    a folder that holds the CPU wheel of torch\n"
        "  REBENCH_ALLOW_CUDA=1     take the CUDA build all the same"
    )
