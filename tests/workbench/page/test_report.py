"""Flags and the HTML page of a session."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from environments.contract import Anchors, Direction, ScoreStatus
from sessions.audit.reviewing import add_review
from sessions.record import events as e
from sessions.record.log import read_log
from sessions.record.state import ScoreRow
from tests.workbench.cli.conftest import Run, Story
from workbench.cli.exits import Exit
from workbench.page.chart import score_chart
from workbench.page.report import session_page
from workbench.review.flags import Kind, flags

Told = Callable[..., Story]
HOSTILE = "<script>alert(1)</script> & [bold] \x1b[2J \" '"


def _flags(story: Story) -> dict[Kind, str]:
    return {flag.kind: flag.what for flag in flags(read_log(story.record.log).events)}


def test_each_kind_of_trouble_is_flagged_with_its_evidence(story: Told) -> None:
    told = story().begin().score(1, 0.1)
    told.tell(e.RecordingGap(2, "disk full", 512))
    told.tell(e.ShellOpened(None, "tmux", 77))
    told.tell(e.Interrupted(e.InterruptionCause.REBOOT, 1000, counted=False))
    told.tell(
        e.SnapshotTaken(
            2, e.SnapshotReason.PERIODIC, "partial", "c" * 40, "b" * 40, 1, 1, 0, 0.1, skipped_count=3
        )
    )
    told.tell(e.HealthChanged(e.Part.RECORDER, e.Light.RED, "no space"))
    told.clock.step_wall(-10_800)
    told.note("after the step")
    told.score(2, None, status=ScoreStatus.INFRASTRUCTURE, message="scorer died")
    found = _flags(told)
    assert set(found) == set(Kind)
    assert "1.90 of the way" in found[Kind.SCORE]
    assert "-10770 s" in found[Kind.CLOCK]


def test_an_ordinary_session_in_a_sandbox_has_no_flags(story: Told) -> None:
    told = (
        story(isolation=e.IsolationFound(e.Isolation.SANDBOX))
        .begin()
        .score(1, 1.5)
        .note("fine")
        .pause(5)
        .close()
    )
    assert _flags(told) == {}


class _Strict(HTMLParser):
    """Notices tags that are closed in the wrong order, and anything fetched from elsewhere."""

    VOID = frozenset({"meta", "br", "line", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.outside += [value or "" for name, value in attrs if name in {"src", "href", "xlink:href"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)


def test_the_page_is_whole_self_contained_and_shows_outside_text_literally(story: Told) -> None:
    told = story().begin().score(1, 1.5, note=HOSTILE, message=HOSTILE).note(HOSTILE).pause(3)
    told.tell(e.TimeCredited(60_000, HOSTILE), "proctor kim")
    told.tell(e.MessageSent(1, HOSTILE), "proctor kim")
    told.tell(e.CorrectionMade(2, HOSTILE, HOSTILE), "proctor kim")
    told.tell(e.SurveyAnswered({"hardest": HOSTILE}), "participant")
    told.close()
    page = session_page(told.record)
    parser = _Strict()
    parser.feed(page)
    assert parser.open == []
    assert parser.outside == []
    assert "script" not in parser.tags
    assert "url(" not in page
    assert "@import" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 7
    assert e.CANARY in page


def test_the_page_tells_what_reviewers_added(story: Told) -> None:
    told = story().begin().score(1, 0.1).close()
    assert "<h2>Review</h2>" not in session_page(told.record)
    add_review(told.record, e.CommentAdded(HOSTILE, 63_000), "reviewer ann")
    add_review(told.record, e.VerdictGiven(e.Verdict.REDO, "no sound", blind=True), "reviewer bo")
    add_review(told.record, e.Rescored(1, 0.2, ScoreStatus.VALID, "loss 3.2", 4.0), "reviewer bo")
    page = session_page(told.record)
    assert "comment at 0:01:03: &lt;script&gt;" in page
    assert "<script>" not in page
    assert "verdict (blind): redo: no sound" in page
    assert "rescored #1: valid 0.2000: loss 3.2" in page
    changed = told.record.review_log.read_bytes().replace(b"no sound", b"fine all")
    told.record.review_log.write_bytes(changed)
    assert "<h2>Review</h2>" not in session_page(told.record)
    assert "record DAMAGED" in session_page(told.record)


def test_the_command_writes_the_page(run: Run, story: Told, tmp_path) -> None:  # type: ignore[no-untyped-def]
    told = story().begin().score(1, 1.5).close()
    outcome = run("report", told.record.session, "-o", str(tmp_path / "page.html"))
    assert outcome.code == Exit.OK
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("values", [[1.0], [1.0, 1.0, 1.0], [-3.0, 5e6, 2.0], [1e-9, 2e-9], [0.0]])
@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("anchors", [None, Anchors(2.0, 1.0, "any", "measured")])
def test_the_chart_is_sound_svg_for_any_scores(
    values: list[float], direction: Direction, anchors: Anchors | None
) -> None:
    rows = [
        ScoreRow(n, "", n * 1000, status=ScoreStatus.VALID, raw=value, note="<&>")
        for n, value in enumerate(values)
    ]
    rows.append(ScoreRow(len(rows), "", 5000, status=ScoreStatus.INVALID))
    drawing = score_chart(rows, anchors, direction, 10_000, "ln(loss) <raw>")
    tree = ET.fromstring(drawing)
    assert len(tree.findall("circle")) == len(values)
    assert not re.search(r"\b(nan|inf)\b", drawing)


def test_without_a_valid_score_the_chart_is_a_sentence() -> None:
    assert score_chart([ScoreRow(0, "", 0)], None, Direction.LOWER, 1000, "raw") == "<p>No valid score.</p>"
