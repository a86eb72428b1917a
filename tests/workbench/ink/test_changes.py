"""Changes of a work tree as lines and pages: what the files hold forges no line and steers no terminal."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest

from workbench.cli.reading import print_json
from workbench.ink.lines import text_of
from workbench.page.report import _file_change
from workbench.review.changes import diff_lines
from workbench.tui.screens.details import Against
from workbench.tui.screens.details import diff_lines as screen_lines

LINE_ENDS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""What Python, browsers or editors take for an end of line, and git does not."""
STEERS = "\x1b\x07\x85\x9b\u202e\u2066\udc9b"


def difference(patch: str) -> dict[str, Any]:
    return {
        "truncated": 0,
        "unlisted": 3,
        "changes": [{
            "path": "a", "kind": "added", "old_size": None, "new_size": 1, "old_digest": None, "new_digest": None,
            "old_mode": None, "new_mode": None, "is_binary": False, "is_large": False, "patch": patch,
        }],
    }  # fmt: skip


@pytest.mark.parametrize("end", LINE_ENDS, ids=lambda end: f"{ord(end):04x}")
def test_a_line_of_a_patch_ends_where_git_ends_it(end: str) -> None:
    found = difference(f"@@ -0,0 +1 @@\n+mine{end}-forged\n")
    drawn = [click.unstyle(line) for line in diff_lines(found)]
    against = Against("since", tuple(found["changes"]), unlisted=3)
    screen = [text_of(line) for line in screen_lines(against)]
    page = _file_change(found["changes"][0])
    for lines in (drawn, screen):
        assert sum("forged" in line for line in lines) == 1
        assert not any(line.startswith("-") for line in lines)
        assert any("3 more files" in line for line in lines)
    assert 'class="del"' not in page
    assert end not in page


def test_what_a_file_holds_does_not_reach_a_page_or_a_terminal_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = difference(f"+<img src=x onerror=alert(1)>{STEERS}\n")
    page = _file_change(found["changes"][0])
    print_json(found)
    printed = capsys.readouterr().out
    assert not set(STEERS) & set(page)
    assert not set(STEERS) & set(printed)
    assert "<img" not in page
    assert json.loads(printed) == found
