"""Puts rebench-workbench on the user's path with a link, without ever replacing anybody's file."""

import os
from collections.abc import Mapping
from pathlib import Path

from scripts.bootstrap.talk import Talk


def link(command: Path, talk: Talk, *, environ: Mapping[str, str] = os.environ) -> None:
    """Link the command into a folder of the user's own; say what to do when that folder is not on the path."""
    if environ.get("REBENCH_NO_LINK") == "1":
        return
    place = _folder(environ)
    if place is None:
        talk.note(f"no home folder to put a link into; the command is {command}")
        return
    target = place / command.name
    if target.is_symlink() and target.resolve() == command.resolve():
        return
    if os.path.lexists(target) and not _is_ours(target):
        talk.note(f"{target} belongs to something else and stays; the command is {command}")
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.symlink_to(command)
    except OSError as error:
        talk.note(f"could not link {target} ({error.strerror}); the command is {command}")
        return
    talk.line(
        f"  {command.name} is on your path now: {target}"
        if str(place) in _path(environ)
        else f"  linked {target}"
    )
    if str(place) not in _path(environ):
        talk.note(f'{place} is not on your path; for this shell and later ones:\nexport PATH="{place}:$PATH"')


def _folder(environ: Mapping[str, str]) -> Path | None:
    """~/.local/bin; for root also /usr/local/bin where only that is on the path."""
    home = environ.get("HOME")
    own = Path(home) / ".local" / "bin" if home else None
    shared = Path("/usr/local/bin")
    on_path = _path(environ)
    if own is not None and str(own) in on_path:
        return own
    if os.geteuid() == 0 and str(shared) in on_path and os.access(shared, os.W_OK):
        return shared
    return own


def _path(environ: Mapping[str, str]) -> list[str]:
    return environ.get("PATH", "").split(os.pathsep)


def _is_ours(target: Path) -> bool:
    """A link of ours from another checkout, or one whose checkout is gone, may be replaced."""
    if not target.is_symlink():
        return False
    pointed = target.readlink()
    return pointed.name == target.name and (
        not pointed.exists() or (pointed.parent.parent / "pyvenv.cfg").exists()
    )
