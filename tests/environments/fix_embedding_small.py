"""fix_embedding prepared once, with a profile cut down so that a scoring takes a second."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from environments import assets, registry
from environments.contract import CheckReport, Profile, ScoreReport, Submission
from environments.fix_embedding.environment import FixEmbedding
from environments.sealing import PUBLIC_PASSPHRASE, open_sealed

FEW = {"scoring_rows": 12, "control_rows": 4, "batch": 4}


def quiet(_progress: object) -> None:
    """Take progress and show nothing."""


class Small:
    """The `cpu` profile below `home`, with few rows."""

    def __init__(self, home: Path) -> None:
        self.found = registry.find("fix_embedding")
        self.environment = registry.load(self.found)
        assert isinstance(self.environment, FixEmbedding)
        assets.prepare(self.environment, self.found.spec, "cpu", PUBLIC_PASSPHRASE, home, quiet)
        self.folders = assets.folders_for(self.found.spec, "cpu", home)
        self.whole: Profile = self.found.spec.profile("cpu")
        self.profile: Profile = msgspec.structs.replace(self.whole, settings={**self.whole.settings, **FEW})

    @property
    def damaged(self) -> Path:
        return self.folders.public / "damaged.safetensors"

    def reference(self) -> bytes:
        archive = self.found.folder / "protected" / "reference.sealed"
        return open_sealed(archive, PUBLIC_PASSPHRASE)["cpu/model.safetensors"]

    def submission(self, root: Path, scratch: Path, *, whole: bool = False, **changes: object) -> Submission:
        root.mkdir(parents=True, exist_ok=True)
        scratch.mkdir(parents=True, exist_ok=True)
        profile = self.whole if whole else self.profile
        if changes:
            profile = msgspec.structs.replace(profile, settings={**profile.settings, **changes})
        return Submission(
            root=root, profile_name="cpu", profile=profile, assets=self.folders, scratch=scratch, seed=7
        )

    def lay_out(self, root: Path) -> Path:
        """Write the untouched submission; return its file."""
        root.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copyfile(self.damaged, root / "model.safetensors"))

    def score(self, root: Path, scratch: Path, **changes: object) -> ScoreReport:
        return self.environment.score(self.submission(root, scratch, **changes), quiet)

    def check(self, root: Path, scratch: Path) -> CheckReport:
        return self.environment.check(self.submission(root, scratch))
