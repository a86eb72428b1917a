"""A record as one file that opens and verifies anywhere, and back into a store that takes in nothing unsound."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from sessions.audit.verify import verify
from sessions.clients.hosting import is_hosted
from sessions.record.store import Record, Store
from sessions.recording.format import is_evidence

SUFFIX = ".rebench.tar.gz"
_PIECE = 1 << 18
LEFT_HERE = frozenset({"wiring.json", "host.lock", "host.log"})
"""Of this machine, no part of the record."""


class BundleRefused(ValueError):
    """A bundle cannot be made or taken in; nothing was changed."""


def bundle(record: Record, target: Path) -> Path:
    """Write the record into one archive at `target`, whole or not at all; returns the file.

    Raises:
        BundleRefused: a host still writes into the record, or there is a file at `target`.
    """
    if os.path.isdir(target):  # noqa: PTH112  (pathlib's raises for a name too long)
        target = target / f"{record.session}{SUFFIX}"
    if os.path.lexists(target):
        raise BundleRefused(f"cannot write {target}: it exists already")
    if not record.closed() and is_hosted(record):
        raise BundleRefused(
            f"cannot bundle {record.session}: it is going on; it can be bundled once it is closed"
        )
    unfinished = target.with_name(target.name + ".part")
    try:
        with tarfile.open(unfinished, "w:gz", compresslevel=6) as archive:
            for path in sorted(_contents(record)):
                archive.add(path, arcname=_name(record, path), recursive=False, filter=_anonymous)
        unfinished.rename(target)
    except OSError as error:
        raise BundleRefused(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink()
    return target


def _contents(record: Record) -> Iterator[Path]:
    for path in record.folder.rglob("*"):
        within = path.relative_to(record.folder)
        kept = within.parts[0] not in LEFT_HERE and is_evidence(within)
        if kept and (path.is_dir() or path.is_file()):
            yield path


def _name(record: Record, path: Path) -> str:
    return str(PurePosixPath(record.session) / path.relative_to(record.folder))


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def take_in(archive: Path, store: Store) -> Record:
    """Unpack a bundle beside the store, verify it, and only then move it in; returns the record.

    Raises:
        BundleRefused: it is no bundle, holds more than one record, is not sound, or the store has one of that name.
    """
    store.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=store.home, prefix="import-") as folder:
        arrived = Record(_unpack(archive, Path(folder) / "sessions"))
        if not arrived.log.is_file():
            raise BundleRefused(f"{archive} is no bundle: it has no events.jsonl")
        place = store.folder / arrived.session
        if place.exists():
            raise BundleRefused(f"cannot import {archive}: {arrived.session} is in {store.folder} already")
        report = verify(arrived)
        if not report.sound:
            problems = "".join(f"\n  - {problem}" for problem in report.problems[:5])
            raise BundleRefused(f"cannot import {archive}: the record is not sound:{problems}")
        shutil.move(arrived.folder, place)
    return Record(place)


def _extract(content: tarfile.TarFile, into: Path) -> None:
    """Write plain files and folders below `into`; anything else is no part of a record."""
    members = content.getmembers()
    for member in members:
        path = PurePosixPath(member.name)
        if not (member.isreg() or member.isdir()) or path.is_absolute() or ".." in path.parts:
            raise tarfile.ExtractError(f"{member.name!r} is neither a file nor a folder of a record")
        _anonymous(member).mode &= 0o755
    if hasattr(tarfile, "data_filter"):
        content.extractall(into, members, filter="data")
    else:  # Python before 3.11.4, as in Debian 12
        content.extractall(into, members)  # noqa: S202 - each was looked at above


class _Sparing(tarfile.TarFile):
    """Leaves holes where a file holds zeros only: a sparse file of a participant's would fill the disk."""

    def makefile(
        self, tarinfo: tarfile.TarInfo, targetpath: str | bytes | os.PathLike[str] | os.PathLike[bytes]
    ) -> None:
        source = self.extractfile(tarinfo)
        assert source is not None  # only plain files come here
        with source, Path(os.fsdecode(targetpath)).open("xb") as target:
            while piece := source.read(_PIECE):
                if piece.count(0) == len(piece):
                    target.seek(len(piece), os.SEEK_CUR)
                else:
                    target.write(piece)
            target.truncate()


def _unpack(archive: Path, into: Path) -> Path:
    into.mkdir()
    try:
        with gzip.open(archive) as stream, _Sparing.open(fileobj=stream, mode="r:") as content:
            _extract(content, into)
            while stream.read(1 << 20):  # to the checksum at its end
                pass
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise BundleRefused(f"{archive} is no bundle, or is cut off: {error}") from error
    tops = list(into.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        raise BundleRefused(
            f"{archive} is no bundle: it holds {len(tops)} things at its top where one record belongs"
        )
    return tops[0]
