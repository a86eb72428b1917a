"""What a profile asks for and this machine lacks."""

from __future__ import annotations

from pathlib import Path

import msgspec

from environments.contract import EnvironmentSpec, Needs, ProfileUnavailable
from workbench.preflight.machine import Machine, examine

GIGABYTE = 10**9
_SLACK = 0.93
"""A machine sold with 8 GB shows a little less; that much is forgiven."""


class Lack(msgspec.Struct, frozen=True):
    """One thing that is missing, and what to do about it."""

    what: str
    remedy: str


def examine_for(spec: EnvironmentSpec, place: Path) -> Machine:
    """Look at this machine and at all that any profile of `spec` needs; `place` is where sessions will be kept."""
    needs = [profile.needs for profile in spec.profiles.values()]
    return examine(
        place,
        programs=[name for need in needs for name in need.programs],
        packages=[name for need in needs for name in need.packages],
    )


def lacks(needs: Needs, machine: Machine) -> tuple[Lack, ...]:
    """Return what `machine` lacks for a profile; empty when it can run it."""
    found: list[Lack] = []
    if machine.cpus < needs.cpus:
        found.append(
            Lack(f"{needs.cpus} cores (there are {machine.cpus})", "use a larger machine or another profile")
        )
    if machine.memory_bytes < needs.memory_gb * GIGABYTE * _SLACK:
        have = machine.memory_bytes / GIGABYTE
        found.append(Lack(f"{needs.memory_gb:g} GB of memory (there are {have:.1f})", "use a larger machine"))
    if machine.disk_free < needs.disk_gb * GIGABYTE:
        have = machine.disk_free / GIGABYTE
        remedy = f"free some in {machine.disk_place}, or set REBENCH_HOME to another disk"
        found.append(Lack(f"{needs.disk_gb:g} GB of free disk (there are {have:.1f})", remedy))
    found += _gpu_lacks(needs, machine)
    for name in needs.packages:
        if name not in machine.packages:
            remedy = "in the checkout: pip install '.[environments]'"
            found.append(Lack(f"the package {name}", remedy))
    for name in needs.programs:
        if name not in machine.programs:
            found.append(
                Lack(f"the program {name}", _HOW_TO_GET.get(name, f"install {name} and put it on the path"))
            )
    return tuple(found)


_HOW_TO_GET = {
    "rustc": "apt install rustc, or https://rustup.rs",
    "cargo": "apt install cargo, or https://rustup.rs",
    "bwrap": "apt install bubblewrap",
    "git": "apt install git",
}


def _gpu_lacks(needs: Needs, machine: Machine) -> list[Lack]:
    if needs.gpus == 0:
        return []
    if machine.gpu_problem:
        return [Lack(f"{needs.gpus} GPU (the driver fails: {machine.gpu_problem})", "see `nvidia-smi`")]
    large = [g for g in machine.gpus if (g.memory_total or 0) >= needs.gpu_memory_gb * GIGABYTE * _SLACK]
    if len(large) < needs.gpus:
        size = f" with {needs.gpu_memory_gb:g} GB" if needs.gpu_memory_gb else ""
        there = ", ".join(g.name for g in machine.gpus) or "none"
        return [
            Lack(f"{needs.gpus} GPU{size} (there is {there})", "use the profile `cpu`, or another machine")
        ]
    return []


def default_profile(spec: EnvironmentSpec, machine: Machine) -> str:
    """Return the profile to use where none is asked for: the GPU one where it can run, else `cpu`.

    `paper` is never chosen unasked: it fetches models and data sets.

    Raises:
        ProfileUnavailable: none of them can run here.
    """
    candidates: list[str] = [name for name in ("gpu", "cpu") if name in spec.profiles]
    candidates += [name for name in spec.profiles if name not in {"gpu", "cpu", "paper"}]
    for name in candidates:
        if not lacks(spec.profiles[name].needs, machine):
            return name
    if "cpu" in spec.profiles:
        return "cpu"
    raise ProfileUnavailable(
        f"no profile of {spec.slug} can run on this machine by default; it has {', '.join(spec.profiles)}: "
        "choose one with --profile to see what is missing"
    )


def require(spec: EnvironmentSpec, profile: str, machine: Machine) -> None:
    """Raise with everything that is missing at once.

    Raises:
        ProfileUnavailable: this machine cannot run the profile.
    """
    missing = lacks(spec.profile(profile).needs, machine)
    if missing:
        lines = "".join(f"\n  - {lack.what}: {lack.remedy}" for lack in missing)
        raise ProfileUnavailable(
            f"this machine cannot run {spec.slug} in profile {profile!r}; it lacks{lines}"
        )
