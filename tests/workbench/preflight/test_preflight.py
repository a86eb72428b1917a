"""What a machine has, what a profile lacks on it, and what doctor says: judged on machines made up here."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from environments.contract import (
    Direction,
    EnvironmentSpec,
    Limits,
    Needs,
    Profile,
    ProfileUnavailable,
)
from environments.invoke import Action
from environments.machine.bubblewrap import Tried
from sessions.telemetry.backends import ScriptedGpus
from sessions.telemetry.samples import Gpu, GpuProcess
from tests.workbench.cli.conftest import Run, home, run
from workbench.cli.exits import Exit
from workbench.preflight.findings import Judgement, judge
from workbench.preflight.invoking import InvocationFailed, invoke
from workbench.preflight.machine import Machine, Terminal, examine, program_version
from workbench.preflight.needs import default_profile, lacks, require

__all__ = ["home", "run"]

GB = 10**9
H200 = Gpu(0, "NVIDIA H200", utilisation=0.0, memory_used=GB // 2, memory_total=139 * GB)
MACHINE = Machine(
    system="linux",
    python="3.11.7",
    cpus=8,
    memory_bytes=64 * GB,
    disk_free=500 * GB,
    disk_place="/somewhere",
    gpus=(H200,),
    gpu_problem=None,
    programs={"git": "git version 2.39.5", "rustc": "rustc 1.95.0", "tmux": "tmux 3.3a"},
    packages={"torch": "2.13.0"},
    sandbox=Tried("bwrap", (0, 8, 0)),
    root=False,
    terminal=Terminal(interactive=True, utf8=True, colours=1 << 24, columns=120, rows=40),
    load=0.1,
)


def _spec(**needs: Needs) -> EnvironmentSpec:
    profiles = {name: Profile("", need, Limits(score_seconds=1)) for name, need in needs.items()}
    return EnvironmentSpec("tiny", "Tiny", "", "1", Direction.LOWER, "raw", ("a",), profiles)


def _judgements(machine: Machine) -> dict[str, Judgement]:
    return {finding.about: finding.judgement for finding in judge(machine)}


def test_a_machine_with_everything_has_nothing_to_fix() -> None:
    assert set(_judgements(MACHINE).values()) == {Judgement.GOOD}
    assert lacks(Needs(cpus=8, memory_gb=64, disk_gb=500, gpus=1, gpu_memory_gb=139), MACHINE) == ()


def test_everything_that_is_missing_is_said_at_once_with_its_remedy() -> None:
    needs = Needs(
        cpus=52,
        memory_gb=400,
        disk_gb=900,
        gpus=4,
        gpu_memory_gb=80,
        packages=("torch", "transformers"),
        programs=("rustc", "cargo"),
    )
    missing = lacks(needs, MACHINE)
    text = " ".join(lack.what for lack in missing)
    for word in ("52 cores", "400 GB of memory", "900 GB of free disk", "4 GPU", "transformers", "cargo"):
        assert word in text
    assert "rustc" not in text
    assert all(lack.remedy for lack in missing)
    with pytest.raises(ProfileUnavailable, match=r"52 cores[\s\S]*cargo"):
        require(_spec(paper=needs), "paper", MACHINE)


def test_a_machine_a_little_under_its_name_still_counts() -> None:
    assert lacks(Needs(memory_gb=8), replace(MACHINE, memory_bytes=round(7.6 * GB))) == ()
    assert (
        lacks(Needs(gpus=1, gpu_memory_gb=80), replace(MACHINE, gpus=(replace(H200, memory_total=79 * GB),)))
        == ()
    )


def test_the_gpu_profile_is_chosen_where_it_can_run_and_paper_never_unasked() -> None:
    spec = _spec(cpu=Needs(), gpu=Needs(gpus=1), paper=Needs())
    assert default_profile(spec, MACHINE) == "gpu"
    assert default_profile(spec, replace(MACHINE, gpus=())) == "cpu"
    with pytest.raises(ProfileUnavailable, match="paper"):
        default_profile(_spec(paper=Needs()), MACHINE)


@pytest.mark.parametrize(
    ("changes", "about", "judgement"),
    [
        ({"system": "darwin"}, "system", Judgement.BAD),
        ({"programs": {}}, "git", Judgement.BAD),
        ({"programs": {"git": "does not start (exit code 1)"}}, "git", Judgement.BAD),
        ({"disk_free": GB}, "disk", Judgement.BAD),
        ({"disk_free": 10 * GB}, "disk", Judgement.MIND),
        ({"load": 7.5}, "machine", Judgement.MIND),
        ({"gpus": ()}, "gpu", Judgement.MIND),
        ({"gpus": (), "gpu_problem": "Driver/library version mismatch"}, "gpu", Judgement.BAD),
        ({"gpus": (replace(H200, utilisation=97.0),)}, "gpu 0", Judgement.MIND),
        ({"gpus": (replace(H200, problem="fell off the bus"),)}, "gpu 0", Judgement.BAD),
        ({"sandbox": Tried(None, problem="bubblewrap is not installed")}, "isolation", Judgement.MIND),
        ({"packages": {}}, "torch", Judgement.MIND),
        ({"python": "3.14.0"}, "python", Judgement.MIND),
        ({"terminal": Terminal(True, False, 8, 60, 20)}, "terminal", Judgement.MIND),
    ],
)
def test_doctor_judges_and_offers_a_fix(changes: dict[str, object], about: str, judgement: Judgement) -> None:
    found = {finding.about: finding for finding in judge(replace(MACHINE, **changes))}
    assert found[about].judgement is judgement
    assert found[about].fix


def test_whoever_uses_the_gpu_is_named() -> None:
    busy = replace(H200, processes=(GpuProcess(4121, "python", "kim", 70 * GB),))
    (found,) = [f for f in judge(replace(MACHINE, gpus=(busy,))) if f.about == "gpu 0"]
    assert "pid 4121 python of kim" in found.found


def test_a_driver_that_raises_is_a_finding_and_no_crash(tmp_path: Path) -> None:
    machine = examine(tmp_path, gpus=ScriptedGpus(RuntimeError("NVML: unknown error")))
    assert "NVML: unknown error" in (machine.gpu_problem or "")
    assert _judgements(machine)["gpu"] is Judgement.BAD


def test_this_very_machine_is_examined_without_a_folder_to_keep_things_in(tmp_path: Path) -> None:
    machine = examine(
        tmp_path / "not" / "made" / "yet", programs=("surely-not-a-program",), gpus=ScriptedGpus(())
    )
    assert machine.cpus >= 1
    assert machine.disk_free > 0
    assert "surely-not-a-program" not in machine.programs
    assert not (tmp_path / "not").exists()


def test_a_program_that_cannot_start_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "rustc"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert program_version("rustc") == "does not start (exit code 3)"
    assert program_version("git") is not None
    assert program_version("surely-not-a-program") is None


def test_doctor_prints_each_finding_and_its_fix(run: Run) -> None:
    outcome = run("doctor", "--json")
    found = json.loads(outcome.out)
    assert {finding["about"] for finding in found["findings"]} >= {
        "git",
        "disk",
        "isolation",
        "torch",
        "terminal",
    }
    assert outcome.code == (Exit.OK if found["ready"] else Exit.ENVIRONMENT)
    text = run("doctor").out
    for finding in found["findings"]:
        assert finding["about"] in text
        if finding["judgement"] != "good":
            assert finding["fix"] in text


def test_preparing_shows_progress_and_tells_what_was_made(home: Path) -> None:
    from tests.workbench.cli.conftest import TINY_ENVIRONMENTS

    told: list[tuple[str, float | None]] = []
    folder = TINY_ENVIRONMENTS / "tiny_sum"
    made = invoke(
        Action.PREPARE,
        "tiny_sum",
        "cpu",
        home=home,
        folder=folder,
        on_progress=lambda *step: told.append(step),
    )
    assert ("writing one file", 0.5) in told
    assert made["files"] == 2
    with pytest.raises(InvocationFailed, match="no profile 'huge'"):
        invoke(Action.PREPARE, "tiny_sum", "huge", home=home, folder=folder)


def test_env_commands_list_show_check_and_prepare(run: Run) -> None:
    listed = json.loads(run("env", "list", "--json").out)["environments"]
    assert "tiny_sum" in {environment["slug"] for environment in listed}
    assert "A second of work." in run("env", "show", "tiny_sum").out
    assert json.loads(run("env", "show", "tiny_sum", "--json").out)["direction"] == "higher"
    unprepared = run("env", "check", "tiny_sum")
    assert unprepared.code == Exit.ENVIRONMENT
    assert "rebench-workbench env prepare tiny_sum" in unprepared.out
    assert run("env", "prepare", "tiny_sum").code == Exit.OK
    assert run("env", "check", "tiny_sum").code == Exit.OK
    assert run("env", "check", "tiny_sum", "--profile", "large").code == Exit.ENVIRONMENT
    assert run("env", "show", "tiny_sun").code == Exit.ENVIRONMENT
