"""A session's gateway as its host keeps it: where it listens, who holds which key, what it reports."""

from __future__ import annotations

import os

import msgspec

from environments.contract import GatewayAccess, ModelBudget
from sessions.gateway.server import Gateway
from sessions.gateway.upstream import HttpUpstream, Upstream
from sessions.record.events import HealthChanged, Light, Part, UsageReported
from sessions.record.log import Journal
from sessions.record.store import Record

URL_VARIABLE = "REBENCH_GATEWAY_URL"
"""The model service behind the gateway, up to and with `/v1`."""
KEY_VARIABLE = "REBENCH_GATEWAY_KEY"


class Standing(msgspec.Struct, frozen=True):
    """What must be as before after a restart: shells hold it in their variables."""

    port: int
    key: str


class HostedGateway:
    """Starts the gateway beside a session whose profile has a model budget."""

    def __init__(
        self, record: Record, journal: Journal, budget: ModelBudget, upstream: Upstream | None = None
    ) -> None:
        self._record = record
        self._journal = journal
        found = upstream or HttpUpstream(os.environ.get(URL_VARIABLE, ""), os.environ.get(KEY_VARIABLE))
        self._gateway = Gateway(record.folder / "gateway", budget, found, journal.clock, self._answered)
        self._behind = upstream is not None or bool(os.environ.get(URL_VARIABLE))
        self._key = ""
        self._closed = False

    async def start(self) -> None:
        """Listen where the session listened before, under the participant's old key."""
        place = self._record.proctor_socket.parent / "gateway.json"
        before = msgspec.json.decode(place.read_bytes(), type=Standing) if place.exists() else None
        await self._gateway.start(self._record.gateway_socket, 0 if before is None else before.port)
        self._key = self._gateway.key_for("participant", None if before is None else before.key)
        assert self._gateway.port is not None
        place.write_bytes(msgspec.json.encode(Standing(self._gateway.port, self._key)))
        if not self._behind:
            reason = f"no model service is behind the gateway: set {URL_VARIABLE} before the session starts"
            self._journal.append(HealthChanged(Part.GATEWAY, Light.RED, reason))

    def _answered(self, model: str, asked: int, answered: int, dollars: float) -> None:
        self._journal.append(UsageReported(model, asked, answered, round(dollars, 8)))

    def variables(self) -> dict[str, str]:
        """Return what points an OpenAI client of the participant's at the gateway."""
        return {"OPENAI_BASE_URL": f"http://127.0.0.1:{self._gateway.port}/v1", "OPENAI_API_KEY": self._key}

    def lend(self, caller: str) -> GatewayAccess:
        """Return a way in for one scoring; `take_back` ends it."""
        return GatewayAccess(self._record.gateway_socket, self._gateway.key_for(caller))

    def take_back(self, access: GatewayAccess) -> None:
        self._gateway.forget(access.key)

    async def close(self) -> None:
        """Let go; closing twice is closing once."""
        if not self._closed:
            self._closed = True
            await self._gateway.close()
