"""What the probe found is told in sentences, each thing once."""

from __future__ import annotations

from sessions.host.isolation import Attempt, Candidate
from sessions.record.events import Isolation, IsolationFound
from tests.workbench.tui.story import Story
from tests.workbench.tui.support import screen_text, showing, until
from workbench.tui.isolation import isolation_sentences

GONE = "No such file or directory"
NAMES = (
    "the records", "protected assets", "the proctor's socket", "package held_out_text", "the host's memory",
    "the host's environment variables",
)  # fmt: skip


def found(*reached: str, level: Isolation = Isolation.SANDBOX) -> IsolationFound:
    """Return the host's own evidence of a probe that reached some things."""
    attempts = tuple(Attempt(name, name in reached, "read" if name in reached else GONE) for name in NAMES)
    return IsolationFound(level, Candidate(Isolation.SANDBOX, attempts).evidence())


def test_what_is_out_of_reach_is_listed_in_one_sentence_with_what_it_means() -> None:
    (said,) = isolation_sentences(found())
    assert said == (
        "The session's shells cannot reach the records, protected assets, the proctor's socket, package held_out_text, "
        "the host's memory and the host's environment variables: this was tried at the opening, and is as it should be."
    )


def test_what_could_be_reached_comes_first() -> None:
    said = isolation_sentences(found("package held_out_text"))
    assert said[0] == "The session's shells can reach package held_out_text. The record says so."
    assert "held_out_text" not in said[1]


def test_a_level_that_does_not_hold_is_given_with_the_reason() -> None:
    probed = found("the records", "protected assets").evidence
    unusable = Candidate(Isolation.USER, failure="no participant account was named").evidence()
    said = isolation_sentences(IsolationFound(Isolation.NONE, (*unusable, *probed, "none: unprotected")))
    assert said == [
        "sandbox does not hold here: the records and protected assets could be reached.",
        "user cannot be used here: no participant account was named",
        "Nothing keeps the session's shells from held-out data and records; it is marked as unprotected.",
    ]


def test_evidence_in_other_words_stays_as_it_is() -> None:
    assert isolation_sentences(IsolationFound(Isolation.USER, ("set up by hand\nby ann",))) == [
        "set up by hand by ann"
    ]


async def test_the_health_dialog_is_whole_on_eighty_columns_when_all_is_well() -> None:
    story = Story().open(isolation=found()).starting().begin()
    async with showing(story, size=(80, 24)) as pilot:
        await pilot.press("h")
        await until(pilot, lambda: "cannot reach the records" in screen_text(pilot.app))
        text = screen_text(pilot.app)
        assert GONE not in text
        assert "as it should be." in text
        assert "esc close" in text
