"""Lays out one profile of optimize_llm_foundry for scoring calls through the real judge, and remembers what the untouched script did."""

from __future__ import annotations

import fcntl
import hashlib
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
from optimize_llm_foundry_laid import SLUG, quiet

from environments import assets, registry
from environments.contract import PrepareRequest, Profile, ReportProgress, Submission
from environments.optimize_llm_foundry.environment import OptimizeLlmFoundry
from environments.optimize_llm_foundry.judge import RunStarter, run_starter
from environments.optimize_llm_foundry.options import to_yaml
from environments.optimize_llm_foundry.runs import Job, NotRan, Ran, Sandbox, run
from environments.optimize_llm_foundry.settings import decode_settings
from environments.sealing import PUBLIC_PASSPHRASE, unseal

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "cheats" / SLUG
REFERENCE = registry.find(SLUG).folder / "protected" / "reference.sealed"


class RememberedStarter:
    """Runs the untouched script once for each job, whichever process asks first; the others wait and get what it found.

    So the quick run "after" is the one "before": how steady the machine is does not show.
    """

    def __init__(self, folder: Path, stand_in: Path | None = None) -> None:
        self._folder, self._stand_in = folder, stand_in
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(
        self, folder: Path, job: Job, sandbox: Sandbox, seconds: float, report: ReportProgress
    ) -> Ran | NotRan:
        key = hashlib.sha256(to_yaml(job.options) + job.rows).hexdigest()[:16]
        known, place = self._folder / f"{key}.pickle", self._folder / key
        with (self._folder / f"{key}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not known.exists():
                shutil.rmtree(place, ignore_errors=True)  # of a run that was cut
                place.mkdir()
                if self._stand_in is None:
                    ran = run_starter(place, job, sandbox, seconds, report)
                else:
                    ran = run(self._stand_in, place, job, sandbox, seconds, report)
                if isinstance(ran, NotRan):
                    return ran
                known.write_bytes(pickle.dumps(ran))
        found: Ran = pickle.loads(known.read_bytes())
        return found

    def runs(self) -> list[float]:
        """Return the seconds of every run that was made."""
        return [pickle.loads(path.read_bytes()).seconds for path in sorted(self._folder.glob("*.pickle"))]


class Ground:
    """One profile, prepared below `home`; another process may open the same one."""

    def __init__(
        self, home: Path, profile_name: str, profile: Profile, starter: RunStarter | None = None
    ) -> None:
        self.profile_name, self.profile = profile_name, profile
        self.environment = OptimizeLlmFoundry(run_starter=starter)
        found = registry.find(SLUG)
        self._spec = msgspec.structs.replace(found.spec, profiles={profile_name: profile})
        self._home = home
        self._folders = assets.folders_for(self._spec, profile_name, home)

    def prepare(self) -> None:
        assets.prepare(self.environment, self._spec, self.profile_name, PUBLIC_PASSPHRASE, self._home, quiet)

    def starter(self) -> Mapping[str, Path]:
        return self.environment.starter(
            PrepareRequest(
                profile_name=self.profile_name, profile=self.profile, assets=self._folders,
                passphrase=PUBLIC_PASSPHRASE,
            )
        )  # fmt: skip

    def submission(self, folder: Path, seed: int, overlay: Path | None = None) -> Submission:
        """Lay out in `folder` the starter, `one.py` and, over them, a submission's files or the sealed reference's."""
        root, scratch = folder / "root", folder / "scratch"
        for name, source in self.starter().items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, root / name)
        for_cards = decode_settings(self.profile.settings).starter == "gpu"
        shutil.copyfile(CORPUS / ("one_on_cards.py" if for_cards else "one.py"), root / "one.py")
        if overlay == REFERENCE:
            unseal(overlay, root, PUBLIC_PASSPHRASE)
        elif overlay is not None:
            shutil.copytree(overlay, root, dirs_exist_ok=True)
        scratch.mkdir()
        return Submission(
            root=root, profile_name=self.profile_name, profile=self.profile, assets=self._folders,
            scratch=scratch, seed=seed,
        )  # fmt: skip
