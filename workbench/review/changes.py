"""What changed between two snapshots, as lines for a terminal; large and binary files by size and hash."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
from click import style

from sessions.clients.protocol import Fault, Refusal
from sessions.record.store import Record
from sessions.snapshots import SnapshotError, SnapshotStore
from workbench.ink.figures import size
from workbench.ink.text import literal

_WORDS = {"added": "green", "removed": "red", "modified": "yellow", "type-changed": "magenta"}


def compare(record: Record, old: int, new: int) -> dict[str, Any]:
    """Return the difference between two snapshots of a record, as the host would answer it.

    Raises:
        SnapshotError: there is no such snapshot.
    """
    with reading(record) as store:
        found: dict[str, Any] = msgspec.to_builtins(store.diff(old, new))
        return found


@contextmanager
def reading(record: Record) -> Iterator[SnapshotStore]:
    """Yield a record's snapshots for reading: unlike `SnapshotStore.open`, nothing is swept under a live host.

    Raises:
        SnapshotError: the record has no snapshots.
    """
    if not (record.folder / "snapshots.git").is_dir():
        raise SnapshotError(f"the record {record.session} has no snapshots")
    store = SnapshotStore(record.folder)
    try:
        yield store
    finally:
        store.close()


async def answer_diff(record: Record, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a screen's `diff` from the record.

    Raises:
        Refusal: there is no such snapshot.
    """
    try:
        return await asyncio.to_thread(compare, record, parameters["old"], parameters["new"])
    except SnapshotError as error:
        raise Refusal(str(error), Fault.BAD_PARAMETERS) from error


def diff_lines(found: dict[str, Any], *, names_only: bool = False) -> Iterator[str]:
    """Yield the lines of a difference: one for each file, then its patch; outside text is literal."""
    for change in found["changes"]:
        yield heading(change)
        if not names_only and change["patch"]:
            yield from map(_coloured, patch_lines(change["patch"]))
    if found["unlisted"]:
        yield style(f"and {found['unlisted']} more files", fg="yellow")
    if found["truncated"]:
        yield style(f"{found['truncated']} more text changes are not shown", fg="yellow")


def patch_lines(patch: str) -> list[str]:
    """Split a patch at its line ends and nowhere else: any other character that ends lines would forge one."""
    return patch.removesuffix("\n").split("\n")


def heading(change: dict[str, Any]) -> str:
    """Return one file's line: what happened to it, how large it was and is, a hash where it is not shown."""
    kind = style(change["kind"], fg=_WORDS.get(change["kind"], "white"), bold=True)
    sizes = " → ".join(size(n) for n in (change["old_size"], change["new_size"]) if n is not None)
    about = [sizes] if sizes else []
    if change["is_large"] or change["is_binary"]:
        about.append("large" if change["is_large"] else "binary")
        about += [digest[:19] for digest in (change["new_digest"] or change["old_digest"],) if digest]
    if (
        change["old_mode"] is not None
        and change["new_mode"] is not None
        and change["old_mode"] != change["new_mode"]
    ):
        about.append(f"mode {change['old_mode']:o} → {change['new_mode']:o}")
    return f"{kind} {literal(change['path'])}  {style(' · '.join(about), dim=True)}"


def _coloured(line: str) -> str:
    shown = literal(line)
    if line.startswith("@@"):
        return style(shown, fg="cyan")
    if line.startswith(("+++", "---")):
        return style(shown, bold=True)
    if line.startswith("+"):
        return style(shown, fg="green")
    if line.startswith("-"):
        return style(shown, fg="red")
    return shown
