"""Which class of hardware a profile's anchors belong to."""

from __future__ import annotations

import pytest

from environments import registry
from environments.contract import Anchors, Limits, Needs, Profile, hardware_class

H200 = "NVIDIA H200"
H100 = "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("gpus", "label"),
    [
        ([], "cpu-8"),
        ([H200], H200),
        ([H200] * 4, f"4x {H200}"),
        (["B", "A"], "2x A+B"),
    ],
)
def test_hardware_is_classed_by_its_gpus_or_its_cores(gpus: list[str], label: str) -> None:
    assert hardware_class(gpus, 8) == label


@pytest.mark.parametrize(
    ("needs", "gpus", "label"),
    [
        (Needs(), [H200], "cpu-8"),
        (Needs(gpus=1), [H200], H200),
        (Needs(gpus=1), [H200, H200], H200),
        (Needs(gpus=1), ["B", "A"], "2x A+B"),
        (Needs(gpus=1), [], "cpu-8"),
        (Needs(gpus=1, all_gpus=True), [H200], H200),
        (Needs(gpus=1, all_gpus=True), [H200, H200], f"2x {H200}"),
        (Needs(gpus=2), [H200] * 4, f"4x {H200}"),
        (Needs(all_gpus=True), [], "cpu-8"),
    ],
)
def test_a_profile_is_classed_by_what_it_uses(needs: Needs, gpus: list[str], label: str) -> None:
    assert Profile("", needs, Limits(score_seconds=1)).hardware(gpus, 8) == label


def anchors(slug: str, name: str, gpus: list[str]) -> Anchors | None:
    profile = registry.find(slug).spec.profile(name)
    return profile.anchors_for(profile.hardware(gpus, 16))


def test_a_profile_on_one_card_has_its_anchors_on_a_machine_with_two() -> None:
    found = anchors("triton_cumsum", "gpu", [H200, H200])
    assert found is not None
    assert found == anchors("triton_cumsum", "gpu", [H200])


def test_a_profile_on_all_cards_has_only_the_anchors_of_their_number() -> None:
    assert anchors("optimize_llm_foundry", "gpu", [H200]) is not None
    assert anchors("optimize_llm_foundry", "gpu", [H200, H200]) is None
    assert anchors("optimize_llm_foundry", "paper", [H100] * 4) is not None
    assert anchors("optimize_llm_foundry", "paper", [H100]) is None
    assert anchors("restricted_mlm", "paper", [H100] * 2) is not None


def test_a_profile_without_cards_has_its_anchors_beside_them() -> None:
    profile = registry.find("triton_cumsum").spec.profile("cpu")
    assert profile.anchors_for(profile.hardware([H200], 2)) is not None
