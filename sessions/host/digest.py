"""The digest of everything in a record beside its log, written into `session_closed`."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import file_digest, sha256
from pathlib import Path

from sessions.record.store import Record
from sessions.recording.format import is_evidence

DIGESTED = ("brief.md", "scores", "checks", "commands", "telemetry", "recordings", "gateway")
"""What is hashed byte by byte; snapshots and artifacts are named by their own hashes."""


def record_digest(record: Record) -> str:
    """Return SHA-256 over the sorted list of `path size sha256`, snapshot refs and artifact names."""
    total = sha256()
    for line in sorted(digest_lines(record)):
        total.update(line.encode("utf-8", "surrogateescape") + b"\n")
    return total.hexdigest()


def digest_lines(record: Record) -> Iterator[str]:
    """Yield what the digest covers, one line for each thing."""
    for name in DIGESTED:
        top = record.folder / name
        files = [top] if top.is_file() else top.rglob("*")
        for path in files:
            if path.is_symlink():  # nothing of ours is one
                yield f"{path.relative_to(record.folder)} -> {path.readlink()}"
            elif path.is_file() and is_evidence(path.relative_to(record.folder)):
                yield _file_line(record.folder, path)
    yield from _snapshot_lines(record.folder / "snapshots.git")
    artifacts = record.folder / "artifacts"
    yield from (
        f"artifact {path.name} {path.stat().st_size}" for path in artifacts.rglob("*") if path.is_file()
    )


def _file_line(folder: Path, path: Path) -> str:
    with path.open("rb") as file:
        return f"{path.relative_to(folder)} {path.stat().st_size} {file_digest(file, 'sha256').hexdigest()}"


def _snapshot_lines(repository: Path) -> Iterator[str]:
    refs = repository / "refs" / "snapshots"
    for ref in refs.iterdir() if refs.is_dir() else ():
        yield f"snapshot {ref.name} {ref.read_text().strip()}"
