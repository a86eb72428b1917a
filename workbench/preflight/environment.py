"""Whether an environment's folder is whole, its data prepared and the machine large enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from environments import assets, registry
from environments.contract import EnvironmentFault
from environments.registry import Found
from workbench.preflight.needs import default_profile, examine_for, lacks


class Look(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    about: str
    good: bool
    found: str


class Inspection(msgspec.Struct, frozen=True):
    """Everything `env check` says."""

    environment: str
    profile: str
    findings: tuple[Look, ...]

    @property
    def good(self) -> bool:
        return all(finding.good for finding in self.findings)


def chosen(slug: str, profile: str | None, folders: Iterable[Path], home: Path) -> tuple[Found, str]:
    """Return the environment and the profile meant.

    Raises:
        EnvironmentUnknown, ProfileUnavailable: there is no such thing.
    """
    found = registry.find(slug, folders)
    if profile is not None:
        found.spec.profile(profile)
        return found, profile
    return found, default_profile(found.spec, examine_for(found.spec, home))


def inspect(slug: str, profile: str | None, folders: Iterable[Path], home: Path) -> Inspection:
    """Look at one environment.

    Raises:
        EnvironmentUnknown, ProfileUnavailable: there is no such thing.
    """
    found, name = chosen(slug, profile, folders, home)
    looks = (*_folder(found), *_machine_for(found, name, home), *_assets(found, name, home))
    return Inspection(slug, name, looks)


def _folder(found: Found) -> Iterator[Look]:
    yield Look("environment.toml", True, f"{found.spec.slug} {found.spec.version} in {found.folder}")
    brief = found.folder / "brief.md"
    yield Look("brief.md", brief.is_file(), f"{brief.stat().st_size} bytes" if brief.is_file() else "missing")
    try:
        registry.load(found)
        yield Look("environment.py", True, "can prepare, starter, check and score")
    except EnvironmentFault as error:
        yield Look("environment.py", False, str(error))
    except Exception as error:  # noqa: BLE001 - an author's module may raise anything when imported
        yield Look("environment.py", False, f"does not import: {type(error).__name__}: {error}")


def _machine_for(found: Found, profile: str, home: Path) -> Iterator[Look]:
    missing = lacks(found.spec.profile(profile).needs, examine_for(found.spec, home))
    if not missing:
        yield Look("machine", True, f"can run profile {profile}")
    for lack in missing:
        yield Look("machine", False, f"lacks {lack.what}: {lack.remedy}")


def _assets(found: Found, profile: str, home: Path) -> Iterator[Look]:
    folders = assets.folders_for(found.spec, profile, home)
    try:
        manifest = assets.verify(folders, deep=True)
        yield Look(
            "assets", True, f"{len(manifest.files)} files, {manifest.size} bytes, every checksum holds"
        )
    except EnvironmentFault as error:
        yield Look("assets", False, str(error))
