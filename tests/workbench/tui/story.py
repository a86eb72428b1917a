"""A plausible session told to a scripted source: what tests, pictures and measurements look at."""

from __future__ import annotations

import math
import random
from typing import Any

from environments.contract import (
    Anchors,
    Counting,
    Direction,
    EnvironmentSpec,
    Limits,
    Needs,
    Problem,
    Profile,
    ScoreStatus,
    SurveyQuestion,
)
from sessions.record.events import (
    SCHEMA,
    CheckRun,
    ClockPaused,
    ClockResumed,
    ClockStarted,
    ConsentGiven,
    Hardware,
    Isolation,
    IsolationFound,
    NoteWritten,
    ParticipantKind,
    PauseReason,
    ScoreProgressed,
    ScoreRecorded,
    ScoreRequested,
    SessionOpened,
    SessionPolicy,
    SnapshotReason,
    SnapshotTaken,
    StartingScoreRecorded,
)
from sessions.telemetry.samples import Gpu, GpuProcess, Sample
from workbench.tui.scripted import ScriptedSource

BRIEF = """# Restricted-architecture MLM

Design and train a masked language model **without** division, exponentials or
any other forbidden operator. What counts is the loss on held-out text.

## What you hand in

- `model.py` with `build_model() -> nn.Module`
- `model.safetensors`, the weights it loads

Both are read from the *snapshot* that `score` takes. Nothing else is looked at.

## Allowed operators

| kind | examples | remark |
| --- | --- | --- |
| linear | `matmul`, `linear`, `conv1d` | any shape |
| pointwise | `add`, `mul`, `relu` | no `/`, no `**` |
| shape | `reshape`, `transpose`, `cat` | constant sizes only |

1. Look at `starter/train.py`: one file, one command.
2. Keep the interface of `forward(tokens) -> logits`.
3. Score early: the first valid score is worth more than a plan.

```python
def forward(self, tokens):            # (B, T) int64
    hidden = self.embed(tokens)       # (B, T, C)
    return self.head(self.mixer(hidden))
```

## How you are scored

The raw score is `ln(loss - 3.0)`; lower is better. The best valid score counts.

> The scorer traces your model. A refused operator is named with its line.

## Limits

One scoring may take 60 s and 8 GB. See [the rules](docs/rules.md).
"""

RULES = """# Rules

1. Work alone, in this folder, with this machine. You may use the web and your usual tools; no AI assistants.
2. The clock runs from the moment you start it until you submit or time is up. Reading the brief counts.
3. Score as often as you like. Every score call is on record with the exact state of the folder.
4. Do not look for held-out data, the scorer's files or reference solutions.
5. Terminals opened from here are recorded. So are the machine's figures and which files change.

## What happens with the record

It is kept by the people who run this session and used to compare people with AI agents.
"""


def spec(**changes: Any) -> EnvironmentSpec:
    """Return an environment to open sessions on."""
    values: dict[str, Any] = {
        "slug": "restricted_mlm",
        "title": "Restricted-architecture MLM",
        "summary": "Train a masked language model whose forward pass may use only a handful of operators.",
        "version": "1.0.0",
        "direction": Direction.LOWER,
        "raw_label": "ln(loss − 3.0)",
        "deliverables": ("model.py", "model.safetensors"),
        "profiles": {"cpu": Profile("two cores, minutes", Needs(cpus=2), Limits(score_seconds=60))},
        "counting": Counting.BEST,
        "survey": (
            SurveyQuestion("difficulty", "How hard was it?", ("easy", "about right", "hard", "[very] hard")),
            SurveyQuestion("stuck", "Where did you lose the most time?"),
            SurveyQuestion("experience", "How many years have you worked in machine learning?"),
        ),
    }
    return EnvironmentSpec(**(values | changes))


def opened(**changes: Any) -> SessionOpened:
    """Return the header of a session."""
    environment = changes.pop("environment", None) or spec()
    policy = changes.pop("policy", None) or SessionPolicy(budget_ms=8 * 3_600_000)
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "session": "s-7f3a19",
        "environment": environment,
        "profile": "cpu",
        "anchors": Anchors(start=1.8142, reference=1.1314, hardware="any", source="measured"),
        "policy": policy,
        "participant": "jo",
        "participant_kind": ParticipantKind.HUMAN,
        "work_tree": "~/restricted_mlm",
        "isolation": IsolationFound(Isolation.SANDBOX, ("a probe could read none of 5 protected places",)),
        "hardware": Hardware("cpu-2", "a processor", 2, 24_000_000_000),
        "software": {"python": "3.11"},
        "brief_sha256": "0" * 64,
    }
    return SessionOpened(**(values | changes))


class Story:
    """Tells a session step by step."""

    def __init__(self, source: ScriptedSource | None = None, *, seed: int = 7) -> None:
        self.source = source or ScriptedSource()
        self._random = random.Random(seed)
        self._snapshots = 0
        self.source.answers.setdefault("brief", lambda: {"text": BRIEF, "sha256": "0" * 64})
        self.source.answers.setdefault("changed", lambda: {"files": [
            {"path": "model.py", "kind": "modified", "size": 5_210},
            {"path": "runs/wide/model.safetensors", "kind": "added", "size": 12_400_128},
            {"path": "notes.txt", "kind": "removed", "size": None},
        ]})  # fmt: skip
        self.source.answers.setdefault("diff", _diff)

    def _snapshot(self, reason: SnapshotReason, score: int | None = None) -> tuple[int, str]:
        commit = f"{self._random.getrandbits(160):040x}"
        number, self._snapshots = self._snapshots, self._snapshots + 1
        self.source.happen(
            SnapshotTaken(number, reason, "complete", commit, commit, 12, 80_000, 1, 0.1, score=score)
        )
        return number, commit

    def open(self, **changes: Any) -> Story:
        self.source.happen(opened(**changes))
        return self

    def starting(
        self, raw: float | None = 1.8142, status: ScoreStatus = ScoreStatus.VALID, message: str = ""
    ) -> Story:
        """Take the starting score."""
        self.source.happen(ScoreRequested(0))
        number, commit = self._snapshot(SnapshotReason.START, 0)
        self.source.clock.advance(6)
        self.source.happen(
            StartingScoreRecorded(number, commit, raw, status, message or "loss 9.137 ± 0.021", 6.2)
        )
        return self

    def begin(self) -> Story:
        self.source.happen(ConsentGiven("0" * 64), "participant")
        self.source.happen(ClockStarted(), "participant")
        return self

    def wait(self, minutes: float) -> Story:
        self.source.clock.advance(minutes * 60)
        return self

    def ask(self, note: str = "") -> int:
        """Ask for a score and leave it waiting."""
        assert self.source.state is not None
        number = len(self.source.state.scores)
        self.source.happen(ScoreRequested(number, note), "participant")
        self._snapshot(SnapshotReason.SCORE, number)
        return number

    def progress(self, number: int, stage: str, fraction: float | None = None) -> Story:
        self.source.happen(ScoreProgressed(number, stage, fraction))
        return self

    def record(
        self,
        number: int,
        raw: float | None,
        status: ScoreStatus = ScoreStatus.VALID,
        message: str = "",
        seconds: float = 9.4,
    ) -> Story:
        """Give a waiting score its result."""
        assert self.source.state is not None
        row = self.source.state.scores[number]
        said = message or (f"loss {3 + math.exp(raw):.3f} ± 0.019" if raw is not None else "")
        self.source.happen(ScoreRecorded(number, row.snapshot, row.commit, raw, status, said, seconds))
        return self

    def score(self, raw: float | None, note: str = "", **how: Any) -> Story:
        """Ask for a score and give it, a few seconds later."""
        number = self.ask(note)
        self.progress(number, "evaluating", 0.5)
        self.source.clock.advance(9)
        return self.record(number, raw, **how)

    def note(self, text: str, by: str = "participant") -> Story:
        self.source.happen(NoteWritten(text), by)
        return self

    def pause(self, minutes: float, reason: PauseReason = PauseReason.BREAK, note: str = "") -> Story:
        self.source.happen(ClockPaused(reason, note), "participant")
        self.wait(minutes)
        self.source.happen(ClockResumed(), "participant")
        return self

    def check(self, *problems: Problem) -> Story:
        self.source.happen(CheckRun(None, not problems, problems, 1.2))
        return self

    def machine(self, *, gpus: int = 0, seconds: int = 600) -> Story:
        """Give ten minutes of samples up to now."""
        now = self.source.now()
        for back in range(seconds, -1, -1):
            self.source.sample(machine_sample(now.boottime - back * 1_000_000_000, gpus, self._random))
        return self

    def afternoon(self) -> Story:
        """Tell the middle of a good session: 1 h 21 min used, five scores, a break, one score running."""
        self.open().starting().begin().wait(14)
        self.score(1.7716, "starter, more steps").wait(9)
        self.note("Softmax is refused, so attention needs another normaliser.\nTrying relu mixers first.")
        self.check(Problem("aten.div is not allowed", "model.py:41", "use a constant reciprocal"))
        self.score(
            None, "", status=ScoreStatus.INVALID, message="aten.div is not allowed at model.py:41"
        ).wait(18)
        self.score(1.4120, "relu mixer instead of attention").wait(7)
        self.pause(12, note="lunch").wait(13)
        self.score(1.4675, "learning rate 3e-3").wait(8)
        self.score(1.3021, "wider relu mixer, 2x tokens").wait(10)
        self.note("Wider beats deeper at this budget. Next: weight averaging.")
        self.check()
        running = self.ask("weight averaging over the last 20 %")
        self.progress(running, "evaluating", 0.34)
        self.source.clock.advance(6)
        return self


def machine_sample(boottime: int, gpus: int, chance: random.Random) -> Sample:
    """Return a busy machine's figures at one moment."""
    wave = math.sin(boottime / 9e10)
    cpu = 55 + 35 * wave + chance.uniform(-4, 4)
    devices = tuple(
        Gpu(index, "NVIDIA H200", max(0.0, min(100.0, 84 + 12 * wave + chance.uniform(-3, 3))), 71_200_000_000 - index * 9_000_000_000,
            150_100_000_000, 512.0, 61.0, 1980, processes=(GpuProcess(4121 + index, "python", "jo", 70_200_000_000),))
        for index in range(gpus)
    )  # fmt: skip
    return Sample(
        boottime=boottime, at="2026-01-01T00:00:00.000Z", cpu_percent=round(cpu, 1), cpu_each=(cpu, cpu), load=1.4,
        memory_used=10_200_000_000, memory_total=24_000_000_000, disk_free=212_000_000_000,
        disk_total=500_000_000_000, network_sent=0, network_received=0, gpus=devices,
    )  # fmt: skip


def _diff(old: int, new: int) -> dict[str, Any]:
    patch = (
        "--- a/model.py\n+++ b/model.py\n@@ -38,7 +38,8 @@ class Mixer(nn.Module):\n     def forward(self, hidden):\n"
        "-        gate = self.gate(hidden)\n+        gate = torch.relu(self.gate(hidden))\n"
        "+        gate = gate * self.scale   # a constant, never a division\n         return self.out(gate * hidden)\n"
    )
    return {"old": str(old), "new": str(new), "truncated": 0, "changes": [
        {"path": "model.py", "kind": "modified", "old_size": 5_100, "new_size": 5_210, "patch": patch},
        {"path": "model.safetensors", "kind": "modified", "old_size": 12_400_128, "new_size": 24_800_128,
         "is_large": True, "new_digest": "sha256:9f2c11"},
        {"path": "sweep.sh", "kind": "added", "new_size": 412},
    ]}  # fmt: skip
