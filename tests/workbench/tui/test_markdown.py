"""Set Markdown: every word of a brief can be read at every width, and nothing is shown that is not for reading."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.ink.lines import Tone, cells, text_of
from workbench.tui.markdown import page_of

TABLE = """
| file | what must be in it | limit |
|---|---|---|
| `model.py` | a class `Model` whose forward pass uses only the operators that are listed below | 40 kB |
| `model.safetensors` | the weights, one tensor a parameter, under the names that `state_dict` gives them | 70 MB |
"""


def shown(markdown: str, width: int) -> str:
    return "\n".join(text_of(drawn).rstrip() for drawn in page_of(markdown, width).lines)


def words_in(text: str) -> list[str]:
    return sorted(re.findall(r"\w", text))


@pytest.mark.parametrize("width", [8, 14, 30, 46, 74, 88])
def test_a_table_loses_no_letter_however_narrow_it_is(width: int) -> None:
    found = shown(TABLE, width)
    assert "…" not in found
    letters = words_in(TABLE)
    repeated = words_in("file what must be in it limit") if width < 16 else []
    assert words_in(found) == sorted(letters + repeated)
    assert all(cells(drawn) <= width for drawn in page_of(TABLE, width).lines)


@given(
    st.lists(st.lists(st.text("ab漢 ", max_size=40), min_size=3, max_size=3), min_size=1, max_size=4),
    st.integers(20, 90),
)
@settings(max_examples=40, deadline=None)
def test_no_line_of_a_table_is_wider_than_the_page(rows: list[list[str]], width: int) -> None:
    table = "| x | y | z |\n|---|---|---|\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows)
    assert all(cells(drawn) <= width for drawn in page_of(table, width).lines)


def test_words_of_a_table_stay_whole_where_there_is_room() -> None:
    found = shown(TABLE, 60)
    assert "model.safetensors" in found
    assert "parameter" in found


def test_rows_stay_apart_when_their_first_cells_take_several_lines() -> None:
    table = "| a | b |\n|---|---|\n| " + "one " * 20 + "| x |\n| " + "two " * 20 + "| y |\n"
    assert "\n\ntwo" in shown(table, 30)


def test_code_in_a_table_looks_like_code() -> None:
    spans = [span for drawn in page_of(TABLE, 88).lines for span in drawn]
    assert ("model.py", Tone.CODE) in spans


def test_html_comments_are_not_shown_and_other_html_is() -> None:
    found = shown("# Title\n\n<!-- canary 123 -->\n\nText <!-- aside --> goes on.\n\n<b>literal</b>\n", 60)
    assert "canary" not in found
    assert "aside" not in found
    assert "Text goes on." in found
    assert "<b>" in found


def test_what_follows_a_comment_in_its_block_is_still_shown() -> None:
    assert "kept" in shown("<!-- gone\nand gone -->\n<p>kept</p>\n", 60)


def test_a_comment_in_a_code_block_is_code() -> None:
    assert "<!-- kept -->" in shown("```html\n<!-- kept -->\n```\n", 60)


@pytest.mark.parametrize("width", range(8, 40))
def test_no_line_begins_with_the_comma_after_code(width: int) -> None:
    found = shown("It needs `one`, `two`, `three`, and **four**. (`five`)", width)
    assert not [one for one in found.split("\n") if one.startswith((",", ".", ")"))]


def test_a_long_line_of_code_goes_on_below() -> None:
    found = shown("```\npython -m something --with " + "x" * 60 + " --last option\n```\n", 40)
    joined = "".join(one[2:] for one in found.split("\n"))
    assert joined.endswith("--last option")
    assert [one[:2] for one in found.split("\n")] == ["  ", "… ", "… "]
