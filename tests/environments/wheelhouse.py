"""A folder of small wheels that pip takes for its index, so that a download is real and needs no network."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest


def put_wheel(folder: Path, package: str, members: Mapping[str, bytes]) -> str:
    """Write version 1.0 of `package` into `folder`; returns its SHA-256."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{package}-1.0-py3-none-any.whl"
    described = {
        "METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        for name, text in described.items():
            archive.writestr(f"{package}-1.0.dist-info/{name}", text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def only_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip look into `folder` and nowhere else."""
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
