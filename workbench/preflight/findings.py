"""Judges a machine: what is fine, what to mind, what must be fixed, each with its fix."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sessions.telemetry.samples import Gpu
from workbench.preflight.machine import Machine
from workbench.preflight.needs import GIGABYTE


class Judgement(StrEnum):
    GOOD = "good"
    MIND = "mind"
    """Works, with less than there could be."""
    BAD = "bad"
    """No session can be held like this."""


class Finding(msgspec.Struct, frozen=True):
    """One line of `doctor`."""

    about: str
    judgement: Judgement
    found: str
    fix: str = ""


BUSY_PERCENT = 10.0
BUSY_BYTES = 2 * GIGABYTE
LOW_DISK = 2 * GIGABYTE
SMALL_DISK = 20 * GIGABYTE


def judge(machine: Machine) -> tuple[Finding, ...]:
    """Return all findings, in the order they are shown."""
    return (
        _system(machine),
        _python(machine),
        _program(machine, "git", Judgement.BAD, "apt install git: every score stores a snapshot with it"),
        _cores(machine),
        _disk(machine),
        *_gpus(machine),
        _sandbox(machine),
        _torch(machine),
        _program(machine, "tmux", Judgement.MIND, "apt install tmux: a session outlives a lost connection by itself, "
                 "an editor does not"),
        _terminal(machine),
    )  # fmt: skip


def _system(machine: Machine) -> Finding:
    if machine.system == "linux":
        return Finding("system", Judgement.GOOD, "Linux")
    return Finding(
        "system",
        Judgement.BAD,
        machine.system,
        "live sessions run on Linux; replay, verify and report work here",
    )


def _python(machine: Machine) -> Finding:
    major, minor = (int(part) for part in machine.python.split(".")[:2])
    if (3, 11) <= (major, minor) <= (3, 13):
        return Finding("python", Judgement.GOOD, machine.python)
    return Finding("python", Judgement.MIND, machine.python, "tried with Python 3.11 to 3.13")


def _program(machine: Machine, name: str, otherwise: Judgement, fix: str) -> Finding:
    version = machine.programs.get(name)
    if version is None:
        return Finding(name, otherwise, "not on the path", fix)
    if version.startswith("does not start"):
        return Finding(name, otherwise, version, fix)
    return Finding(name, Judgement.GOOD, version)


def _cores(machine: Machine) -> Finding:
    memory = machine.memory_bytes / GIGABYTE
    found = f"{machine.cpus} cores, {memory:.0f} GB of memory, load {machine.load:.1f}"
    if machine.load > machine.cpus * 0.5:
        return Finding(
            "machine",
            Judgement.MIND,
            found,
            "something else is working here and will disturb timings; see `top`",
        )
    return Finding("machine", Judgement.GOOD, found)


def _disk(machine: Machine) -> Finding:
    found = f"{machine.disk_free / GIGABYTE:.1f} GB free in {machine.disk_place}"
    fix = "free some, or set REBENCH_HOME to a folder on a larger disk"
    if machine.disk_free < LOW_DISK:
        return Finding("disk", Judgement.BAD, found, fix)
    if machine.disk_free < SMALL_DISK:
        return Finding(
            "disk", Judgement.MIND, found, f"enough for practice; a full session wants 20 GB: {fix}"
        )
    return Finding("disk", Judgement.GOOD, found)


def _gpus(machine: Machine) -> tuple[Finding, ...]:
    if machine.gpu_problem:
        return (
            Finding(
                "gpu",
                Judgement.BAD,
                machine.gpu_problem,
                "`nvidia-smi` should list the devices; reload the driver",
            ),
        )
    if not machine.gpus:
        return (Finding("gpu", Judgement.MIND, "none", "the profile `cpu` needs none; `gpu` and `paper` do"),)
    return tuple(_gpu(gpu) for gpu in machine.gpus)


def _gpu(gpu: Gpu) -> Finding:
    about = f"gpu {gpu.index}"
    if gpu.problem:
        return Finding(about, Judgement.BAD, f"{gpu.name}: {gpu.problem}", "`nvidia-smi -q` may say why")
    memory = f"{(gpu.memory_used or 0) / GIGABYTE:.1f} of {(gpu.memory_total or 0) / GIGABYTE:.0f} GB used"
    found = f"{gpu.name}{' (MIG)' if gpu.mig else ''}, {memory}"
    busy = (gpu.utilisation or 0) > BUSY_PERCENT or (gpu.memory_used or 0) > BUSY_BYTES
    if not busy and not gpu.processes:
        return Finding(about, Judgement.GOOD, f"{found}, idle")
    who = ", ".join(f"pid {p.pid} {p.name} of {p.owner}" for p in gpu.processes[:4]) or "nobody it names"
    return Finding(
        about,
        Judgement.MIND,
        f"{found}, in use by {who}",
        "end these first: they take memory and disturb timings",
    )


def _sandbox(machine: Machine) -> Finding:
    sandbox = machine.sandbox
    if sandbox.problem is None:
        return Finding("isolation", Judgement.GOOD, f"bubblewrap {sandbox.shown_version} works")
    fix = "apt install bubblewrap"
    if sandbox.program:
        fix = "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)"
    if machine.root:
        fix += ", or hold the session as root with a participant of another user (--isolation user)"
    return Finding("isolation", Judgement.MIND, f"no sandbox: {sandbox.problem}", fix)


def _torch(machine: Machine) -> Finding:
    version = machine.packages.get("torch")
    if version is None:
        return Finding(
            "torch",
            Judgement.MIND,
            "not installed",
            "in the checkout: pip install '.[environments]', to hold sessions",
        )
    return Finding("torch", Judgement.GOOD, version)


def _terminal(machine: Machine) -> Finding:
    terminal = machine.terminal
    if not terminal.interactive:
        return Finding(
            "terminal", Judgement.MIND, "none", "the workbench screen needs one; use --detach without"
        )
    found = f"{terminal.columns}x{terminal.rows}, {terminal.colours} colours, {'UTF-8' if terminal.utf8 else 'no UTF-8'}"
    fixes = []
    if not terminal.utf8:
        fixes.append("set LANG=C.UTF-8")
    if terminal.colours < 256:
        fixes.append("set TERM=xterm-256color, or tmux-256color inside tmux")
    if terminal.columns < 80 or terminal.rows < 24:
        fixes.append("enlarge the window to at least 80x24")
    return Finding("terminal", Judgement.MIND if fixes else Judgement.GOOD, found, "; ".join(fixes))
