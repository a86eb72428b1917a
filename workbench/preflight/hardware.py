"""The class of hardware that a profile's anchors belong to on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from environments.contract import Profile
from environments.machine.hardware import usable_cpus
from workbench.preflight.machine import read_gpus

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_UNIQUE = ("GPU-", "MIG-")


def hardware_here(profile: Profile) -> str:
    """Return the class of `profile` on this machine."""
    gpus, _ = read_gpus()
    return hardware_for(profile, [gpu.name for gpu in gpus], usable_cpus())


def hardware_for(
    profile: Profile, gpus: Sequence[str], cpus: int, variables: Mapping[str, str] = os.environ
) -> str:
    """Return the class of `profile` on a machine with these GPUs, by name, and cores."""
    return profile.hardware(usable_gpus(gpus, variables), cpus)


def usable_gpus(gpus: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES leaves to our processes.

    CUDA and the driver number cards differently, so that where they are of several kinds only their full list is sure.
    """
    named = variables.get(_VISIBLE)
    if named is None or len(set(gpus)) > 1:
        return tuple(gpus)
    return tuple(gpus)[: len(_valid(named, len(gpus)))]


def _valid(named: str, count: int) -> list[str]:
    """Return the entries up to the first that names no card, which is where CUDA stops reading."""
    found: list[str] = []
    for entry in (part.strip() for part in named.split(",")):
        if not (entry.startswith(_UNIQUE) or (entry.isdecimal() and int(entry) < count)):
            break
        found.append(entry)
    return found
