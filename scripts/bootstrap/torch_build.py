"""Chooses the torch build, so that no practice session pulls gigabytes of CUDA unasked."""

import os
import platform
import re
import sys
from collections.abc import Callable, Mapping

from scripts.bootstrap.pip import Halted, Pip, fetched_bytes, fetched_name
from scripts.bootstrap.talk import Stopped, Talk, human_size

TORCH = "torch==2.13.0"
CPU_DISK = 2_500_000_000
CUDA_DISK = 9_000_000_000
CUDA_COST = "about 3 GB to fetch and 6 GB on disk"

# torch's CUDA builds depend on these; its CPU builds on none of them.
CUDA_PART = re.compile(
    r"^\s*(Collecting|Processing|Downloading|Using cached)\s+(\S*/)?(nvidia[-_]|cuda[-_]|(pytorch[-_])?triton\b)"
)
CUDA_WHEEL = re.compile(r"^\s*(Processing|Downloading|Using cached)\s+(\S*/)?torch-[^+\s]+\+cu\d")
LARGEST_CPU_WHEEL = 350e6


def sign_of_cuda(line: str) -> bool:
    """Whether a line of pip shows that it is about to take a CUDA build of torch.

    pip names a file and its size before fetching it, and fetches everything before installing anything.
    """
    if CUDA_PART.match(line) or CUDA_WHEEL.match(line):
        return True
    return fetched_name(line) == "torch" and fetched_bytes(line) > LARGEST_CPU_WHEEL


def install_torch(
    pip: Pip,
    talk: Talk,
    *,
    gpu: bool,
    environ: Mapping[str, str] = os.environ,
    ask: Callable[[str], bool] | None = None,
) -> str:
    """Install the right torch and say what was fetched; Stopped when it would be an unwanted CUDA build."""
    requirement = environ.get("REBENCH_TORCH") or TORCH
    if index := environ.get("REBENCH_TORCH_INDEX"):
        return pip.install("--index-url", index, requirement)
    if gpu:
        talk.note(f"an NVIDIA driver is here: torch comes with CUDA, {CUDA_COST}.")
    if gpu or platform.system() != "Linux" or environ.get("REBENCH_ALLOW_CUDA") == "1":
        return pip.install(requirement)
    try:
        return pip.install(requirement, stop_at=sign_of_cuda)
    except Halted as halted:
        cost = _cost(halted.line)
        if ask and ask(f"  No NVIDIA GPU here, and pip would take a CUDA build of torch: {cost}. Take it?"):
            return pip.install(requirement)
        raise Stopped(
            f"This machine has no NVIDIA GPU, and pip would take a CUDA build of torch: {cost}.\n"
            "pip was stopped before it fetched that. Run this again with one of:\n"
            "  REBENCH_TORCH_INDEX=URL  take torch from that index (PyTorch's install page names its CPU index)\n"
            "  PIP_FIND_LINKS=FOLDER    look for the CPU wheel of torch in that folder as well\n"
            "  REBENCH_ALLOW_CUDA=1     take the CUDA build all the same"
        ) from halted


def ask_on_terminal(question: str) -> bool:
    """Put a yes-or-no question to whoever sits there."""
    print(question, file=sys.stderr, end=" [y/N] ", flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _cost(line: str) -> str:
    size = fetched_bytes(line)
    return (
        f"{human_size(size)} for its wheel alone, {CUDA_COST} in all"
        if size > LARGEST_CPU_WHEEL
        else CUDA_COST
    )
