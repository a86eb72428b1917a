"""Lays out the sealed reference solution of a profile, making first what its archive holds only the recipe of."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

import msgspec

from environments import assets
from environments.contract import EnvironmentFault, Progress, ReportProgress, Value
from environments.machine.processes import end_group
from environments.registry import Found
from environments.sealing import open_sealed, write_below

ARCHIVE = "protected/reference.sealed"
"""Beside environment.toml: the work-tree files of the reference solution, laid over the starter.

Files below a folder named like a profile belong to that profile only and are laid out at the root of its tree."""

RECIPES = "reference.toml"
"""In the archive: for each profile whose result is too large to ship, how it is made (see `Recipe`)."""

_TAIL_LINES = 20


class ReferenceNotMade(EnvironmentFault):
    """The recipe of a reference solution is wrong, failed, or left out what it promised."""


class Recipe(Value, frozen=True, forbid_unknown_fields=True):
    """How one profile's reference result is made in a work tree laid out as for a participant."""

    make: tuple[str, ...]
    """The command; `python` stands for the running interpreter."""
    seconds: float
    """After which it is ended and has failed."""
    makes: tuple[str, ...]
    """Files it leaves, relative to the tree."""


def lay_out_reference(
    found: Found, profile_name: str, tree: Path, home: Path, passphrase: str, report: ReportProgress
) -> None:
    """Put the reference solution over the starter in `tree`; what a recipe makes is kept below `home` and made once.

    Raises:
        SealBroken: the archive does not open.
        ReferenceNotMade: the recipe failed.
    """
    archive = found.folder / ARCHIVE
    files = open_sealed(archive, passphrase)
    recipes = _recipes(files.pop(RECIPES, b""), archive)
    write_below(_of_profile(files, profile_name, found.spec.profiles), tree, archive)
    if (recipe := recipes.get(profile_name)) is None:
        return
    folders = assets.folders_for(found.spec, profile_name, home)
    made_from = hashlib.sha256(archive.read_bytes())
    for file in assets.read_manifest(folders).files:
        made_from.update(f"{file.path} {file.sha256}\n".encode())
    kept = home / "references" / found.spec.slug / found.spec.version / profile_name
    kept.mkdir(parents=True, exist_ok=True, mode=0o700)
    with assets.locked(kept / ".lock", report):
        store = kept / made_from.hexdigest()[:16]
        if store.is_dir():
            _copy(recipe.makes, store, tree)
        else:
            _make(recipe, tree, report)
            _keep(recipe.makes, tree, store)


def _recipes(text: bytes, archive: Path) -> dict[str, Recipe]:
    try:
        return msgspec.convert(tomllib.loads(text.decode()), dict[str, Recipe])
    except (ValueError, msgspec.ValidationError) as error:
        raise ReferenceNotMade(f"{RECIPES} in {archive} cannot be used: {error}") from error


def _of_profile(
    files: Mapping[str, bytes], profile_name: str, profiles: Iterable[str]
) -> Mapping[str, bytes]:
    chosen: dict[str, bytes] = {}
    for name, content in files.items():
        first, *rest = PurePosixPath(name).parts
        if not rest or first not in profiles:
            chosen.setdefault(name, content)
        elif first == profile_name:
            chosen[PurePosixPath(*rest).as_posix()] = content
    return chosen


def _make(recipe: Recipe, tree: Path, report: ReportProgress) -> None:
    """Run the recipe's command in `tree`; its whole process group ends with it."""
    stage = "making the reference solution"
    report(Progress(stage=stage))
    command = [sys.executable if word == "python" else word for word in recipe.make]
    tail: list[str] = []
    timed_out = threading.Event()
    try:
        process = subprocess.Popen(
            command,
            cwd=tree,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise ReferenceNotMade(f"{' '.join(recipe.make)} cannot be started: {error}") from error

    def end() -> None:
        timed_out.set()
        end_group(process)

    timer = threading.Timer(recipe.seconds, end)
    timer.start()
    with process:
        try:
            for line in process.stdout or ():
                tail = [*tail[-_TAIL_LINES:], line]
                if text := line.strip():
                    report(Progress(stage=f"{stage}: {text[:100]}"))
            process.wait()
        finally:
            timer.cancel()
            end_group(process)
    if process.returncode or timed_out.is_set():
        why = f"took over {recipe.seconds:g} s" if timed_out.is_set() else f"exit {process.returncode}"
        raise ReferenceNotMade(
            f"making the reference solution failed: {' '.join(recipe.make)}: {why}\n{''.join(tail)}"
        )


def _keep(names: Iterable[str], tree: Path, store: Path) -> None:
    """Copy what was made into `store`, whole or not at all."""
    for name in names:
        if not (tree / name).is_file():
            raise ReferenceNotMade(f"making the reference solution left no {name}")
    partial = Path(tempfile.mkdtemp(prefix=f"{store.name}.partial-", dir=store.parent))
    try:
        _copy(names, tree, partial)
        partial.replace(store)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _copy(names: Iterable[str], source: Path, target: Path) -> None:
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)
