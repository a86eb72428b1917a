"""What this machine has and lacks for the workbench, each lack with its remedy."""

import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

from scripts.bootstrap.talk import Stopped, Talk, human_size

NVIDIA_TRACES = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidia0"), Path("/dev/nvidiactl"))


def require_git() -> None:
    if shutil.which("git") is None:
        raise Stopped(
            "git is not on the path, and every score stores a snapshot with it.\n"
            "Install it (Debian and Ubuntu: apt install git) and run this again."
        )


def require_venv_module() -> None:
    """Debian's Python comes without ensurepip until python3-venv is installed."""
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise Stopped(
            f"{sys.executable} lacks the module {' and '.join(missing)}, so no virtual environment can be made.\n"
            f"Debian and Ubuntu: apt install python{version}-venv. Elsewhere: use a complete Python, named by\n"
            "REBENCH_PYTHON=/path/to/python3."
        )


def require_space(folder: Path, needed: int) -> None:
    """Refuse before a download that would fill the disk."""
    standing = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(standing).free
    if free < needed:
        raise Stopped(
            f"{standing} has {human_size(free)} free, and the installation needs about {human_size(needed)}.\n"
            "Free some space, or put the virtual environment elsewhere: REBENCH_VENV=/big/disk/venv."
        )


def require_platform() -> None:
    if platform.system() not in {"Linux", "Darwin"}:
        raise Stopped(
            f"Sessions run on Linux (replay and analysis also on macOS); this is {platform.system()}.\n"
            "On Windows, use WSL 2 and run this again inside it."
        )


def has_nvidia_gpu() -> bool:
    """Whether a driver is there; asks no tool, since nvidia-smi may hang on a sick card."""
    return any(trace.exists() for trace in NVIDIA_TRACES)


def has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def recommend(talk: Talk) -> None:
    """Name what is worth having and not required."""
    if platform.system() != "Linux":
        talk.note("live sessions need Linux; here you can replay, verify and analyse records.")
    elif shutil.which("bwrap") is None and os.geteuid() != 0:
        talk.note(
            "bubblewrap is not installed: sessions will be labelled 'unprotected'.\n"
            "Debian and Ubuntu: apt install bubblewrap."
        )
    elif shutil.which("bwrap") is None:
        talk.note("bubblewrap is not installed, a recommendation: apt install bubblewrap.")
