"""One snapshot in the making: look, read what changed, write one pack, publish one commit."""

import os
from dataclasses import dataclass

import msgspec

from sessions.snapshots.artifacts import Artifacts
from sessions.snapshots.describe import changes
from sessions.snapshots.memory import Memory
from sessions.snapshots.names import child, shown
from sessions.snapshots.nested import describe
from sessions.snapshots.reading import Places, Reader, Tools
from sessions.snapshots.room import Room
from sessions.snapshots.tally import condensed, totals
from sessions.snapshots.values import Manifest, SnapshotPolicy, SnapshotStatus, StoredArtifact
from sessions.snapshots.walk import Folder, Walked, count_excluded
from sessions.snapshots.writing import Import

MANIFEST_VERSION = 1
_COUNTING_SECONDS = 0.15
_LISTED_IN_MANIFEST = 10_000


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of one `take`."""

    number: int
    message: str
    at: int
    parent: str | None


@dataclass(frozen=True, slots=True)
class Taken:
    manifest: Manifest
    folders: dict[str, Folder]


def take_into(
    writer: Import,
    root: int,
    request: Request,
    policy: SnapshotPolicy,
    artifacts: Artifacts,
    room: Room,
    memory: Memory | None,
    tools: Tools,
) -> Taken:
    """Everything from the first look to the last word said to git, which is then left to finish by itself."""
    began = tools.clock()
    top = os.fstat(root)
    known = memory.folders if memory and memory.root == (top.st_dev, top.st_ino) else {}
    # The parent's tree is built upon only where we know it for certain.
    anew = not known or memory is None or memory.commit != request.parent
    reader = Reader(root, policy, Places(writer, artifacts, room), known, tools)
    walked, folders = reader.read()
    differences = changes({} if anew else known, folders, walked)
    manifest = _manifest(request.number, reader, walked, folders, began)
    writer.commit(f"refs/snapshots/{request.number}", request.message, request.at, request.parent, anew=anew)
    differences.write(writer)
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    writer.place_text(text, b"manifest.json")
    writer.ask_for_tree(b"work")
    writer.end()
    return Taken(manifest, folders)


def _manifest(
    number: int, reader: Reader, walked: Walked, folders: dict[str, Folder], began: float
) -> Manifest:
    clock, root = reader.tools.clock, reader.root
    excluded = count_excluded(root, walked.excluded, _COUNTING_SECONDS, clock)
    lossy = any(s.kind.loses_content for s in reader.skipped)
    return Manifest(
        version=MANIFEST_VERSION,
        number=number,
        status=SnapshotStatus.PARTIAL if lossy else SnapshotStatus.COMPLETE,
        files=reader.files,
        bytes=reader.bytes,
        folders=len(folders),
        seconds=round(clock() - began, 6),
        policy=reader.policy,
        skipped=condensed(reader.skipped, _LISTED_IN_MANIFEST),
        skipped_count=len(reader.skipped),
        excluded=tuple(excluded[:_LISTED_IN_MANIFEST]),
        excluded_total=totals(excluded),
        nested=tuple(describe(root, path, folders, walked) for path in walked.nested),
        artifacts=tuple(
            StoredArtifact(shown(child(path, name)), sha256, int(size))
            for path, folder in folders.items()
            for name, (sha256, size) in folder.artifacts.items()
        ),
        evicted=tuple(reader.room.evicted),
    )
