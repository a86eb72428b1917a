"""Writes a small whole environment: prepared, checked and scored as it stands, with its own sealed seed."""

from __future__ import annotations

import json
import os
import re
import secrets
import tempfile
from pathlib import Path

from environments.contract import CANARY
from environments.sealing import passphrase_from, seal

TEMPLATE = Path(__file__).parent / "template"
SLUG = re.compile(r"[a-z][a-z0-9_]{1,63}")


class SlugUnusable(ValueError):
    """The name cannot be an environment's, or its folder is taken."""


def write(slug: str, parent: Path) -> Path:
    """Write the environment `slug` below `parent`; returns its folder.

    Raises:
        SlugUnusable: the name is no slug, or the folder exists.
    """
    if not SLUG.fullmatch(slug):
        raise SlugUnusable(f"{slug!r} cannot be a slug: lower-case letters, digits and _, a letter first")
    folder = parent / slug
    if folder.exists():
        raise SlugUnusable(f"cannot write {folder}: it exists already")
    title = slug.replace("_", " ").capitalize()
    for source in sorted(path for path in TEMPLATE.rglob("*") if path.is_file()):
        if source.name == "reference.py.txt":
            continue
        target = folder / str(source.relative_to(TEMPLATE)).removesuffix(".txt")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_filled(source, slug, title))
    _seal_secrets(folder, slug, title)
    return folder


def _filled(source: Path, slug: str, title: str) -> str:
    text = source.read_text()
    return text.replace("@SLUG@", slug).replace("@TITLE@", title).replace("@CANARY@", CANARY)


def _seal_secrets(folder: Path, slug: str, title: str) -> None:
    """The private seed is drawn here and never stands in plain."""
    passphrase = passphrase_from(os.environ)
    with tempfile.TemporaryDirectory() as place:
        keys, reference = Path(place, "keys"), Path(place, "reference")
        keys.mkdir()
        reference.mkdir()
        (keys / "keys.json").write_text(json.dumps({"seed": secrets.randbits(63)}))
        (reference / "solution.py").write_text(_filled(TEMPLATE / "reference.py.txt", slug, title))
        seal(keys, folder / "protected" / "keys.sealed", passphrase)
        seal(reference, folder / "protected" / "reference.sealed", passphrase)
