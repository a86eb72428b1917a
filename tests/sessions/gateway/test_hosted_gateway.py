import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from environments.contract import EnvironmentSpec, ModelBudget, Price
from environments.registry import find
from sessions.audit.verify import verify
from sessions.gateway.calls import read_calls
from sessions.host.isolation import sandbox_works
from sessions.record.events import Isolation, ParticipantKind
from sessions.record.fold import fold
from tests.sessions.live import TINY, live, until

pytest.importorskip("aiohttp")

ASK = """
import json, os, urllib.request
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps({"model": "small", "messages": [{"role": "user", "content": "hi"}]}).encode(),
    {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"},
)
try:
    print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
except urllib.error.HTTPError as error:
    print(error.code, json.load(error)["error"]["code"])
print([name for name in os.environ if name.startswith("REBENCH_GATEWAY")])
"""


class Service(BaseHTTPRequestHandler):
    """A model service that knows its own key and one sentence."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body: dict[str, Any] = {
            "choices": [{"message": {"role": "assistant", "content": "well met"}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2},
        }
        known = self.headers["Authorization"] == "Bearer the-real-key"
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("REBENCH_GATEWAY_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("REBENCH_GATEWAY_KEY", "the-real-key")
    yield
    server.shutdown()


def with_a_model(**budget: Any) -> EnvironmentSpec:
    spec = find("tiny", [TINY.parent]).spec
    models = ModelBudget(models={"small": Price(input=1.0, output=2.0)}, **budget)
    return replace(spec, profiles={"cpu": replace(spec.profile("cpu"), gateway=models)})


@pytest.mark.parametrize("level", [Isolation.NONE, Isolation.SANDBOX])
def test_a_participant_reaches_the_model_through_the_gateway_within_the_budget(
    tmp_path: Path, service: None, level: Isolation
) -> None:
    if level is Isolation.SANDBOX and not sandbox_works():
        pytest.skip("bubblewrap does not work here")
    changes = {
        "environment": with_a_model(calls=2),
        "isolation": level,
        "participant_kind": ParticipantKind.AGENT,
    }
    with live(tmp_path, **changes) as session:
        session.begin()
        (session.work / "ask.py").write_text(ASK)
        first = session.ask("exec", command="python3 ask.py")["output"].splitlines()
        assert first == ["well met", "[]"]
        session.kill_host()
        until(lambda: session.ask("hello")["pid"] > 0)
        assert session.ask("exec", command="python3 ask.py")["output"].startswith("well met")
        assert session.ask("exec", command="python3 ask.py")["output"].startswith("402 insufficient_quota")
        usage = fold(session.events()).usage
        assert (usage.input_tokens, usage.output_tokens) == (20, 4)
        assert len(read_calls(session.record.folder / "gateway" / "calls.jsonl")) == 4
        assert b"the-real-key" not in b"".join(
            path.read_bytes() for path in session.record.folder.rglob("*.jsonl")
        )
        session.ask("submit")
        until(session.record.closed)
        assert verify(session.record).sound


def test_the_environments_own_model_answers_where_no_service_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REBENCH_GATEWAY_URL", raising=False)
    with live(tmp_path, environment=with_a_model(dollars=1.0, own_model=True)) as session:
        session.begin()
        (session.work / "ask.py").write_text(ASK)
        assert session.ask("exec", command="python3 ask.py")["output"].splitlines()[0] == "50 hi"
        models = session.ask("status")["models"]
        assert models["names"] == ["small"]
        assert models["participant"]["spent"] == {
            "calls": 1, "tokens": 7, "dollars": pytest.approx(12e-6),
        }  # fmt: skip
        assert models["participant"]["limits"]["dollars"] == 1.0
        assert models["scoring"] is None


def test_a_gateway_without_a_service_is_red_and_says_what_to_set(tmp_path: Path) -> None:
    with live(tmp_path, environment=with_a_model()) as session:
        health = session.ask("status")["health"]["gateway"]
        assert health["light"] == "red"
        assert "REBENCH_GATEWAY_URL" in health["reason"]
