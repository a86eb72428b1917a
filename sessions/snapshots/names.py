"""Two spellings of a path that may hold any bytes: one for git trees, one for people and JSON."""

import os
import re

ENTRIES = "%entries.json"
"""The reserved name in a facts tree; no file's name is spelt so, see `to_tree`."""

# What git, or a file system git fears, takes for `.git`, `.gitmodules` and their kind.
_FEARED = re.compile(rb"\.git|git~|gi[0-9a-z]{4}~|gitmod~|gitatt~|gitign~|mailma~|\.mailmap|%", re.IGNORECASE)
# Code points HFS+ skips when it compares names.
_IGNORED_BY_HFS = re.compile(rb"\xe2\x80[\x8c-\x8f\xaa-\xae]|\xe2\x81[\xaa-\xaf]|\xef\xbb\xbf")
_ESCAPED = re.compile(rb"\\\\|\\x([0-9a-f]{2})")


def to_tree(name: bytes) -> bytes:
    """`name` as it stands in our git trees: itself, or behind a `%` where git would refuse it. Reversible."""
    if b"\\" not in name and not _FEARED.match(name) and not _IGNORED_BY_HFS.search(name):
        return name
    return b"%" + name.replace(b"%", b"%25").replace(b"\\", b"%5C")


def from_tree(name: bytes) -> bytes:
    if not name.startswith(b"%"):
        return name
    return name[1:].replace(b"%5C", b"\\").replace(b"%25", b"%")


def tree_path(path: str) -> bytes:
    """A path of the working tree, as `os` spells it, to its path in our git trees."""
    raw = os.fsencode(path)
    if raw.isalnum():
        return raw
    return b"/".join(to_tree(part) for part in raw.split(b"/"))


def shown(path: str) -> str:
    """Printable, valid text for any path: control and foreign bytes as `\\xNN`, a backslash doubled. Reversible."""
    if path.isascii() and path.isprintable() and "\\" not in path:
        return path
    text = os.fsencode(path).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else "".join(f"\\x{b:02x}" for b in c.encode()) for c in text)


def unshown(text: str) -> str:
    """The path that `shown` was given."""
    raw = _ESCAPED.sub(lambda m: bytes.fromhex(m[1].decode()) if m[1] else b"\\", text.encode())
    return os.fsdecode(raw)


def child(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
