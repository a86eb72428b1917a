"""Where panels stand: nothing overlaps, nothing leaves the screen, every size has what matters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.tui.layout import NARROW_TABS, PAGES, SMALLEST, Form, form_of, places


@given(
    width=st.integers(SMALLEST[0], 320),
    height=st.integers(SMALLEST[1], 120),
    bands=st.integers(0, 4),
    tab=st.sampled_from(NARROW_TABS),
    page=st.sampled_from(PAGES),
)
def test_no_two_panels_overlap_and_none_leaves_the_screen(
    width: int, height: int, bands: int, tab: str, page: str
) -> None:
    found = places(width, height, bands=bands, tab=tab, page=page)
    taken: dict[tuple[int, int], str] = {}
    for name, region in found.items():
        assert region.x >= 0, name
        assert region.y >= 0, name
        assert region.right <= width, name
        assert region.bottom <= height, name
        for y in range(region.y, region.bottom):
            for x in (region.x, region.right - 1):
                assert (x, y) not in taken or taken[x, y] == name, (name, taken[x, y])
                taken[x, y] = name


@pytest.mark.parametrize(
    ("size", "form"),
    [((80, 24), Form.NARROW), ((120, 40), Form.MEDIUM), ((200, 60), Form.WIDE), ((200, 24), Form.NARROW)],
)
def test_the_form_follows_the_size(size: tuple[int, int], form: Form) -> None:
    assert form_of(*size) is form


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), SMALLEST])
def test_time_scores_and_the_running_score_are_always_on_the_first_page(size: tuple[int, int]) -> None:
    found = places(*size, bands=0, tab="overview", page="brief")
    for name in ("header", "countdown", "scores", "scoring", "keys"):
        assert found[name].height > 0, name
