"""The tiny environment, prepared and scored, for whatever tests the engine through it."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from environments import assets, registry
from environments.contract import AssetFolders, Environment, Progress, ScoreReport, Submission
from environments.sealing import PUBLIC_PASSPHRASE

TINY = Path(__file__).parent / "tiny"
STARTER_SCORE = 76.67130156791514
"""Mean squared error of the untouched starter on the sealed seed's numbers."""


def quiet(_progress: Progress) -> None:
    """Take progress and show nothing."""


class Tiny:
    """The tiny environment with its assets below one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.found = registry.find("tiny", [TINY])
        self.environment: Environment = registry.load(self.found)
        assets.prepare(self.environment, self.found.spec, "cpu", PUBLIC_PASSPHRASE, home, quiet)

    @property
    def folders(self) -> AssetFolders:
        return assets.folders_for(self.found.spec, "cpu", self.home)

    def lay_out(self, root: Path, cheat: Path | None = None) -> Path:
        """Write a work tree: the starter, and over it a cheat's file or folder."""
        root.mkdir(parents=True)
        shutil.copyfile(TINY / "starter" / "solution.py", root / "solution.py")
        shutil.copyfile(self.folders.public / "train.json", root / "train.json")
        if cheat is not None and cheat.is_dir():
            shutil.copytree(cheat, root, dirs_exist_ok=True)
        elif cheat is not None:
            shutil.copyfile(cheat, root / "solution.py")
        return root

    def submission(self, root: Path, scratch: Path) -> Submission:
        scratch.mkdir(parents=True, exist_ok=True)
        return Submission(
            root=root,
            profile_name="cpu",
            profile=self.found.spec.profile("cpu"),
            assets=self.folders,
            scratch=scratch,
            seed=7,
        )

    def score(self, root: Path, scratch: Path) -> ScoreReport:
        return self.environment.score(self.submission(root, scratch), quiet)


def fingerprint(*folders: Path) -> str:
    """Return a digest of every file's name, rights and contents."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(p for p in folder.rglob("*") if "__pycache__" not in p.parts):
            digest.update(f"{path}\0{path.lstat().st_mode:o}\0".encode())
            if path.is_file():
                digest.update(path.read_bytes())
    return digest.hexdigest()
