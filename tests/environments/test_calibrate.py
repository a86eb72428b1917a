"""Anchors are measured from the starting and the sealed solution; an environment that scores wrong is told so."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from environments import assets, calls, registry
from environments.calibrate import (
    CalibrationFailed,
    Workshop,
    check_environment,
    measure,
)
from environments.contract import AssetsMissing, Progress, SealBroken
from environments.invoke import Action
from environments.sealing import PUBLIC_PASSPHRASE, seal
from tests.environments.harness import STARTER_SCORE, TINY, Tiny, quiet

Changed = Callable[[str, str], Workshop]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny(tmp_path_factory.mktemp("home"))


@pytest.fixture
def workshop(tiny: Tiny) -> Workshop:
    return Workshop(tiny.found, "cpu", tiny.home, PUBLIC_PASSPHRASE)


@pytest.fixture
def changed(tiny: Tiny, tmp_path: Path) -> Changed:
    """Return the workshop of a copy whose specification differs."""

    def make(old: str, new: str) -> Workshop:
        folder = tmp_path / "copy"
        shutil.copytree(TINY, folder)
        text = (folder / "environment.toml").read_text()
        assert old in text
        (folder / "environment.toml").write_text(text.replace(old, new))
        return Workshop(registry.find("tiny", [folder]), "cpu", tiny.home, PUBLIC_PASSPHRASE)

    return make


def test_anchors_hold_both_solutions_with_repeats_and_spread(workshop: Workshop) -> None:
    seen: list[Progress] = []
    today = date(2025, 1, 31)
    anchors = measure(workshop, repeats=2, hardware="cpu-test", today=today, report=seen.append)
    assert anchors.start == pytest.approx(STARTER_SCORE)
    assert anchors.reference < 0.05
    assert (anchors.hardware, anchors.source, anchors.measured_on, anchors.repeats) == (
        "cpu-test",
        "measured",
        "2025-01-31",
        2,
    )
    assert anchors.start_spread == 0.0
    assert seen[0].stage == "scoring the starting solution, 1 of 2"


def test_the_untouched_starter_scores_zero_and_the_oracle_one(workshop: Workshop) -> None:
    checked = check_environment(workshop, hardware="cpu-test", report=quiet)
    assert checked.passed
    assert [f.name for f in checked.findings] == ["starter", "reference"]
    assert checked.notes == ("anchors of cpu-tiny, this machine is cpu-test",)


def test_anchors_that_no_longer_fit_are_found(changed: Changed) -> None:
    checked = check_environment(changed("start = 77.0", "start = 7.0"), hardware="cpu-tiny", report=quiet)
    assert not checked.passed
    assert [f.holds for f in checked.findings] == [False, True]
    assert checked.findings[0].line().endswith("WRONG")
    assert checked.findings[0].normalised is not None
    assert checked.findings[0].normalised < -1, "a start worse than its anchor shows below zero"


def test_a_profile_without_measured_anchors_says_how_to_get_some(changed: Changed) -> None:
    with pytest.raises(CalibrationFailed, match=r"env calibrate tiny --profile cpu"):
        check_environment(changed('source = "measured"', 'source = "published"'), hardware="x", report=quiet)


def test_a_reference_worse_than_the_start_is_refused(changed: Changed) -> None:
    workshop = changed('direction = "lower"', 'direction = "higher"')
    with pytest.raises(CalibrationFailed, match="where higher is better"):
        measure(workshop, repeats=1, hardware="x", today=date(2025, 1, 1), report=quiet)


def test_a_reference_without_a_valid_score_is_refused(changed: Changed, tmp_path: Path) -> None:
    workshop = changed("hours = 0.5", "hours = 0.5")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "solution.py").write_text("def predict(xs): return None\n")
    seal(tmp_path / "plain", workshop.found.folder / "protected" / "reference.sealed", PUBLIC_PASSPHRASE)
    with pytest.raises(
        CalibrationFailed, match=r"the reference solution of tiny .* got no valid score: invalid"
    ):
        measure(workshop, repeats=1, hardware="x", today=date(2025, 1, 1), report=quiet)


def test_a_wrong_key_is_refused_before_anything_is_scored(tiny: Tiny) -> None:
    with pytest.raises(SealBroken, match="does not open"):
        check_environment(Workshop(tiny.found, "cpu", tiny.home, "wrong"), hardware="cpu-tiny", report=quiet)


def test_missing_assets_are_said_before_anything_is_scored(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(AssetsMissing, match="env prepare tiny"):
        check_environment(
            Workshop(tiny.found, "cpu", tmp_path, PUBLIC_PASSPHRASE), hardware="cpu-tiny", report=quiet
        )


def test_a_fault_of_the_call_is_raised_with_its_kind(tiny: Tiny) -> None:
    workshop = Workshop(tiny.found, "cpu", tiny.home, PUBLIC_PASSPHRASE)
    with pytest.raises(calls.CallFailed, match="needs `root` and `scratch`") as caught:
        calls.score(workshop.request(Action.SCORE), quiet)
    assert caught.value.kind == "RequestInvalid"


def test_a_call_that_takes_too_long_is_ended(tiny: Tiny, tmp_path: Path) -> None:
    workshop = Workshop(tiny.found, "cpu", tiny.home, PUBLIC_PASSPHRASE)
    root = tiny.lay_out(tmp_path / "root")
    (root / "solution.py").write_text("def predict(xs):\n    while True: pass\n")
    with pytest.raises(calls.CallFailed, match="ended from outside"):
        calls.score(workshop.request(Action.SCORE, root, tmp_path / "s"), quiet, seconds=1.0)


def test_an_answer_counts_though_its_process_does_not_end(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lingers = tmp_path / "lingers"
    answer = '{"check": {"problems": []}}'
    lingers.write_text(
        f"#!/bin/sh\ntrap '' TERM\necho '{answer}'  >/proc/self/fd/$4\nwhile :; do sleep 1; done\n"
    )
    lingers.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(lingers))
    monkeypatch.setattr(calls, "_GRACE_SECONDS", 0.1)
    workshop = Workshop(tiny.found, "cpu", tiny.home, PUBLIC_PASSPHRASE)
    assert calls.check(workshop.request(Action.CHECK), quiet).accepted


def test_a_check_is_returned_as_a_value(tiny: Tiny, tmp_path: Path) -> None:
    workshop = Workshop(tiny.found, "cpu", tiny.home, PUBLIC_PASSPHRASE)
    root = tiny.lay_out(tmp_path / "root")
    assert calls.check(workshop.request(Action.CHECK, root, tmp_path / "s"), quiet).accepted


def test_the_assets_of_the_tiny_environment_are_whole_after_all_this(tiny: Tiny) -> None:
    assets.verify(tiny.folders, deep=True)
