"""Builds the command that starts a worker as strongly confined as this machine allows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from environments.machine.bubblewrap import (
    Bubblewrap,
    bubblewrap,
    covered,
    gpu_devices,
    read_only,
    read_only_if_there,
    writable,
)
from environments.machine.home import home_folder
from environments.worker.jobs import Level, WorkerJob

STAGE = Path("/worker")
EMPTY = "empty"
"""A staged file of nothing, which covers masked files."""
ETC_ALONE = {"hosts": "127.0.0.1 localhost worker\n", "nsswitch.conf": "hosts: files\npasswd: files\n"}
"""Staged files of /etc for a worker that has no network but itself."""
PRIVATE_HOME = "/tmp/home"  # noqa: S108  (a path inside the sandbox, on a file system of its own)
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "OpenCL", "nvidia")
_ETC_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "ssl", "ca-certificates", "pki")
_GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH",
                  "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NCCL_NVLS_ENABLE", "NVSHMEM_DISABLE_NVLS",
                  "TORCH_SYMM_MEM_DISABLE_MULTICAST")  # fmt: skip
_OF_CARDS = (
    "/sys/bus/pci",
    "/sys/devices",
    "/sys/module/nvidia",
    "/sys/class",
    "/opt/rocm",
    "/run/nvidia-persistenced",
)
_OURS = ("environments", "sessions", "workbench")
_FIRST_ACCOUNT, _LAST_ACCOUNT = 61184, 65519
"""The range systemd keeps for accounts that exist only while something runs."""


def program() -> str:
    """Return the path of bubblewrap, which must work here."""
    wrap = bubblewrap()
    assert wrap is not None
    return wrap.program


def levels() -> list[Level]:
    """Return the levels this process can put in force, strongest first."""
    root = os.geteuid() == 0
    found = []
    if bubblewrap() is not None:
        found.append(Level.SANDBOX_ACCOUNT if root else Level.SANDBOX)
    if root and all(map(open_to_others, _interpreter_paths())):
        found.append(Level.ACCOUNT)
    return [*found, Level.GROUP]


def best_level() -> Level:
    """Return the strongest level this process can put in force."""
    return levels()[0]


def free_account() -> int:
    """Return an unprivileged account id under which no process runs."""
    used = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                used.add(entry.stat().st_uid)
            except OSError:
                continue
    start = int.from_bytes(os.urandom(2)) % (_LAST_ACCOUNT - _FIRST_ACCOUNT)
    for step in range(_LAST_ACCOUNT - _FIRST_ACCOUNT):
        account = _FIRST_ACCOUNT + (start + step) % (_LAST_ACCOUNT - _FIRST_ACCOUNT)
        if account not in used:
            return account
    raise OSError("every account id for workers is in use")


def package_folders() -> list[str]:
    """Return this interpreter's site-packages, which workers import from."""
    return [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages") and Path(p).is_dir()]


def interpreter() -> str:
    """Return the Python that workers run: the real file behind any virtual environment's link."""
    return os.path.realpath(sys.executable)


def variables(job: WorkerJob, home: str) -> dict[str, str]:
    """Return the scrubbed environment variables of a worker."""
    threads = str(job.limits.threads)
    return {
        "PATH": ":".join(dict.fromkeys([f"{sys.prefix}/bin", "/usr/local/cuda/bin", "/usr/local/bin", "/usr/bin", "/bin"])),
        "HOME": home, "TMPDIR": str(Path(home).parent), "USER": "worker", "LOGNAME": "worker", "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads,
        "NUMEXPR_NUM_THREADS": threads, "RAYON_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "0" if job.network else "1",
        **(_gpu_variables() if job.gpus else {"CUDA_VISIBLE_DEVICES": ""}),
        **job.variables,
    }  # fmt: skip


def _gpu_variables() -> dict[str, str]:
    """Return what this machine needs said to find its driver, toolkit and cards."""
    return {name: os.environ[name] for name in _GPU_VARIABLES if name in os.environ}


def sandbox_arguments(job: WorkerJob, stage: Path, account: int | None, masks: Iterable[Path]) -> list[str]:
    """Return bubblewrap's own arguments, without the program and the command.

    The file system is an allow-list: system libraries, the interpreter, the staged entry and the job's mounts. As root
    the mounts are made without a user namespace, and `launch.py` then becomes `account`.
    """
    wrap = bubblewrap()
    assert wrap is not None
    most = job.limits.file_gb * 2**30
    command = ["--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-pid", "--unshare-uts",
               "--unshare-cgroup-try", "--hostname", "worker", "--clearenv"]  # fmt: skip
    if account is None:
        command += ["--unshare-user", *wrap.no_more_namespaces()]
    else:
        command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    command += [] if job.network else ["--unshare-net"]
    for name, value in variables(job, PRIVATE_HOME).items():
        command += ["--setenv", name, value]
    command += [*wrap.parents("/etc/any"), *wrap.parents("/sys/devices/any"), *_system_binds(job)]
    # Before the interpreter's folders, which may themselves be below /tmp.
    command += wrap.tmpfs("/tmp", "1777", most)  # noqa: S108
    for prefix in _prefixes():
        command += [*wrap.parents(prefix), *read_only(prefix)]
    command += ["--proc", "/proc", "--dev", "/dev", *wrap.tmpfs("/dev/shm", "1777", most)]  # noqa: S108
    command += _gpu_binds(wrap) if job.gpus else []
    command += [*read_only(stage, STAGE), *read_only(stage / "passwd", "/etc/passwd")]
    if not job.network:  # programs that talk to themselves (torchrun) look these up
        for name in ETC_ALONE:
            command += read_only(stage / name, f"/etc/{name}")
    command += wrap.parents("/job/any")
    for name, mount in job.mounts.items():
        bind = writable if mount.writable else read_only
        command += bind(mount.source.resolve(), f"/job/{name}")
    command += _mask_binds(job, masks, stage / EMPTY)
    return command


def hidden_paths(job: WorkerJob) -> Iterator[Path]:
    """Yield what no worker may read although a folder above it is visible: the store, corpora, our own packages."""
    yield home_folder()
    for folder in package_folders():
        for name in (*job.hidden_packages, *_OURS):
            yield Path(folder) / name
            yield Path(folder) / f"{name}.py"


def open_to_others(path: str) -> bool:
    """Whether every parent of `path` lets other accounts through."""
    return all(p.stat().st_mode & 0o001 for p in Path(path).resolve().parents)


def _interpreter_paths() -> list[str]:
    return [interpreter(), os.__file__, *package_folders()]


def _prefixes() -> list[str]:
    """Return the interpreter's folders that are not part of the system's own."""
    wanted = {os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix, *package_folders())}
    wanted |= {sys.prefix, str(Path(interpreter()).parents[1])}
    outside = [
        p for p in sorted(wanted) if p != "/" and not any(p == s or p.startswith(f"{s}/") for s in _SYSTEM)
    ]
    return [p for p in outside if not any(p != q and p.startswith(f"{q}/") for q in outside)]


def _system_binds(job: WorkerJob) -> list[str]:
    binds: list[str] = []
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            binds += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            binds += read_only(name)
    for name in (*_ETC, *(_ETC_NETWORK if job.network else ())):
        binds += read_only_if_there(f"/etc/{name}")
    return [*binds, *read_only_if_there("/sys/devices/system")]


def _gpu_binds(wrap: Bubblewrap) -> list[str]:
    binds = gpu_devices()
    for folder in _OF_CARDS:
        binds += [*wrap.parents(folder), *read_only_if_there(folder)]
    return binds


def _mask_binds(job: WorkerJob, masks: Iterable[Path], empty: Path) -> list[str]:
    """Cover every mask that some bind has made visible."""
    shown = [(p, p) for p in (*_SYSTEM, *_prefixes())]
    shown += [(str(m.source.resolve()), f"/job/{name}") for name, m in job.mounts.items()]
    binds: list[str] = []
    for mask in masks:
        if not mask.exists():
            continue
        real = str(mask.resolve())
        for source, target in shown:
            if real == source or real.startswith(f"{source}/"):
                binds += covered(target + real[len(source) :], folder=mask.is_dir(), empty=empty)
    return binds
