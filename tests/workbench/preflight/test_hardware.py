"""A session and a calibration on a machine with several cards belong to the class that the profile uses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click.testing
import msgspec
import pytest

from environments import registry
from environments.contract import Anchors
from sessions.record.events import Isolation, SessionOpened, SessionPolicy
from sessions.record.log import read_log
from sessions.record.store import Record, Store
from sessions.telemetry.samples import Gpu
from tests.workbench.cli.conftest import home
from tests.workbench.preflight.test_preflight import H200, MACHINE
from workbench import launch
from workbench.cli.root import root
from workbench.preflight.hardware import usable_gpus
from workbench.preflight.machine import Machine

__all__ = ["home"]

TWO = msgspec.structs.replace(MACHINE, gpus=(H200, msgspec.structs.replace(H200, index=1)))


@pytest.fixture(autouse=True)
def all_cards_are_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(
    ("visible", "count"),
    [
        ({}, 3),
        ({"CUDA_VISIBLE_DEVICES": "1"}, 1),
        ({"CUDA_VISIBLE_DEVICES": "2, 0"}, 2),
        ({"CUDA_VISIBLE_DEVICES": "GPU-6f2a,GPU-77c1"}, 2),
        ({"CUDA_VISIBLE_DEVICES": "0,-1,1"}, 1),
        ({"CUDA_VISIBLE_DEVICES": "0,3"}, 1),
        ({"CUDA_VISIBLE_DEVICES": ""}, 0),
    ],
)
def test_only_the_cards_that_are_visible_count(visible: dict[str, str], count: int) -> None:
    assert usable_gpus(["A", "A", "A"], visible) == ("A",) * count


def test_cards_of_several_kinds_are_not_told_apart() -> None:
    assert usable_gpus(["B", "A"], {"CUDA_VISIBLE_DEVICES": "0"}) == ("B", "A")


def opened_on(
    machine: Machine, slug: str, profile: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> SessionOpened:
    """Open a session as if this were `machine`; returns the first event of its record."""

    def no_host(record: Record) -> None:
        """The record is all that is looked at."""

    monkeypatch.setattr("workbench.preflight.invoking.invoke", lambda *_, **__: {})
    monkeypatch.setattr("sessions.clients.hosting.start_host", no_host)
    wish = launch.Wish(slug, isolation=Isolation.NONE)
    policy = SessionPolicy(budget_ms=60_000)
    planned = launch.Plan(registry.find(slug), profile, policy, wish, machine, folder / "work")
    record = launch.open_planned(planned, Store(folder / "home"))
    body = read_log(record.log).events[0].body
    assert isinstance(body, SessionOpened)
    return body


def test_a_session_that_uses_one_of_two_cards_has_the_anchors_of_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opened_on(TWO, "triton_cumsum", "gpu", tmp_path, monkeypatch)
    assert opened.anchors is not None
    assert (opened.hardware.label, opened.anchors.hardware) == ("NVIDIA H200", "NVIDIA H200")
    assert opened.hardware.gpus == ("NVIDIA H200", "NVIDIA H200")


def test_a_session_that_uses_both_cards_says_so_and_has_no_anchors_of_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opened_on(TWO, "optimize_llm_foundry", "gpu", tmp_path, monkeypatch)
    assert (opened.hardware.label, opened.anchors) == ("2x NVIDIA H200", None)


def test_a_session_that_sees_one_of_two_cards_has_the_anchors_of_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    opened = opened_on(TWO, "optimize_llm_foundry", "gpu", tmp_path, monkeypatch)
    assert opened.hardware.label == "NVIDIA H200"
    assert opened.anchors is not None


def calibrated(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Return what `env calibrate` prints on a machine with two cards."""

    def measured(*_: object, hardware: str, **__: object) -> Anchors:
        return Anchors(start=2.0, reference=1.0, hardware=hardware, source="measured")

    def two_cards() -> tuple[tuple[Gpu, ...], None]:
        return TWO.gpus, None

    monkeypatch.setattr("workbench.preflight.hardware.read_gpus", two_cards)
    monkeypatch.setattr("environments.calibrate.measure", measured)
    answer = click.testing.CliRunner().invoke(
        root, ["env", "calibrate", *arguments], catch_exceptions=False, standalone_mode=True
    )
    return answer.stdout


@pytest.mark.parametrize(
    ("slug", "label"), [("triton_cumsum", "NVIDIA H200"), ("optimize_llm_foundry", "2x NVIDIA H200")]
)
def test_a_calibration_is_labelled_by_the_cards_that_the_profile_uses(
    home: Path, monkeypatch: pytest.MonkeyPatch, slug: str, label: str
) -> None:
    assert f'hardware = "{label}"' in calibrated(monkeypatch, slug, "--profile", "gpu")


def test_a_calibration_without_a_profile_takes_the_one_a_session_would_take(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked(
        _: Path, *, programs: Sequence[str] = (), packages: Sequence[str] = (), **__: object
    ) -> Machine:
        there = dict.fromkeys(packages, "1")
        return msgspec.structs.replace(TWO, packages=there, programs=dict.fromkeys(programs, "1"))

    monkeypatch.setattr("workbench.preflight.machine.examine", looked)
    monkeypatch.setattr("workbench.preflight.needs.examine", looked, raising=False)
    assert "[[profiles.gpu.anchors]]" in calibrated(monkeypatch, "triton_cumsum")
