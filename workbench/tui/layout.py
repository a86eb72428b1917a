"""Where each panel of the main screen stands: one pure function of the terminal's size."""

from __future__ import annotations

from enum import StrEnum

from textual.geometry import Region

SMALLEST = (60, 16)
"""Columns and rows below which the screen says that it is too small."""
_GAP = 3


class Form(StrEnum):
    """The three arrangements."""

    NARROW = "narrow"
    MEDIUM = "medium"
    WIDE = "wide"


NARROW_TABS = ("overview", "brief", "notes", "files", "machine")
PAGES = ("brief", "notes", "files")


def form_of(width: int, height: int) -> Form:
    """Return the arrangement for a terminal of that size."""
    if width < 100 or height < 30:
        return Form.NARROW
    return Form.WIDE if width >= 170 and height >= 40 else Form.MEDIUM


def places(width: int, height: int, *, bands: int, tab: str, page: str) -> dict[str, Region]:
    """Return panel name -> region; a panel that is not named is not shown.

    `tab` is the page of the narrow form, `page` the one of brief, notes and files shown in the others.
    """
    top = 2 + bands if bands else 2
    found = {"header": Region(0, 0, width, 1), "keys": Region(0, height - 1, width, 1)}
    if bands:
        found["bands"] = Region(0, 1, width, bands)
    match form_of(width, height):
        case Form.NARROW:
            return found | _narrow(width, height, bands, tab)
        case Form.MEDIUM:
            return found | _medium(width, height, top, page)
        case Form.WIDE:
            return found | _wide(width, height, top, page)


def _narrow(width: int, height: int, bands: int, tab: str) -> dict[str, Region]:
    top = 1 + bands
    inner = width - 2
    body = Region(1, top + 2, inner, height - top - 3)
    found = {"tabs": Region(1, top, inner, 1)}
    if tab != "overview":
        return found | {tab: body}
    left, running, least_table = 30, 2, 3
    room = body.height
    upper = min(height // 2 - 2 if height >= 30 else 10, room - running - least_table - 1)
    table_top = body.y
    if upper >= 5:
        # Less than that says nothing; the time is in the line of tabs as well.
        clock = min(upper, 7)
        found["countdown"] = Region(1, body.y, left, clock)
        if upper - clock >= 3:
            found["machine"] = Region(1, body.y + clock, left, upper - clock)
        found["chart"] = Region(1 + left + 2, body.y, inner - left - 2, upper)
        table_top += upper + 1
    rest = height - 1 - table_top
    running = running if rest < 9 else 3
    found["scores"] = Region(1, table_top, inner, rest - running)
    found["scoring"] = Region(1, table_top + rest - running, inner, running)
    return found


def _medium(width: int, height: int, top: int, page: str) -> dict[str, Region]:
    left, bottom = 40, height - 2
    machine = 8
    clock = 10
    x = 2 + left + _GAP
    across = width - x - 2
    found = {
        "countdown": Region(2, top, left, clock),
        "machine": Region(2, top + clock + 1, left, machine),
    }
    below = top + clock + machine + 2
    found["pages"] = Region(2, below, left, 1)
    found[page] = Region(2, below + 2, left, bottom - below - 2)
    return found | _scores(x, top, across, bottom)


def _wide(width: int, height: int, top: int, page: str) -> dict[str, Region]:
    left, bottom = 42, height - 2
    brief = min(84, (width - left - 2 * _GAP - 4) * 40 // 100)
    x = 2 + left + _GAP
    across = width - x - brief - _GAP - 2
    end = width - 2 - brief
    clock, machine = 10, 14
    notes = top + clock + machine + 2
    found = {
        "countdown": Region(2, top, left, clock),
        "machine": Region(2, top + clock + 1, left, machine),
        "notes": Region(2, notes, left, bottom - notes),
        "pages": Region(end, top, brief, 1),
    }
    if page == "notes":
        page = "brief"
    found[page] = Region(end, top + 2, brief, bottom - top - 2)
    return found | _scores(x, top, across, bottom)


def _scores(x: int, top: int, across: int, bottom: int) -> dict[str, Region]:
    """Stack chart, table and running score."""
    room = bottom - top
    chart = max(9, min(26, room * 45 // 100))
    running = 3
    table = room - chart - running - 2
    return {
        "chart": Region(x, top, across, chart),
        "scores": Region(x, top + chart + 1, across, table),
        "scoring": Region(x, top + chart + table + 2, across, running),
    }
