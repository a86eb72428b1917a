"""A gateway without a session, for one scoring outside of one: calibration, proof, scoring a record again."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from environments.contract import GatewayAccess, ModelBudget
from sessions.gateway.calls import CallEnded, read_calls
from sessions.gateway.hosted import named_service, upstream_for
from sessions.gateway.server import Gateway
from sessions.gateway.service import OwnModel
from sessions.record.clock import SystemClock

_START_SECONDS = 30.0


class LentGateway:
    """Serves from a thread of its own until it is closed; each `lend` is one scoring with its own allowance."""

    def __init__(self, folder: Path, budget: ModelBudget, own: OwnModel) -> None:
        self._folder, self._budget = folder, budget
        self._own_model = budget.own_model and named_service(os.environ) is None
        (folder / "gateway").mkdir(mode=0o711)
        (folder / "model").mkdir(mode=0o700)
        folder.chmod(0o711)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        upstream = upstream_for(budget, own, folder / "model" / "model.sock", os.environ)
        self._gateway = Gateway(folder / "log", budget, upstream, SystemClock(), lambda _told: None)
        self._run(self._gateway.start(self.socket))

    @property
    def socket(self) -> Path:
        return self._folder / "gateway" / "gateway.sock"

    @contextmanager
    def lend(self, caller: str = "scoring") -> Iterator[GatewayAccess]:
        """Lend one scoring a way in, which opens nothing afterwards."""
        key = self._gateway.key_for(caller, allowance=self._budget.scoring)
        try:
            yield GatewayAccess(self.socket, key, self._own_model)
        finally:
            self._gateway.forget(key)

    def dollars(self) -> float:
        """Return what all calls together have cost."""
        lines = read_calls(self._folder / "log" / "calls.jsonl")
        return sum(line.cost.dollars for line in lines if isinstance(line, CallEnded))

    def close(self) -> None:
        self._run(self._gateway.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_SECONDS)
        self._loop.close()

    def _run(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_SECONDS)  # type: ignore[arg-type]


@contextmanager
def lent_gateway(budget: ModelBudget, own: OwnModel) -> Iterator[LentGateway]:
    """Keep a gateway, with its log in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="rebench-gateway-") as folder:
        gateway = LentGateway(Path(folder), budget, own)
        try:
            yield gateway
        finally:
            gateway.close()
