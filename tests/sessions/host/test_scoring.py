"""A call into an environment says what the environment's process reads."""

from __future__ import annotations

from pathlib import Path

import msgspec

from environments.contract import AssetFolders, GatewayAccess
from environments.invoke import Action, InvokeRequest, _read_request
from sessions.host.scoring import Call
from tests.sessions.builders import opened

PLACES = Path("/root"), Path("/scratch"), AssetFolders(Path("/public"), Path("/protected"))


def read(call: Call) -> InvokeRequest:
    return _read_request(msgspec.json.encode(call))


def test_a_call_on_a_snapshot_is_read_with_all_its_places() -> None:
    root, scratch, assets = PLACES
    access = GatewayAccess(Path("/socket"), "key")
    request = read(Call.on_snapshot("score", opened(), root, scratch, assets, Path("/elsewhere"), access))
    assert (request.action, request.slug, request.profile) == (Action.SCORE, "tiny", "cpu")
    assert (request.root, request.scratch, request.assets) == PLACES
    assert (request.folder, request.gateway) == (Path("/elsewhere"), access)


def test_what_a_session_does_not_have_is_left_out() -> None:
    request = read(Call.on_snapshot("check", opened(), *PLACES, None))
    assert (request.action, request.folder, request.gateway) == (Action.CHECK, None, None)


def test_every_call_has_a_fresh_seed() -> None:
    assert len({Call.on_snapshot("score", opened(), *PLACES, None).seed for _ in range(20)}) == 20
