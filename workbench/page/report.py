"""One session as one HTML page that needs no network: figures, chart, scores with diffs, time, flags, verification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files

from sessions.audit.reviewing import read_reviews
from sessions.audit.verify import VerifyReport, verify
from sessions.record.events import Event
from sessions.record.fold import fold
from sessions.record.log import LogDamaged, read_log
from sessions.record.state import ScoreRow, SessionState
from sessions.record.store import Record
from sessions.snapshots import SnapshotError
from workbench import __version__
from workbench.ink.events import describe
from workbench.ink.figures import DASH, duration, figure, local_time, size
from workbench.ink.text import literal
from workbench.page.chart import score_chart
from workbench.review.changes import compare, patch_lines
from workbench.review.flags import flags

PATCH_LINES = 400
"""Lines of one file's patch that are shown; the rest is counted."""


def session_page(record: Record) -> str:
    """Return the page.

    Raises:
        LogDamaged: the record's chain does not hold; there is nothing to report on.
    """
    events = read_log(record.log).events
    state = fold(events)
    checked = verify(record)
    style = files("workbench.page").joinpath("report.css").read_text(encoding="utf-8")
    title = f"{state.opened.environment.slug} · {record.session}"
    body = "\n".join(_body(record, events, state, checked))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><meta name="canary" content="{_(state.opened.canary)}">'
        f"<style>\n{style}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _(text: object) -> str:
    """Return outside text as HTML that shows it literally: no markup, no controls, nothing that reorders it."""
    return escape(literal(str(text)))


def _body(
    record: Record, events: Sequence[Event], state: SessionState, checked: VerifyReport
) -> Iterator[str]:
    yield from _head(state, checked)
    yield _section("Scores")
    yield score_chart(
        state.scores, state.anchors, state.direction, _span(state), state.opened.environment.raw_label
    )
    yield _score_table(record, state)
    yield _section("Time")
    yield from _time(state)
    yield _section("Worth a look")
    yield _flags(events)
    yield from _words(state)
    yield from _review(record)
    yield _section("Verification")
    yield from _verification(checked)
    yield _section("The session")
    yield _about(state)
    yield from _events(events)


def _section(title: str) -> str:
    return f"<h2>{_(title)}</h2>"


def _pairs(pairs: Iterable[tuple[str, object]]) -> str:
    return "<dl>" + "".join(f"<dt>{_(name)}</dt><dd>{_(value)}</dd>" for name, value in pairs) + "</dl>"


def _table(headers: Sequence[str], rows: Iterable[Sequence[object]], numeric: str = "") -> str:
    """Return a table; cells are escaped here, headers named in `numeric` are set to the right."""
    kinds = [' class="n"' if header in numeric.split("|") else "" for header in headers]
    head = "".join(f"<th{kind}>{_(header)}</th>" for header, kind in zip(headers, kinds, strict=True))
    lines = (
        "<tr>" + "".join(f"<td{kind}>{_(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _head(state: SessionState, checked: VerifyReport) -> Iterator[str]:
    opened, counted = state.opened, state.counted
    sound = (
        '<span class="good">record sound</span>'
        if checked.sound
        else '<span class="bad">record DAMAGED</span>'
    )
    yield f"<h1>{_(opened.environment.title)}</h1>"
    about = f"{opened.environment.slug} {opened.environment.version} · {opened.profile} · {opened.participant} · {opened.session}"
    yield f'<p class="muted">{_(about)} · {_(local_time(state.opened_at))} · {sound}</p>'
    raw = DASH if counted is None else figure(counted.raw)
    normal = DASH if counted is None or counted.normalised is None else f"{counted.normalised:.3f}"
    calls = sum(row.number > 0 for row in state.scores)
    shown = (
        ("score that counts", raw),
        ("normalised", normal),
        ("time used", duration(state.elapsed_ms())),
        ("score calls", calls),
        ("state", state.phase.value),
    )
    yield '<div class="figures">' + "".join(f"<div><b>{_(v)}</b>{_(k)}</div>" for k, v in shown) + "</div>"


def _span(state: SessionState) -> int:
    """Return how much session time the chart shows: the budget, or less where most of it was not used."""
    used = max((row.elapsed_ms for row in state.scores), default=0)
    return state.clock.budget_ms if used * 3 > state.clock.budget_ms else max(60_000, used * 5 // 4)


def _score_table(record: Record, state: SessionState) -> str:
    headers = ("#", "at", "raw", "norm", "change", "status", "snapshot", "seconds", "note, message, changes")
    numeric = {"#", "at", "raw", "norm", "change", "seconds"}
    head = "".join(f"<th{' class=n' if h in numeric else ''}>{h}</th>" for h in headers)
    before: ScoreRow | None = None
    lines = []
    for row in state.scores:
        lines.append(
            _score_line(
                record, row, before, counts=state.counted is not None and row.number == state.counted.number
            )
        )
        if row.snapshot is not None:
            before = row
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _score_line(record: Record, row: ScoreRow, before: ScoreRow | None, *, counts: bool) -> str:
    numbers = (
        str(row.number),
        duration(row.elapsed_ms),
        figure(row.raw),
        DASH if row.normalised is None else f"{row.normalised:.3f}",
        figure(row.change, sign=True),
    )
    status = row.status.value if row.status else "not finished"
    colour = "good" if status == "valid" else "warn"
    words = "".join(f'<div class="text">{_(text)}</div>' for text in (row.note, row.message) if text)
    cells = "".join(f'<td class="n">{_(n)}</td>' for n in numbers)
    cells += (
        f'<td class="w {colour}">{status}</td><td class="w"><code>{(row.commit or DASH)[:10]}</code></td>'
    )
    cells += f'<td class="n">{DASH if row.seconds is None else f"{row.seconds:.1f}"}</td>'
    cells += f"<td>{words}{_changes(record, row, before)}</td>"
    return f"<tr{' class=counts' if counts else ''}>{cells}</tr>"


def _changes(record: Record, row: ScoreRow, before: ScoreRow | None) -> str:
    if before is None or before.snapshot is None or row.snapshot is None:
        return ""
    try:
        found = compare(record, before.snapshot, row.snapshot)
    except SnapshotError as error:
        return f'<div class="bad">{_(error)}</div>'
    if not found["changes"]:
        return '<div class="muted">no change</div>'
    files_changed = "".join(_file_change(change) for change in found["changes"])
    count = len(found["changes"]) + found["unlisted"]
    if found["unlisted"]:
        files_changed += f"<div class=muted>and {found['unlisted']} more files</div>"
    return f"<details><summary>{count} file{'s' * (count != 1)} changed since #{before.number}</summary>{files_changed}</details>"


def _file_change(change: dict[str, object]) -> str:
    sizes = " → ".join(size(n) for n in (change["old_size"], change["new_size"]) if isinstance(n, int))
    head = (
        f"<div><code>{_(change['path'])}</code> {_(change['kind'])} <span class=muted>{_(sizes)}</span></div>"
    )
    patch = change["patch"]
    if not isinstance(patch, str) or not patch:
        digest = change["new_digest"] or change["old_digest"] or ""
        return f"{head}<div class=muted><code>{_(digest)}</code></div>"
    lines = patch_lines(patch)
    shown = "\n".join(_patch_line(line) for line in lines[:PATCH_LINES])
    more = f"\n… {len(lines) - PATCH_LINES} more lines" if len(lines) > PATCH_LINES else ""
    return f"{head}<pre>{shown}{more}</pre>"


def _patch_line(line: str) -> str:
    kind = {"+": "add", "-": "del", "@": "at"}.get(line[:1])
    return f'<span class="{kind}">{_(line)}</span>' if kind else _(line)


def _time(state: SessionState) -> Iterator[str]:
    scoring = sum(row.seconds or 0 for row in state.scores if row.number > 0)
    policy = state.opened.policy
    yield _pairs((
        ("budget", duration(state.clock.budget_ms)),
        ("used", duration(state.elapsed_ms())),
        ("paused", duration(state.paused_ms())),
        ("credited", duration(state.clock.credited_ms)),
        ("in the scorer", duration(round(scoring * 1000))),
        ("breaks, scoring, interruptions", f"{policy.breaks}, {policy.scoring_time}, {policy.interruptions}"),
    ))  # fmt: skip
    if state.pauses:
        rows = [
            (p.reason, duration(p.elapsed_ms), duration(p.milliseconds(state.last)), p.by, p.note)
            for p in state.pauses
        ]
        yield _table(("pause", "at", "length", "by", "note"), rows, "at|length")
    if state.credits:
        yield _table(("credit", "by", "why", "when"), [
            (duration(c.credit_ms), by, c.why, local_time(at)) for at, by, c in state.credits
        ], "credit")  # fmt: skip
    if state.interruptions:
        yield _table(("interruption", "length", "counted", "when"), [
            (i.cause, duration(i.lost_ms), "yes" if i.counted else "no", local_time(at)) for at, i in state.interruptions
        ], "length")  # fmt: skip


def _flags(events: Sequence[Event]) -> str:
    found = flags(events)
    if not found:
        return '<p class="muted">Nothing.</p>'
    rows = [(flag.kind.value, flag.what, ", ".join(map(str, flag.seqs))) for flag in found]
    return _table(("flag", "evidence", "events"), rows)


def _words(state: SessionState) -> Iterator[str]:
    """Yield notes, messages, corrections and the survey, each where there is any."""
    if state.notes:
        yield _section("Notes")
        yield _table(
            ("at", "by", "note"), [(duration(n.elapsed_ms), n.by, n.text) for n in state.notes], "at"
        )
    if state.messages:
        yield _section("Messages")
        rows = [(m.by, m.text, "yes" if m.acknowledged else "no") for m in state.messages]
        yield _table(("by", "message", "acknowledged"), rows)
    if state.corrections:
        yield _section("Corrections")
        made = [(str(c.corrects), by, c.what, c.why) for by, c in state.corrections]
        yield _table(("event", "by", "what", "why"), made)
    if state.survey:
        yield _section("Survey")
        asked = {question.key: question.ask for question in state.opened.environment.survey}
        yield _pairs((asked.get(key, key), answer) for key, answer in state.survey.items())


def _review(record: Record) -> Iterator[str]:
    """Yield what reviewers added; a review that does not hold is told under verification."""
    try:
        added = read_reviews(record)
    except LogDamaged:
        return
    if added:
        yield _section("Review")
        rows = [(local_time(event.at), event.by, describe(event)) for event in added]
        yield _table(("written", "by", "what"), rows)


def _verification(checked: VerifyReport) -> Iterator[str]:
    if checked.sound:
        yield f'<p class="good">The record holds: {checked.events} events, every stored file as it was written.</p>'
    for problem in checked.problems:
        yield f'<p class="bad">{_(problem)}</p>'
    for remark in checked.remarks:
        yield f'<p class="muted">{_(remark)}</p>'


def _about(state: SessionState) -> str:
    opened, found = state.opened, state.opened.hardware
    gpus = ", ".join(found.gpus)
    return _pairs((
        ("participant", f"{opened.participant} ({opened.participant_kind})"),
        ("variant", opened.policy.variant),
        ("work folder", opened.work_tree),
        ("isolation", opened.isolation.level),
        *((" ", line) for line in opened.isolation.evidence),
        ("hardware", f"{found.label}: {found.cpu}, {found.cpus} cores, {size(found.memory_bytes)} {gpus}"),
        ("software", ", ".join(f"{name} {version}" for name, version in opened.software.items())),
        ("shells", len(state.shells)),
        ("commands", state.commands),
        ("tokens", f"{state.usage.input_tokens} in, {state.usage.output_tokens} out"),
        ("money", DASH if state.usage.dollars is None else f"${state.usage.dollars:.2f}"),
        ("brief, SHA-256", opened.brief_sha256),
        ("digest of the record", DASH if state.closed is None else state.closed.digest),
        ("made by", f"rebench-workbench {__version__}"),
    ))  # fmt: skip


def _events(events: Sequence[Event]) -> Iterator[str]:
    counts = ", ".join(
        f"{count} {kind}" for kind, count in Counter(event.kind for event in events).most_common()
    )
    told = [event for event in events if event.kind not in {"heartbeat", "score_progressed"}]
    rows = [
        (event.seq, duration(event.elapsed), event.by, describe(event), event.prev[:12]) for event in told
    ]
    yield f"<details><summary>{len(events)} events: {_(counts)}</summary>"
    yield _table(("seq", "at", "by", "what", "chained to"), rows, "seq|at") + "</details>"
