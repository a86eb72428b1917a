"""What a snapshot is, in plain frozen values, and everything that can be said about one."""

from enum import StrEnum

import msgspec

MIB = 1 << 20
GIB = 1 << 30

DEFAULT_EXCLUDES = (
    "holds:pyvenv.cfg",
    "holds:conda-meta",
    "holds:CACHEDIR.TAG",
    "__pycache__/",
    ".cache/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".ipynb_checkpoints/",
    "node_modules/",
)
"""`name/` is any folder called so, `holds:x` any folder below the top with an entry called x, a pattern with a
slash inside is matched against the path from the top, and one without against every file's name."""


class SnapshotError(Exception):
    """A request that cannot be carried out: a number taken twice, an unknown snapshot, a target that is not empty."""


class SnapshotBusy(SnapshotError):
    """Somebody else holds the store and did not let go in time."""


class SnapshotStatus(StrEnum):
    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"


class SkipKind(StrEnum):
    """Why something in the working tree is listed and not stored, or stored with a reservation."""

    SPECIAL = "special"
    VANISHED = "vanished"
    UNREADABLE = "unreadable"
    TORN = "torn"
    HUGE = "huge"
    MOUNT = "mount"
    TIME = "time-budget"
    COUNT = "file-budget"
    PATH = "path-length"
    BYTES = "byte-budget"
    ARTIFACTS = "artifact-budget"
    DISK = "disk-floor"

    @property
    def loses_content(self) -> bool:
        """A socket has no content, and what is gone by the time it is read is not in the tree any more."""
        return self not in {SkipKind.SPECIAL, SkipKind.VANISHED}


class SkippedPath(msgspec.Struct, frozen=True):
    """`path` is printable text from `names.shown`; size, mtime and SHA-256 where they are known."""

    path: str
    reason: str
    kind: SkipKind = SkipKind.UNREADABLE
    size: int | None = None
    mtime_ns: int | None = None
    sha256: str | None = None


class ExcludedFolder(msgspec.Struct, frozen=True):
    """Something the policy leaves out; the counts are lower bounds where `counted` is false."""

    path: str
    pattern: str
    files: int
    bytes: int
    counted: bool = True


class ExcludedTotal(msgspec.Struct, frozen=True):
    """All that one pattern left out."""

    pattern: str
    places: int
    files: int
    bytes: int
    counted: bool = True


class NestedRepository(msgspec.Struct, frozen=True):
    """A repository inside the working tree, read without ever running git in it."""

    path: str
    head: str
    commit: str | None
    tracked: int | None
    changed: int | None
    """Tracked files that are gone or differ in size or time from what the repository's index remembers."""
    problem: str | None = None


class StoredArtifact(msgspec.Struct, frozen=True):
    path: str
    sha256: str
    size: int


class SnapshotPolicy(msgspec.Struct, frozen=True):
    """What a snapshot may cost. Sizes in bytes."""

    max_seconds: float = 120.0
    max_files: int = 200_000
    max_bytes: int = 64 * GIB
    artifact_threshold: int = 8 * MIB
    huge_file_bytes: int = 4 * GIB
    huge_hash_seconds: float = 0.5
    """A file too large to be stored is still hashed when that is expected to take no longer than this."""
    artifact_budget_bytes: int = 64 * GIB
    disk_floor_bytes: int = 2 * GIB
    excludes: tuple[str, ...] = DEFAULT_EXCLUDES
    wait_seconds: float = 300.0
    """How long to wait for somebody else's snapshot on the same store."""


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What git cannot say about a snapshot; a blob beside the tree it speaks of, under the same commit."""

    version: int
    number: int
    status: SnapshotStatus
    files: int
    bytes: int
    folders: int
    seconds: float
    """Up to the moment the manifest was written."""
    policy: SnapshotPolicy
    skipped: tuple[SkippedPath, ...] = ()
    skipped_count: int = 0
    excluded: tuple[ExcludedFolder, ...] = ()
    excluded_total: tuple[ExcludedTotal, ...] = ()
    nested: tuple[NestedRepository, ...] = ()
    artifacts: tuple[StoredArtifact, ...] = ()
    evicted: tuple[str, ...] = ()
    """Artifacts of older snapshots removed to make room for this one (SHA-256)."""


class Snapshot(msgspec.Struct, frozen=True):
    """One taken snapshot. A failed one has neither commit nor tree, and says why in `problem`."""

    number: int
    commit: str
    tree: str
    status: SnapshotStatus
    files: int
    bytes: int
    artifacts: int
    skipped: tuple[SkippedPath, ...]
    """At most a hundred; all of them are in the manifest."""
    excluded: tuple[ExcludedTotal, ...]
    seconds: float
    skipped_count: int = 0
    evicted: tuple[str, ...] = ()
    waited: float = 0.0
    problem: str | None = None


class EntryKind(StrEnum):
    FILE = "file"
    ARTIFACT = "artifact"
    LINK = "link"
    FOLDER = "folder"


class Entry(msgspec.Struct, frozen=True):
    """One stored path. `digest` is a git object id for a file or link, a SHA-256 for an artifact."""

    path: str
    kind: EntryKind
    mode: int
    """As in `st_mode`, with set-uid and sticky bits."""
    mtime_ns: int
    digest: str
    size: int | None = None


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"
    TYPE_CHANGED = "type-changed"


class FileChange(msgspec.Struct, frozen=True):
    """A digest is prefixed with `git:` or `sha256:`. `patch` is unified text, for readable files of moderate size."""

    path: str
    kind: ChangeKind
    old_size: int | None = None
    new_size: int | None = None
    old_digest: str | None = None
    new_digest: str | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    is_binary: bool = False
    is_large: bool = False
    patch: str | None = None


class TreeDiff(msgspec.Struct, frozen=True):
    old: str
    new: str
    changes: tuple[FileChange, ...]
    truncated: int = 0
    """Text changes whose patch was left out because there are too many of them."""
    unlisted: int = 0
    """Changes left out altogether, the last by name, because there are too many of them."""

    def __len__(self) -> int:
        return len(self.changes)


class PathChange(msgspec.Struct, frozen=True):
    path: str
    kind: ChangeKind
    size: int | None = None


class Missing(msgspec.Struct, frozen=True):
    path: str
    reason: str


class CheckoutReport(msgspec.Struct, frozen=True):
    """`missing` is everything the snapshot knew of and could not give back."""

    commit: str
    files: int
    folders: int
    bytes: int
    cloned: int
    missing: tuple[Missing, ...]
    stripped: tuple[str, ...]
    """Files whose set-uid or set-gid bit was left off on purpose."""
    torn: tuple[str, ...]
    seconds: float

    @property
    def complete(self) -> bool:
        return not self.missing and not self.torn


class EvictionReport(msgspec.Struct, frozen=True):
    removed: tuple[str, ...]
    freed_bytes: int
    kept_bytes: int
