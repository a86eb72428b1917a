"""A gateway outside a session, with an environment's own model behind it."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import Any

import pytest

from environments import assets
from environments.contract import Allowance, GatewayAccess, ModelBudget, Price
from environments.registry import find
from sessions.gateway.lent import LentGateway, lent_gateway
from sessions.gateway.service import OwnModel
from tests.sessions.live import TINY, prepare

pytest.importorskip("aiohttp")


class Unix(HTTPConnection):
    def __init__(self, place: Path) -> None:
        super().__init__("gateway")
        self._place = str(place)

    def connect(self) -> None:
        self.sock = socket(AF_UNIX, SOCK_STREAM)
        self.sock.connect(self._place)


def ask(access: GatewayAccess, text: str) -> tuple[int, Any]:
    connection = Unix(access.socket)
    wanted = {"model": "small", "messages": [{"role": "user", "content": text}], "max_tokens": 20}
    connection.request(
        "POST", "/v1/chat/completions", json.dumps(wanted), {"Authorization": f"Bearer {access.key}"}
    )
    response = connection.getresponse()
    return response.status, json.loads(response.read())


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LentGateway]:
    home = tmp_path_factory.mktemp("home")
    prepare(TINY, home)
    own = OwnModel("tiny", "cpu", assets.folders_for(find("tiny", [TINY.parent]).spec, "cpu", home), TINY)
    models = {"small": Price(input=1.0, output=2.0)}
    budget = ModelBudget(models=models, scoring=Allowance(calls=2), own_model=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("REBENCH_GATEWAY_URL", raising=False)
        with lent_gateway(budget, own) as lent:
            yield lent


def test_each_scoring_begins_with_a_full_allowance_and_its_key_ends_with_it(gateway: LentGateway) -> None:
    with gateway.lend() as access:
        assert access.own_model
        answered = [ask(access, "hi") for _ in range(3)]
        assert [status for status, _ in answered] == [200, 200, 402]
        assert answered[0][1]["choices"][0]["message"]["content"] == "50 hi"
    assert ask(access, "hi")[0] == 401
    with gateway.lend() as access:
        assert ask(access, "hi")[0] == 200
    assert gateway.dollars() == pytest.approx(3 * 12e-6)


def test_a_model_that_refuses_is_heard_and_one_that_died_is_started_again(gateway: LentGateway) -> None:
    with gateway.lend() as access:
        assert ask(access, "refuse") == (
            400,
            {
                "error": {
                    "type": "invalid_request_error",
                    "code": "invalid_request_error",
                    "message": "not that",
                }
            },
        )
    with gateway.lend() as access:
        assert ask(access, "die")[0] == 502
        assert ask(access, "hi")[0] == 200
