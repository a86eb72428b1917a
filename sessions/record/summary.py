"""A session at a glance, as plain JSON values: what `status` prints, live or from a closed record."""

from __future__ import annotations

from typing import Any

import msgspec

from environments.contract import Allowance
from sessions.record.clock import Instant
from sessions.record.events import SESSION_ACCOUNT
from sessions.record.state import Account, ScoreRow, SessionState
from sessions.record.visibility import participant_row


def summarise(state: SessionState, now: Instant, *, proctor: bool = False) -> dict[str, Any]:
    """Return the session's figures at `now`; scores a participant may not see are left out."""
    opened = state.opened
    return {
        "session": opened.session,
        "environment": opened.environment.slug,
        "title": opened.environment.title,
        "profile": opened.profile,
        "participant": opened.participant,
        "work_tree": opened.work_tree,
        "phase": state.phase.value,
        "elapsed_ms": state.elapsed_ms(now),
        "remaining_ms": state.remaining_ms(now),
        "budget_ms": state.clock.budget_ms,
        "paused_ms": state.paused_ms(now),
        "credited_ms": state.clock.credited_ms,
        "pause": _pause(state, now),
        "direction": state.direction.value,
        "counting": opened.environment.counting.value,
        "raw_label": opened.environment.raw_label,
        "anchors": None if state.scores_hidden and not proctor else msgspec.to_builtins(state.anchors),
        "scores_hidden": state.scores_hidden,
        **scores(state, proctor=proctor),
        "models": models(state),
        "isolation": opened.isolation.level.value,
        "health": {
            part.value: {"light": health.light.value, "reason": health.reason}
            for part, health in state.health.items()
        },
        "messages": [msgspec.to_builtins(m) for m in state.messages if not m.acknowledged],
        "submitted_at": state.submitted_at,
        "deadline_at": state.deadline_at,
        "closed": msgspec.to_builtins(state.closed) if proctor or not state.scores_hidden else None,
    }


def scores(state: SessionState, *, proctor: bool = False) -> dict[str, Any]:
    """Return the score rows that matter: starting, best, last, the one that counts, those pending."""
    shown = {
        "starting": state.starting,
        "best": state.best,
        "last": state.last_valid,
        "counted": state.counted,
    }
    if state.scores_hidden and not proctor:
        shown = dict.fromkeys(shown)
    return {
        **{name: None if row is None else msgspec.to_builtins(row) for name, row in shown.items()},
        "score_calls": sum(row.number > 0 for row in state.scores),
        "pending": [msgspec.to_builtins(row) for row in state.pending],
    }


def models(state: SessionState) -> dict[str, Any] | None:
    """Return the models that a session may ask, with what the participant and the latest scoring have spent of how much."""
    opened = state.opened
    budget = opened.environment.profile(opened.profile).gateway
    if budget is None:
        return None
    own = state.accounts.get(SESSION_ACCOUNT, Account(SESSION_ACCOUNT))
    scorings = [account for account in state.accounts.values() if account.name != SESSION_ACCOUNT]
    return {
        "names": list(budget.models),
        "participant": _spent(own, budget),
        "scoring": _spent(scorings[-1], budget.scoring) if scorings and budget.scoring else None,
    }


def _spent(account: Account, limits: Allowance) -> dict[str, Any]:
    return {
        "account": account.name,
        "spent": {name: getattr(account, name) for name in ("calls", "tokens", "dollars")},
        "limits": {name: getattr(limits, name) for name in ("calls", "tokens", "dollars")},
    }


def history(state: SessionState, *, proctor: bool = False) -> list[dict[str, Any]]:
    """Return every score row, oldest first."""

    def visible(row: ScoreRow) -> ScoreRow:
        return row if proctor else participant_row(row, state)

    return [msgspec.to_builtins(visible(row)) for row in state.scores]


def _pause(state: SessionState, now: Instant) -> dict[str, Any] | None:
    pause = state.pause
    if pause is None:
        return None
    return {
        "reason": pause.reason.value,
        "note": pause.note,
        "by": pause.by,
        "milliseconds": pause.milliseconds(now),
    }
