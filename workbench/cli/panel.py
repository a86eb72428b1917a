"""How a session's standing and its scores are drawn by quick commands: plain text and colours, no library."""

from __future__ import annotations

from typing import Any

from click import style

from workbench.cli.text import bar, cells, fold, table, terminal_width
from workbench.ink.figures import DASH, duration, figure, local_time
from workbench.ink.text import cut, literal, one_line

_LIGHTS = {"green": "●", "amber": "▲", "red": "✖"}
_COLOURS = {"green": "green", "amber": "yellow", "red": "red"}
_PHASES = {
    "opened": ("taking the starting score", "cyan"),
    "ready": ("ready, the clock has not started", "cyan"),
    "running": ("running", "green"),
    "paused": ("PAUSED, the clock stands", "yellow"),
    "finishing": ("finishing, the clock has ended", "cyan"),
    "closed": ("closed", "blue"),
}
_LABEL = 12


def phase_words(standing: dict[str, Any]) -> tuple[str, str]:
    """Return what the phase is called and its colour."""
    return _PHASES.get(standing["phase"], (standing["phase"], "white"))


def line(standing: dict[str, Any]) -> str:
    """Return one short line: `restricted_mlm 6:41:07 left · best 1.3020 #4 · scoring #5 34 %`."""
    parts = [f"{literal(standing['environment'])} {duration(standing['remaining_ms'])} left"]
    if standing["phase"] != "running":
        parts.append(phase_words(standing)[0])
    counted = standing.get("counted")
    if counted and not standing["scores_hidden"]:
        parts.append(f"counts {figure(counted['raw'])} #{counted['number']}")
    parts += [f"scoring #{row['number']}{_percent(row)}" for row in standing["pending"]]
    parts += [
        f"{part} {h['light'].upper()}" for part, h in standing["health"].items() if h["light"] != "green"
    ]
    if unread := len(standing["messages"]):
        parts.append(f"{unread} message{'s' if unread > 1 else ''}")
    return " · ".join(parts)


def panel(standing: dict[str, Any]) -> str:
    """Return the whole standing, a few lines."""
    words, colour = phase_words(standing)
    name = style(literal(standing["environment"]), bold=True)
    about = f"{literal(standing['profile'])} · {standing['session']}"
    lines = [f"{name} · {about} · {style(words, fg=colour, bold=True)}", ""]
    lines += _time_lines(standing)
    lines += _score_lines(standing)
    lines += _concern_lines(standing)
    return "\n".join(lines)


def _row(label: str, text: str) -> str:
    return fold(f"  {style(label.ljust(_LABEL), dim=True)}{text}", _LABEL + 2)


def _time_lines(standing: dict[str, Any]) -> list[str]:
    budget, elapsed = standing["budget_ms"], standing["elapsed_ms"]
    left = standing["remaining_ms"]
    share = elapsed / budget if budget else 1.0
    colour = "red" if left <= 300_000 else "yellow" if left <= 3_600_000 and share > 0.5 else "green"
    used = f"used {duration(elapsed)} of {duration(budget)}"
    if standing["paused_ms"]:
        used += f", paused {duration(standing['paused_ms'])}"
    lines = [
        _row("time left", f"{style(duration(left), fg=colour, bold=True)}  {bar(share)} {share:.0%}  {used}")
    ]
    if pause := standing.get("pause"):
        why = f"{pause['reason']}, since {duration(pause['milliseconds'])}, by {literal(pause['by'])}"
        note = f": {one_line(pause['note'])}" if pause["note"] else ""
        lines.append(_row("pause", style(why + note, fg="yellow")))
    return lines


def _score_lines(standing: dict[str, Any]) -> list[str]:
    better = f"{literal(standing['raw_label'])}, {standing['direction']} is better"
    if standing["scores_hidden"]:
        return [_row("scores", f"hidden in this session ({better})"), *_pending_lines(standing)]
    lines = []
    counted, best, last = standing.get("counted"), standing.get("best"), standing.get("last")
    if counted is None:
        lines.append(_row("counts", f"no valid score yet ({better})"))
    else:
        lines.append(_row("counts", f"{_score(counted)}  {style(better, dim=True)}"))
    if last and counted and last["number"] != counted["number"]:
        lines.append(_row("last", _score(last)))
    if best and counted and best["number"] != counted["number"]:
        lines.append(_row("best", _score(best)))
    if anchors := standing.get("anchors"):
        about = f"start {figure(anchors['start'])}, reference {figure(anchors['reference'])}"
        lines.append(_row("anchors", f"{about}  {style(_where(anchors), dim=True)}"))
    return lines + _pending_lines(standing)


def _where(anchors: dict[str, Any]) -> str:
    where = anchors["hardware"]
    return f"{literal(anchors['source'])} on {'any machine' if where == 'any' else literal(where)}"


def _score(row: dict[str, Any]) -> str:
    name = "starting score" if row["number"] == 0 else f"#{row['number']} at {duration(row['elapsed_ms'])}"
    value = style(figure(row["raw"]), bold=True)
    normal = "" if row["normalised"] is None else f"  normalised {row['normalised']:.3f}"
    return f"{value}{normal}  {name}"


def _pending_lines(standing: dict[str, Any]) -> list[str]:
    return [
        _row(
            "scoring",
            style(f"#{row['number']} {one_line(row['stage'] or 'waiting')}{_percent(row)}", fg="cyan"),
        )
        for row in standing["pending"]
    ]


def _percent(row: dict[str, Any]) -> str:
    return "" if row["fraction"] is None else f" {row['fraction']:.0%}"


def _concern_lines(standing: dict[str, Any]) -> list[str]:
    lights = []
    for part, health in standing["health"].items():
        light = health["light"]
        reason = f" {light}: {one_line(health['reason'])}" if light != "green" else ""
        lights.append(style(f"{_LIGHTS[light]} {part}{reason}", fg=_COLOURS[light]))
    lines = [_row("health", "  ".join(lights))] if lights else []
    level = standing["isolation"]
    lines.append(_row("isolation", style("none: unprotected", fg="yellow") if level == "none" else level))
    for message in standing["messages"]:
        text = f"#{message['number']} from {literal(message['by'])}: {one_line(message['text'])}"
        lines.append(_row("message", style(text, fg="magenta", bold=True)))
    if standing.get("submitted_at"):
        lines.append(_row("submitted", local_time(standing["submitted_at"])))
    if closed := standing.get("closed"):
        lines.append(_row("closed", one_line(closed["reason"])))
    return lines


def history_table(rows: list[dict[str, Any]], standing: dict[str, Any]) -> str:
    """Return the score table, newest last, with a mark on the score that counts."""
    if not rows:
        return "no scores yet"
    counted = standing.get("counted")
    star = counted["number"] if counted else None
    width = terminal_width() or 120
    headers: tuple[str, ...] = (
        "#",
        "at",
        "raw",
        "norm",
        "change",
        "status",
        "snapshot",
        "seconds",
        "note and message",
    )
    lines: list[tuple[str, ...]] = [_cells(row, row["number"] == star) for row in rows]
    if width < 100:  # room for words first
        headers, lines = headers[:6] + headers[8:], [line[:6] + line[8:] for line in lines]
    taken = sum(
        max(map(cells, column)) + 2 for column in zip(headers[:-1], *(x[:-1] for x in lines), strict=True)
    )
    fitted = [(*line[:-1], cut(line[-1], max(20, width - taken))) for line in lines]
    return table(
        (*headers[:-1], cut(headers[-1], max(20, width - taken))),
        fitted,
        right="#|at|raw|norm|change|seconds",
    )


def _cells(row: dict[str, Any], counts: bool) -> tuple[str, ...]:
    words = " · ".join(one_line(text) for text in (row["note"], row["message"]) if text)
    status = row["status"] or f"{row['stage'] or 'waiting'}{_percent(row)}"
    colour = {"valid": "green", "infrastructure": "magenta"}.get(
        status, "cyan" if not row["status"] else "yellow"
    )
    return (
        f"{row['number']}{'★' if counts else ' '}",
        duration(row["elapsed_ms"]),
        style(figure(row["raw"]), bold=counts),
        DASH if row["normalised"] is None else f"{row['normalised']:.3f}",
        figure(row["change"], sign=True),
        style(one_line(status), fg=colour),
        (row["commit"] or DASH)[:7],
        DASH if row["seconds"] is None else f"{row['seconds']:.1f}",
        words,
    )
