"""The threat model names every attempt, and no attempt that is not made."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUBMISSIONS = ROOT / "tests" / "cheats" / "generic" / "submissions"


def test_every_trick_stands_in_the_threat_model_and_no_other() -> None:
    section = (ROOT / "docs" / "threat-model.md").read_text().split("## What was tried")[1].split("\n## ")[0]
    named = {
        name
        for row in re.findall(r"^\| .*$", section, re.MULTILINE)
        for name in re.findall(r"`([a-z_]+(?:\.py)?)`", row.split("|")[2])
    }
    made = {
        path.name
        for path in SUBMISSIONS.iterdir()
        if path.name != "__pycache__" and not path.name.startswith("honest")
    }
    assert named == made
