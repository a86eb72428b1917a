"""The one way to a model: a metered, logged, OpenAI-compatible server that a session's host keeps."""

from sessions.gateway.meter import BudgetSpent, Meter, Reservation, Spent
from sessions.gateway.server import Gateway
from sessions.gateway.upstream import Answer, HttpUpstream, ScriptedUpstream, Upstream, UpstreamFailed

__all__ = [
    "Answer",
    "BudgetSpent",
    "Gateway",
    "HttpUpstream",
    "Meter",
    "Reservation",
    "ScriptedUpstream",
    "Spent",
    "Upstream",
    "UpstreamFailed",
]
