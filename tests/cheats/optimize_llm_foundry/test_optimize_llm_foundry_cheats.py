"""Every trick known against timed training gets the verdict its first line promises; honest submissions pass."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from environments.contract import ReportProgress, ScoreStatus
from environments.optimize_llm_foundry.environment import OptimizeLlmFoundry
from environments.optimize_llm_foundry.options import STARTER
from environments.optimize_llm_foundry.runs import Job, NotRan, Ran, Sandbox
from environments.worker import confine
from environments.worker.jobs import Level
from tests.cheats.optimize_llm_foundry.small import Small, promised, quiet, submissions

HERE = Path(__file__).parent
ALL = submissions(HERE / "submissions")
WITHOUT_TRAINING = {
    "a_pipe_for_a_file", "another_network", "code_in_the_config", "copies_the_base", "endless_result", "fails",
    "fills_the_disk", "finishes_in_the_background", "folders_in_each_other", "giant_config", "half_a_character_in_the_config",
    "half_written", "leaves_nothing", "links_a_file", "links_the_base", "many_empty_tensors", "moves_the_base",
    "names_that_are_no_text", "not_finite", "pickled_weights", "searches_for_the_reference", "shares_an_inode",
    "swaps_the_result_later", "tied_in_eight_bits", "wakes_after_the_stop",
}  # fmt: skip
"""Refused without a training run of their own, so these are quick."""

pytestmark = [
    pytest.mark.cheats,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        confine.best_level() not in (Level.SANDBOX, Level.SANDBOX_ACCOUNT),
        reason="needs bubblewrap: these verdicts are promised for a sandboxed worker",
    ),
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("store"))


def judge(small: Small, cheat: Path, folder: Path) -> None:
    score = small.score(cheat, folder)
    log = str(score.details.get("log", ""))
    assert score.status.value == promised(cheat), (score.message, log)
    assert msgspec.json.encode(score), "a report that cannot be written down is taken for a fault of ours"
    assert score.message.isprintable()
    assert "GOT" not in log, log
    assert score.details.get("confinement", {}).get("survivors", 0) == 0


@pytest.mark.parametrize("cheat", [c for c in ALL if c.name in WITHOUT_TRAINING], ids=lambda path: path.name)
def test_a_trick_without_training_is_refused(cheat: Path, small: Small, tmp_path: Path) -> None:
    judge(small, cheat, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cheat", [c for c in ALL if c.name not in WITHOUT_TRAINING], ids=lambda path: path.name
)
def test_a_submission_that_trains_gets_the_verdict_it_deserves(
    cheat: Path, small: Small, tmp_path: Path
) -> None:
    judge(small, cheat, tmp_path)


def test_what_is_written_after_the_clock_is_not_taken(small: Small, tmp_path: Path) -> None:
    """The trick puts whole weights in the place of none while the result is being copied."""
    score = small.score(HERE / "submissions" / "wakes_after_the_stop", tmp_path)
    assert "is no whole safetensors file" in score.message


@pytest.mark.slow
def test_work_that_goes_on_when_the_script_has_ended_gains_nothing(small: Small, tmp_path: Path) -> None:
    """A process that is hard to stop is dead before the clock stops, whatever it had still wanted to do."""
    (cheat := tmp_path / "cheat").mkdir()
    (cheat / "finetune.sh").write_text(
        "python one.py\n(for n in 1 2 3 4 5 6 7 8; do setsid bash -c 'while :; do kill -CONT -1; done' & done) 2> /dev/null\nexit 0\n"
    )
    (tmp_path / "work").mkdir()
    score = small.score(cheat, tmp_path / "work")
    assert score.status is ScoreStatus.VALID, score.message
    assert any("left running" in flag for flag in score.details["flags"])
    assert score.details["confinement"]["survivors"] == 0


def test_what_a_script_printed_last_is_told_when_it_fails(small: Small, tmp_path: Path) -> None:
    (cheat := tmp_path / "cheat").mkdir()
    (cheat / "finetune.sh").write_text("python -c 'import no_such_library'\n")
    (tmp_path / "work").mkdir()
    score = small.score(cheat, tmp_path / "work")
    assert score.status is ScoreStatus.CRASHED
    assert score.message.endswith("No module named 'no_such_library'")


def test_a_script_with_the_line_ends_of_windows_is_told_so(small: Small, tmp_path: Path) -> None:
    (cheat := tmp_path / "cheat").mkdir()
    (cheat / "finetune.sh").write_bytes(b"#!/bin/bash\r\npython one.py\r\n")
    (tmp_path / "work").mkdir()
    report = small.environment.check(small.submission(cheat, tmp_path / "work"))
    assert "as on Windows" in report.problems[0].what


def test_every_submission_says_what_it_tries_and_what_it_must_get() -> None:
    assert {promised(cheat) for cheat in ALL} == {"valid", "invalid", "crashed", "timeout"}


@pytest.mark.slow
def test_a_check_accepts_honest_work_and_names_what_is_wrong(small: Small, tmp_path: Path) -> None:
    reports = {}
    for name in ("honest_one_process", "copies_the_base"):
        folder = tmp_path / name
        folder.mkdir()
        reports[name] = small.environment.check(small.submission(HERE / "submissions" / name, folder))
    assert reports["honest_one_process"].accepted
    assert "hardly left the base" in reports["copies_the_base"].problems[0].what


@pytest.mark.parametrize("starter", ["cpu", "gpu"])
def test_the_tricks_that_change_the_starter_find_what_they_change_in_either(
    starter: str, tmp_path: Path
) -> None:
    original = (STARTER / starter / "train.py").read_text()
    for cheat in ALL:
        edits = [
            line
            for line in (cheat / "finetune.sh").read_text().splitlines()
            if line.startswith("sed -i") and line.endswith(" train.py")
        ]
        for edit in edits:
            (tmp_path / "train.py").write_text(original)
            subprocess.run(["bash", "-c", edit], cwd=tmp_path, check=True)
            changed = (tmp_path / "train.py").read_text()
            assert changed != original, f"{cheat.name} changes nothing"
            compile(changed, cheat.name, "exec")


def test_a_script_of_ours_that_fails_is_no_fault_of_the_participant(small: Small, tmp_path: Path) -> None:
    def fails(
        folder: Path, job: Job, sandbox: Sandbox, seconds: float, report: ReportProgress
    ) -> Ran | NotRan:
        return NotRan(ScoreStatus.OUT_OF_MEMORY, "too little memory", 1.0, "log")

    submission = small.submission(HERE / "submissions" / "copies_the_base", tmp_path)
    score = OptimizeLlmFoundry(run_starter=fails).score(submission, quiet)
    assert score.status is ScoreStatus.INFRASTRUCTURE
    assert "too little memory" in score.message


@pytest.mark.slow
def test_a_step_left_out_is_refused_along_the_way_where_rounding_makes_the_distance_large(
    small: Small, tmp_path: Path
) -> None:
    coarse = {**small.profile.settings, "bound_share": 0.49, "quick_bound_share": 0.49}
    submission = small.submission(HERE / "submissions" / "one_step_short", tmp_path)
    profile = msgspec.structs.replace(submission.profile, settings=coarse)
    score = small.environment.score(msgspec.structs.replace(submission, profile=profile), quiet)
    assert score.status is ScoreStatus.INVALID
    assert "less far than those of the untouched script" in score.message


@pytest.mark.slow
def test_a_machine_that_changes_speed_is_no_fault_of_the_participant(small: Small, tmp_path: Path) -> None:
    calls = []

    def slows_down(
        folder: Path, job: Job, sandbox: Sandbox, seconds: float, report: ReportProgress
    ) -> Ran | NotRan:
        ran = small.starter(folder, job, sandbox, seconds, report)
        calls.append(ran)
        return replace(ran, seconds=ran.seconds * 10**4) if len(calls) == 3 else ran

    submission = small.submission(HERE / "submissions" / "honest_one_process", tmp_path)
    score = OptimizeLlmFoundry(run_starter=slows_down).score(submission, quiet)
    assert score.status is ScoreStatus.INFRASTRUCTURE, score.message
    assert "not steady" in score.message
