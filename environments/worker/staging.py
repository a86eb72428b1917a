"""Lays out what a worker needs from us: copies of the trusted scripts, readable by any account, and its mounts' rights."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from environments.worker.confine import EMPTY, ETC_ALONE, PRIVATE_HOME, open_to_others
from environments.worker.jobs import Level, Mount, WorkerJob, WorkerUnavailable
from environments.worker.owners import owned_name, quietly, sweep_folders

_ENGINE = Path(__file__).resolve().parents[1]
_ALWAYS = ("worker/launch.py", "worker/messages.py")


def stage(job: WorkerJob, folder: Path, account: int | None) -> str:
    """Copy the launcher, the entry and its modules below `folder`; return the entry's importable name."""
    folder.mkdir(parents=True)
    for name in _ALWAYS:
        _copy(_ENGINE / name, folder, Path("environments") / name)
    for source in job.modules:
        _copy(source, folder, _place(source))
    entry = _place(job.entry)
    _copy(job.entry, folder, entry)
    who = account if account is not None else os.getuid()
    (folder / "passwd").write_text(f"worker:x:{who}:{who}:worker:{PRIVATE_HOME}:/bin/sh\n")
    (folder / EMPTY).touch()
    for name, content in ETC_ALONE.items():
        (folder / name).write_text(content)
    for name in ("passwd", EMPTY, *ETC_ALONE):
        (folder / name).chmod(0o644)
    return ".".join(entry.with_suffix("").parts)


def temporary_folder(account: int | None) -> Path:
    """Make an empty folder which `account` can reach, and remove those of killed scorers."""
    usual = tempfile.gettempdir()
    reachable = account is None or open_to_others(f"{usual}/any")
    base = Path(usual if reachable else "/tmp")  # noqa: S108  (the folder in it is made ours and closed)
    sweep_folders(base)
    folder = base / owned_name()
    folder.mkdir(mode=0o700)
    return folder


def places(job: WorkerJob, level: Level, folder: Path) -> dict[str, str]:
    """Return where each mount is for the worker; what another account could not reach is linked or copied into `folder`.

    Raises:
        WorkerUnavailable: a writable mount cannot be reached and a copy would lose what is written.
    """
    if level in (Level.SANDBOX, Level.SANDBOX_ACCOUNT):
        return {name: f"/job/{name}" for name in job.mounts}
    found = {}
    for name, mount in job.mounts.items():
        source = mount.source.resolve()
        if level is Level.ACCOUNT and not open_to_others(str(source)):
            if mount.writable:
                raise WorkerUnavailable(
                    f"the worker's account cannot reach the writable folder {source}: a folder above it is closed to "
                    "others; put it elsewhere, or install bubblewrap"
                )
            _link_or_copy(source, folder / name)
            source = folder / name
        found[name] = str(source)
    return found


def open_mounts(mounts: Iterable[Mount], account: int) -> None:
    """Let `account` read every mount and own the writable ones."""
    for mount in mounts:
        if mount.writable:
            _give(mount.source, account)
            continue
        quietly("chmod", "-R", "o+rX", "--", str(mount.source))


def take_back(mounts: Iterable[Mount]) -> None:
    """Make the writable mounts ours again."""
    for mount in mounts:
        if mount.writable:
            _give(mount.source, os.getuid())


def _place(source: Path) -> Path:
    """Return where a trusted file stands in the stage: under its own dotted name, or bare for a plug-in's."""
    source = source.resolve()
    if source.is_relative_to(_ENGINE):
        return Path("environments") / source.relative_to(_ENGINE)
    return Path(source.name)


def _copy(source: Path, folder: Path, place: Path) -> None:
    target = folder / place
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o644)
    for parent in target.parents:
        parent.chmod(0o755)
        if parent == folder:
            break
        (parent / "__init__.py").touch(mode=0o644)


def _link_or_copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not source.is_dir():
        _link_file(str(source), str(target))
        return
    shutil.copytree(source, target, symlinks=True, copy_function=_link_file)


def _link_file(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or a kind that cannot be linked
        shutil.copy2(source, target, follow_symlinks=False)


def _give(tree: Path, account: int) -> None:
    """Change the owner of everything in `tree`, as far as that can be; links are not followed."""
    quietly("chown", "-hR", f"{account}:{account}", "--", str(tree))
