"""Where prepared public and protected files live: preparing them once, proving they are whole."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from environments.contract import (
    AssetFolders,
    AssetsMissing,
    Environment,
    EnvironmentSpec,
    PrepareRequest,
    Progress,
    ReportProgress,
    Value,
)

_MANIFEST = "manifest.json"
_CHUNK = 4 * 2**20


class State(StrEnum):
    """How far a profile's assets are."""

    ABSENT = "absent"
    PARTIAL = "partial"
    """A preparation was begun and not finished; preparing again resumes it."""
    READY = "ready"
    DAMAGED = "damaged"


class FileEntry(Value, frozen=True):
    """One prepared file as it was when the preparation finished."""

    path: str
    """`public/train.safetensors`"""
    size: int
    modified_ns: int
    sha256: str


class Manifest(Value, frozen=True):
    """Written last: its presence means the preparation finished."""

    environment: str
    version: str
    profile: str
    prepared_at: str
    """UTC."""
    seconds: float
    files: tuple[FileEntry, ...]

    @property
    def size(self) -> int:
        return sum(f.size for f in self.files)


def folders_for(spec: EnvironmentSpec, profile_name: str, root: Path) -> AssetFolders:
    """Return where the assets of one version and profile belong below `root` (see `environments.machine.home`).

    Raises:
        ProfileUnavailable: there is no such profile.
    """
    spec.profile(profile_name)
    place = root / "assets" / spec.slug / spec.version / profile_name
    return AssetFolders(public=place / "public", protected=place / "protected")


def prepare(
    environment: Environment,
    spec: EnvironmentSpec,
    profile_name: str,
    passphrase: str,
    root: Path,
    report: ReportProgress,
) -> Manifest:
    """Fill the profile's asset folders unless they are whole already; a second caller waits for the first.

    Raises:
        EnvironmentFault: what the environment says is missing. What was made so far stays, for the next try.
    """
    folders = folders_for(spec, profile_name, root)
    place = folders.public.parent
    place.mkdir(parents=True, exist_ok=True)
    with locked(place / ".lock", report):
        if state(folders) is State.READY:
            report(Progress(stage="already prepared", fraction=1.0))
            return read_manifest(folders)
        (place / _MANIFEST).unlink(missing_ok=True)
        _make_folders(folders)
        began = time.monotonic()
        request = PrepareRequest(
            profile_name=profile_name,
            profile=spec.profile(profile_name),
            assets=folders,
            passphrase=passphrase,
        )
        environment.prepare(request, report)
        return _finish(folders, spec, profile_name, time.monotonic() - began, report)


def state(folders: AssetFolders) -> State:
    """Return how far the assets are, by names, sizes and times only."""
    place = folders.public.parent
    if not (place / _MANIFEST).exists():
        began = any(
            f.is_dir() and any(f.iterdir()) for f in (folders.public, folders.protected) if _readable(f)
        )
        return State.PARTIAL if began else State.ABSENT
    try:
        manifest = read_manifest(folders)
    except AssetsMissing:
        return State.DAMAGED
    return State.DAMAGED if _first_difference(place, manifest, deep=False, report=None) else State.READY


def verify(folders: AssetFolders, *, deep: bool = False, report: ReportProgress | None = None) -> Manifest:
    """Return the manifest if every file is as it was; `deep` reads them all.

    Raises:
        AssetsMissing: names the first file that is missing or differs, and what to run.
    """
    manifest = read_manifest(folders)
    place = folders.public.parent
    if difference := _first_difference(place, manifest, deep=deep, report=report):
        raise AssetsMissing(
            f"{difference} in {place}; prepare again: rebench-workbench env prepare {manifest.environment} "
            f"--profile {manifest.profile}"
        )
    return manifest


def read_manifest(folders: AssetFolders) -> Manifest:
    """Return what a finished preparation wrote.

    Raises:
        AssetsMissing: none finished here, or its list is damaged.
    """
    path = folders.public.parent / _MANIFEST
    slug, profile = path.parts[-4], path.parts[-2]
    advice = f"run: rebench-workbench env prepare {slug} --profile {profile}"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        begun = "was begun but not finished" if path.parent.is_dir() else "has not been run"
        raise AssetsMissing(f"the preparation of {slug} ({profile}) {begun}: no {path}; {advice}") from None
    except (OSError, msgspec.DecodeError) as error:
        raise AssetsMissing(f"{path} is damaged: {error}; {advice}") from error


@contextlib.contextmanager
def locked(path: Path, report: ReportProgress | None = None) -> Iterator[None]:
    """Hold an exclusive lock on `path`; the kernel frees it if this process dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if report is not None:
                report(Progress(stage="waiting for another preparation to finish"))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove(folders: AssetFolders) -> None:
    """Delete a profile's assets, manifest first, so that a torn deletion reads as absent."""
    place = folders.public.parent
    (place / _MANIFEST).unlink(missing_ok=True)
    for folder in (folders.public, folders.protected):
        shutil.rmtree(folder, ignore_errors=True)


def _make_folders(folders: AssetFolders) -> None:
    folders.public.mkdir(parents=True, exist_ok=True)
    folders.public.chmod(0o755)
    folders.protected.mkdir(parents=True, exist_ok=True)
    folders.protected.chmod(0o700)


def _finish(
    folders: AssetFolders, spec: EnvironmentSpec, profile: str, seconds: float, report: ReportProgress
) -> Manifest:
    """Set rights, hash everything, and write the manifest in one step."""
    place = folders.public.parent
    _make_folders(folders)
    paths = sorted(p for f in (folders.public, folders.protected) for p in f.rglob("*"))
    for path in paths:
        if path.is_relative_to(folders.public) and not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o7755 | (0o055 if path.is_dir() else 0o044))
    files = [p for p in paths if p.is_file() and not p.is_symlink()]
    entries = []
    for number, path in enumerate(files):
        report(Progress(stage="recording checksums", fraction=number / len(files)))
        entries.append(_entry(place, path))
    manifest = Manifest(
        environment=spec.slug, version=spec.version, profile=profile, seconds=round(seconds, 3), files=tuple(entries),
        prepared_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )  # fmt: skip
    partial = place / f"{_MANIFEST}.partial"
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    partial.replace(place / _MANIFEST)
    return manifest


def _entry(place: Path, path: Path) -> FileEntry:
    status = path.stat()
    return FileEntry(
        path=path.relative_to(place).as_posix(),
        size=status.st_size,
        modified_ns=status.st_mtime_ns,
        sha256=digest(path),
    )


def _first_difference(
    place: Path, manifest: Manifest, *, deep: bool, report: ReportProgress | None
) -> str | None:
    done = 0
    for file in manifest.files:
        path = place / file.path
        try:
            status = path.lstat()
        except OSError:
            return f"{file.path} is missing"
        if status.st_size != file.size:
            return f"{file.path} has {status.st_size} bytes instead of {file.size}"
        if not deep and status.st_mtime_ns != file.modified_ns:
            return f"{file.path} was changed after it was prepared"
        if deep and digest(path) != file.sha256:
            return f"{file.path} has other contents than were prepared"
        done += file.size
        if deep and report is not None:
            report(Progress(stage="checking checksums", fraction=done / max(1, manifest.size)))
    return None


def _readable(folder: Path) -> bool:
    return os.access(folder, os.R_OK | os.X_OK)
