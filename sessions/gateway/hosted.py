"""A session's gateway as its host keeps it: where it listens, who holds which key, what it reports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from environments.contract import GatewayAccess, ModelBudget
from sessions.gateway.server import Gateway, Told
from sessions.gateway.service import OwnModel, OwnModelUpstream
from sessions.gateway.upstream import HttpUpstream, Upstream
from sessions.record.events import HealthChanged, Light, Part, UsageReported
from sessions.record.log import Journal
from sessions.record.store import Record

URL_VARIABLE = "REBENCH_GATEWAY_URL"
"""The model service behind the gateway, up to and with `/v1`."""
KEY_VARIABLE = "REBENCH_GATEWAY_KEY"
MODEL_VARIABLE = "REBENCH_GATEWAY_MODEL"
"""What that service calls its model; without it, what the environment calls the model."""


class Standing(msgspec.Struct, frozen=True):
    """What must be as before after a restart: shells hold it in their variables."""

    port: int
    key: str


def named_service(variables: Mapping[str, str]) -> HttpUpstream | None:
    """Return the service that the operator has named in `variables`."""
    if not (url := variables.get(URL_VARIABLE)):
        return None
    return HttpUpstream(url, variables.get(KEY_VARIABLE), model=variables.get(MODEL_VARIABLE) or None)


def upstream_for(budget: ModelBudget, own: OwnModel, socket: Path, variables: Mapping[str, str]) -> Upstream:
    """Return who answers: the service that the operator has named, else the environment's own model on `socket`."""
    if (named := named_service(variables)) is not None:
        return named
    return OwnModelUpstream(own, socket) if budget.own_model else HttpUpstream("")


class HostedGateway:
    """Starts the gateway beside a session whose profile has a model budget."""

    def __init__(
        self,
        record: Record,
        journal: Journal,
        budget: ModelBudget,
        own: OwnModel,
        upstream: Upstream | None = None,
    ) -> None:
        self._record = record
        self._journal = journal
        self._budget = budget
        socket = record.proctor_socket.with_name("model.sock")
        found = upstream or upstream_for(budget, own, socket, os.environ)
        self._gateway = Gateway(record.folder / "gateway", budget, found, journal.clock, self._answered)
        self._own_model = isinstance(found, OwnModelUpstream)
        self._behind = upstream is not None or self._own_model or bool(os.environ.get(URL_VARIABLE))
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

    def _answered(self, told: Told) -> None:
        dollars = round(told.dollars, 8)
        self._journal.append(
            UsageReported(told.model, told.input_tokens, told.output_tokens, dollars, told.caller.account)
        )

    def variables(self) -> dict[str, str]:
        """Return what points an OpenAI client of the participant's at the gateway."""
        return {"OPENAI_BASE_URL": f"http://127.0.0.1:{self._gateway.port}/v1", "OPENAI_API_KEY": self._key}

    def lend(self, caller: str) -> GatewayAccess:
        """Return a way in for one scoring, which pays from the scorings' allowance; `take_back` ends it."""
        key = self._gateway.key_for(caller, allowance=self._budget.scoring)
        return GatewayAccess(self._record.gateway_socket, key, self._own_model)

    def take_back(self, access: GatewayAccess) -> None:
        self._gateway.forget(access.key)

    async def close(self) -> None:
        """Let go; closing twice is closing once."""
        if not self._closed:
            self._closed = True
            await self._gateway.close()
