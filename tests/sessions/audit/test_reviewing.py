from pathlib import Path

import pytest

from environments.contract import AssetFolders, ScoreStatus
from sessions.audit.rescoring import rescore
from sessions.audit.reviewing import add_review, read_reviews
from sessions.host.scoring import GRACE_SECONDS, Answer, ScriptedScorer
from sessions.record.events import CommentAdded, NoteWritten, Verdict, VerdictGiven
from sessions.record.log import LogDamaged
from tests.sessions.bench import Bench
from tests.sessions.builders import valid


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, valid(1.5))
    await bench.running()
    await bench.scored()
    await bench.die()
    return bench


async def test_reviews_are_chained_and_the_session_log_stays_untouched(bench: Bench) -> None:
    before = bench.record.log.read_bytes()
    add_review(bench.record, CommentAdded("a gap", 93_000), "reviewer ann")
    add_review(bench.record, VerdictGiven(Verdict.REDO, "twice", blind=True), "reviewer bob")
    assert [event.body for event in read_reviews(bench.record)] == [
        CommentAdded("a gap", 93_000),
        VerdictGiven(Verdict.REDO, "twice", blind=True),
    ]
    assert bench.record.log.read_bytes() == before


async def test_a_review_changed_by_hand_is_noticed_and_not_added_to(bench: Bench) -> None:
    add_review(bench.record, CommentAdded("one"), "reviewer ann")
    add_review(bench.record, CommentAdded("two"), "reviewer ann")
    bench.record.review_log.write_bytes(bench.record.review_log.read_bytes().replace(b"one", b"ONE"))
    with pytest.raises(LogDamaged):
        add_review(bench.record, CommentAdded("three"), "reviewer ann")


async def test_a_torn_review_is_cut_before_the_next(bench: Bench) -> None:
    add_review(bench.record, CommentAdded("one"), "reviewer ann")
    with bench.record.review_log.open("ab") as log:
        log.write(b'{"seq":1,"at"')
    add_review(bench.record, CommentAdded("two"), "reviewer ann")
    assert [event.seq for event in read_reviews(bench.record)] == [0, 1]


async def test_events_of_a_session_do_not_belong_in_a_review(bench: Bench) -> None:
    with pytest.raises(TypeError, match="does not belong"):
        add_review(bench.record, NoteWritten("x"), "reviewer ann")


async def test_a_snapshot_is_scored_again_from_what_was_in_it_then_and_with_the_grace_of_a_session(
    bench: Bench, tmp_path: Path
) -> None:
    bench.write("changed since")
    state = bench.journal.state
    seen: list[tuple[str, float]] = []

    class Reading(ScriptedScorer):
        async def run(self, call, folder, seconds, on_progress):  # type: ignore[no-untyped-def]
            seen.append(((Path(call.root) / "answer.txt").read_text(), seconds))
            return await super().run(call, folder, seconds, on_progress)

    assets = AssetFolders(tmp_path, tmp_path)
    again = await rescore(bench.record, state.opened, state.scores[1], Reading(valid(1.4)), assets)
    assert (again.raw, again.status) == (1.4, ScoreStatus.VALID)
    limit = state.opened.environment.profile(state.opened.profile).limits.score_seconds
    assert seen == [("2.0\n", limit + GRACE_SECONDS)]
    broken = await rescore(
        bench.record, state.opened, state.scores[1], ScriptedScorer(Answer(fault="no assets")), assets
    )
    assert broken.status is ScoreStatus.INFRASTRUCTURE
