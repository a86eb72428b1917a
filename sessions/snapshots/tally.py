"""Long lists of left-out paths made short without losing count."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice

from sessions.snapshots.values import ExcludedFolder, ExcludedTotal, SkipKind, SkippedPath

_LISTED_IN_ANSWER = 20_000
_CHARACTERS_IN_ANSWER = 4 << 20


def condensed(skipped: list[SkippedPath], limit: int) -> tuple[SkippedPath, ...]:
    """At most about `limit` lines: where there are more, one line a folder and kind, and then one a kind."""
    ordered = sorted(skipped, key=lambda s: (not s.kind.loses_content, s.path))
    if len(ordered) <= limit:
        return tuple(ordered)
    for depth in (8, 4, 2, 1):
        lines = _grouped(ordered, depth)
        if len(lines) <= limit:
            return lines
    return _grouped(ordered, 0)


def _grouped(skipped: list[SkippedPath], depth: int) -> tuple[SkippedPath, ...]:
    groups: defaultdict[tuple[str, SkipKind], list[SkippedPath]] = defaultdict(list)
    for item in skipped:
        folder = item.path.rstrip("/").rpartition("/")[0]
        groups["/".join(folder.split("/")[:depth]), item.kind].append(item)
    lines = []
    for (folder, kind), items in groups.items():
        if len(items) == 1:
            lines.append(items[0])
            continue
        size = sum(i.size or 0 for i in items)
        reason = f"{len(items)} paths, the first of them {items[0].path}: {items[0].reason}"
        lines.append(SkippedPath(f"{folder}/" if folder else "./", reason, kind, size))
    return tuple(lines)


def listable(paths: Iterable[str]) -> int:
    """How many of `paths` an answer lists, from the first on, so that it stays well within one message."""
    listed = characters = 0
    for path in islice(paths, _LISTED_IN_ANSWER):
        characters += len(path)
        if characters > _CHARACTERS_IN_ANSWER:
            break
        listed += 1
    return listed


def totals(excluded: list[ExcludedFolder]) -> tuple[ExcludedTotal, ...]:
    """One line a pattern."""
    groups: defaultdict[str, list[ExcludedFolder]] = defaultdict(list)
    for item in excluded:
        groups[item.pattern].append(item)
    return tuple(
        ExcludedTotal(
            pattern,
            len(items),
            sum(i.files for i in items),
            sum(i.bytes for i in items),
            all(i.counted for i in items),
        )
        for pattern, items in sorted(groups.items())
    )
