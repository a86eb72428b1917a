"""A small optimize_llm_foundry to score submissions on: the same code and rules, a tiny model and few rows."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import msgspec

from environments import assets, registry
from environments.contract import PrepareRequest, Profile, ReportProgress, ScoreReport, Submission
from environments.optimize_llm_foundry.environment import OptimizeLlmFoundry
from environments.optimize_llm_foundry.options import COMMON, STARTER, to_yaml
from environments.optimize_llm_foundry.runs import Job, NotRan, Ran, Sandbox, run
from environments.sealing import PUBLIC_PASSPHRASE

ONE_PROCESS = Path(__file__).with_name("one.py")
SETTINGS = {
    "model": {"width": 32, "layers": 1, "heads": 2, "feed_forward": 64, "positions": 64},
    "rows": {"count": 16, "shortest": 60, "longest": 200},
    "quick_rows": {"count": 6, "shortest": 60, "longest": 200},
    "options": {"batch_size": 5, "max_length": 32, "warmup_steps": 2, "microbatch_size": 5},
    "limit_seconds": 60.0,
    "quick_share": 0.9,
    "most_drift": 1000.0,
}


def quiet(_progress: object) -> None:
    """Take progress and show nothing."""


class RememberedStarter:
    """Runs the untouched stages in one process, once for each job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = 0
        self._source = folder / "starter"
        for part in (COMMON, "cpu"):
            shutil.copytree(STARTER / part, self._source, dirs_exist_ok=True)
        shutil.copy(ONE_PROCESS, self._source)
        (self._source / "finetune.sh").write_text("exec python one.py\n")
        self._known: dict[str, Ran] = {}

    def __call__(
        self, folder: Path, job: Job, sandbox: Sandbox, seconds: float, report: ReportProgress
    ) -> Ran | NotRan:
        key = hashlib.sha256(to_yaml(job.options) + job.rows).hexdigest()
        if key not in self._known:
            self.runs += 1
            place = self.folder / key
            place.mkdir()
            ran = run(self._source, place, job, sandbox, seconds, report)
            if isinstance(ran, NotRan):
                return ran
            self._known[key] = ran
        return self._known[key]


class Small:
    """The environment, prepared below `home`, with the profile cut down."""

    def __init__(self, home: Path) -> None:
        self.found = registry.find("optimize_llm_foundry")
        whole = self.found.spec.profile("cpu")
        self.profile: Profile = msgspec.structs.replace(whole, settings={**whole.settings, **SETTINGS})
        spec = msgspec.structs.replace(self.found.spec, profiles={"cpu": self.profile})
        self.starter = RememberedStarter(home)
        self.environment = OptimizeLlmFoundry(run_starter=self.starter)
        assets.prepare(self.environment, spec, "cpu", PUBLIC_PASSPHRASE, home, quiet)
        self.folders = assets.folders_for(spec, "cpu", home)

    @property
    def request(self) -> PrepareRequest:
        return PrepareRequest(
            profile_name="cpu", profile=self.profile, assets=self.folders, passphrase=PUBLIC_PASSPHRASE
        )

    def lay_out(self, root: Path, overlay: Path | None = None) -> Path:
        """Write a work tree: the starter, `one.py`, and over them a submission's files."""
        for name, source in self.environment.starter(self.request).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, root / name)
        shutil.copy(ONE_PROCESS, root)
        if overlay is not None:
            shutil.copytree(overlay, root, dirs_exist_ok=True)
        return root

    def submission(self, source: Path, folder: Path, seed: int = 7) -> Submission:
        scratch = folder / "scratch"
        scratch.mkdir(exist_ok=True)
        return Submission(
            root=self.lay_out(folder / "root", source), profile_name="cpu", profile=self.profile, assets=self.folders,
            scratch=scratch, seed=seed,
        )  # fmt: skip

    def score(self, source: Path, folder: Path, seed: int = 7) -> ScoreReport:
        return self.environment.score(self.submission(source, folder, seed), quiet)


def submissions(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.name != "__pycache__")


def promised(cheat: Path) -> str:
    """Return the status that a submission's first line says it must get."""
    line = (cheat / "finetune.sh").read_text().splitlines()[0]
    match = re.fullmatch(r"# Tries: .+ Seen: .+\. Verdict: ([a-z-]+)", line)
    assert match, f"{cheat.name}: the first line must be `# Tries: ... Seen: .... Verdict: status`"
    return match[1]
