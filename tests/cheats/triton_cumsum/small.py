"""A small triton_cumsum to score submissions on: the same code and rules, shorter arrays and fewer timings."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec

from environments import assets, registry
from environments.contract import Profile, ScoreReport, Submission
from environments.sealing import PUBLIC_PASSPHRASE

HOST = {"length": 300_000, "timing_seconds": 2.0, "call_seconds": 4.0, "least": 4, "most": 6}
DEVICE = {
    "length": 20_000_000, "timing_seconds": 3.0, "call_seconds": 6.0, "least": 8, "most": 20,
    "steady": None,  # other submissions are started meanwhile
}  # fmt: skip


def quiet(_progress: object) -> None:
    """Take progress and show nothing."""


class Small:
    """The environment, prepared below `home`, with a profile cut down."""

    def __init__(self, home: Path, profile_name: str, changes: dict[str, object]) -> None:
        self.found = registry.find("triton_cumsum")
        self.environment = registry.load(self.found)
        self.name = profile_name
        assets.prepare(self.environment, self.found.spec, profile_name, PUBLIC_PASSPHRASE, home, quiet)
        self.folders = assets.folders_for(self.found.spec, profile_name, home)
        whole = self.found.spec.profile(profile_name)
        self.profile: Profile = msgspec.structs.replace(whole, settings={**whole.settings, **changes})

    def submission(self, source: Path, folder: Path, seed: int = 7) -> Submission:
        root, scratch = folder / "root", folder / "scratch"
        if source.is_dir():
            shutil.copytree(source, root)
        else:
            root.mkdir(parents=True)
            shutil.copyfile(source, root / "solution.py")
        scratch.mkdir(exist_ok=True)
        return Submission(
            root=root, profile_name=self.name, profile=self.profile, assets=self.folders, scratch=scratch,
            seed=seed,
        )  # fmt: skip

    def score(self, source: Path, folder: Path, seed: int = 7) -> ScoreReport:
        return self.environment.score(self.submission(source, folder, seed), quiet)


def submissions(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.name != "__pycache__")


def first_line(cheat: Path) -> str:
    source = cheat / "solution.py" if cheat.is_dir() else cheat
    return source.read_text().splitlines()[0]


def promised(cheat: Path) -> tuple[str, ...]:
    """Return the verdicts that a submission's first line allows."""
    found = re.search(r"Seen: .+ Expected: ([a-z -]+)\.\"\"\"$", first_line(cheat))
    assert found, (
        f"{cheat} does not say in its first line what it tries, where it was seen and what is expected"
    )
    return tuple(found[1].split(" or "))
