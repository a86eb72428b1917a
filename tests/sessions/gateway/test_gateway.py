import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from environments.contract import Allowance, ModelBudget, Price
from sessions.gateway import (
    Answer,
    BudgetSpent,
    Gateway,
    HttpUpstream,
    Meter,
    ScriptedUpstream,
    UpstreamFailed,
)
from sessions.gateway.calls import CallBegan, CallEnded, read_calls, spent_so_far
from sessions.gateway.server import Told
from sessions.record.clock import ManualClock

aiohttp = pytest.importorskip("aiohttp")

PRICES = {"small": Price(input=1.0, output=2.0)}
Reply = Callable[[dict[str, Any]], Answer | Exception]


def said(text: str = "hello", asked: int = 10, answered: int = 5) -> Answer:
    usage = {"prompt_tokens": asked, "completion_tokens": answered}
    return Answer(200, {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": usage})


class Bench:
    """A gateway with a scripted model behind it, asked over its Unix socket."""

    def __init__(self, folder: Path, budget: ModelBudget, reply: Reply) -> None:
        self.folder = folder
        self.upstream = ScriptedUpstream(reply)
        self.told: list[Told] = []
        self.gateway = Gateway(folder / "gateway", budget, self.upstream, ManualClock(), self.told.append)
        self.key = self.gateway.key_for("participant")
        self.socket = folder / "gateway.sock"

    async def ask(
        self, key: str | None = None, path: str = "chat/completions", **request: Any
    ) -> tuple[int, Any]:
        wanted = {"model": "small", "messages": [{"role": "user", "content": "hi"}], **request}
        headers = {"Authorization": f"Bearer {key or self.key}"}
        connector = aiohttp.UnixConnector(str(self.socket))
        async with (
            aiohttp.ClientSession(connector=connector, headers=headers) as session,
            session.post(f"http://gateway/v1/{path}", json=wanted) as response,
        ):
            return response.status, await response.json()


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    made: list[Bench] = []

    async def begin(reply: Reply = lambda _: said(), **budget: Any) -> Bench:
        bench = Bench(tmp_path, ModelBudget(models=PRICES, **budget), reply)
        await bench.gateway.start(bench.socket)
        made.append(bench)
        return bench

    yield begin
    for bench in made:
        await bench.gateway.close()


async def test_a_call_is_passed_on_metered_told_and_logged_whole(start: Callable[..., Any]) -> None:
    bench = await start()
    status, body = await bench.ask(max_tokens=50)
    assert (status, body["choices"][0]["message"]["content"]) == (200, "hello")
    assert bench.gateway.meter.spent.tokens == 15
    assert bench.gateway.meter.spent.dollars == pytest.approx(20e-6)
    (told,) = bench.told
    assert (told.model, told.input_tokens, told.output_tokens) == ("small", 10, 5)
    assert told.dollars == pytest.approx(20e-6)
    assert (told.caller.name, told.caller.account) == ("participant", "session")
    began, ended = read_calls(bench.folder / "gateway" / "calls.jsonl")
    assert isinstance(began, CallBegan)
    assert isinstance(ended, CallEnded)
    assert (began.caller, began.request["messages"][0]["content"]) == ("participant", "hi")
    assert ended.response == body


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"model": "large"}, "not offered; there are small"),
        ({"stream": True}, "stream=false"),
        ({"n": 1000}, "from 1 to 128"),
        ({"n": "many"}, "from 1 to 128"),
        ({"best_of": 20}, "best_of"),
        ({"max_tokens": -1}, "above 0"),
        ({"models": ["small", "large"]}, "models: not passed on"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "text only",
        ),
    ],
)
async def test_what_cannot_be_metered_is_refused_in_words(
    start: Callable[..., Any], request_: dict[str, Any], words: str
) -> None:
    bench = await start()
    status, body = await bench.ask(**request_)
    assert status == 400
    assert words in body["error"]["message"]
    assert bench.upstream.requests == []


async def test_a_stranger_gets_nothing_not_even_the_list(start: Callable[..., Any]) -> None:
    bench = await start()
    assert (await bench.ask(key="rw-guess"))[0] == 401
    bench.gateway.forget(bench.key)
    assert (await bench.ask())[0] == 401
    assert bench.upstream.requests == []


async def test_the_budget_of_calls_is_hard(start: Callable[..., Any]) -> None:
    bench = await start(calls=2)
    statuses = [(await bench.ask())[0] for _ in range(4)]
    assert statuses == [200, 200, 402, 402]
    assert len(bench.upstream.requests) == 2


async def test_calls_side_by_side_cannot_overrun_the_budget_together(start: Callable[..., Any]) -> None:
    bench = await start(dollars=1e-3, largest_answer=100)
    statuses = [status for status, _ in await asyncio.gather(*(bench.ask(max_tokens=100) for _ in range(12)))]
    assert statuses.count(200) >= 1
    assert bench.gateway.meter.spent.dollars <= 1e-3


async def test_a_longer_answer_than_allowed_is_never_asked_for(start: Callable[..., Any]) -> None:
    bench = await start(largest_answer=64)
    await bench.ask(max_tokens=100_000)
    await bench.ask()
    assert [request["max_tokens"] for request in bench.upstream.requests] == [64, 64]


async def test_only_one_bound_of_an_answers_length_is_passed_on(start: Callable[..., Any]) -> None:
    bench = await start(largest_answer=64)
    await bench.ask(max_tokens=100_000, max_completion_tokens=10)
    (request,) = bench.upstream.requests
    assert request["max_completion_tokens"] == 10
    assert "max_tokens" not in request


async def test_every_prompt_of_a_list_is_reserved_for(start: Callable[..., Any]) -> None:
    bench = await start(tokens=5000, largest_answer=100)
    assert (await bench.ask(prompt=["a"] * 10, max_tokens=100))[0] == 200
    assert (await bench.ask(prompt=["a"] * 100, max_tokens=100))[0] == 402
    assert (await bench.ask(prompt=[1] * 100, max_tokens=100))[0] == 200


async def test_a_long_text_beside_short_messages_is_reserved_for(start: Callable[..., Any]) -> None:
    bench = await start(tokens=5000, largest_answer=100)
    assert (await bench.ask(prompt="a" * 6000))[0] == 402
    assert (await bench.ask(tools=[{"name": "a" * 6000}]))[0] == 402


async def test_an_answer_without_usage_costs_its_worst(start: Callable[..., Any]) -> None:
    bench = await start(lambda _: Answer(200, {"choices": []}), largest_answer=64)
    await bench.ask()
    assert bench.gateway.meter.spent.tokens > 64


async def test_a_service_that_is_away_costs_a_call_and_no_tokens(start: Callable[..., Any]) -> None:
    bench = await start(lambda _: UpstreamFailed("nobody there"), tokens=10_000)
    status, body = await bench.ask()
    assert status == 502
    assert "nobody there" in body["error"]["message"]
    assert bench.gateway.meter.spent.tokens == 0


async def test_what_was_spent_survives_a_restart_and_a_call_cut_off_costs_its_worst(tmp_path: Path) -> None:
    budget = ModelBudget(models=PRICES, tokens=1000, largest_answer=100)
    first = Bench(tmp_path, budget, lambda _: said())
    await first.gateway.start(first.socket)
    await first.ask()
    cut_off = first.gateway.meter.reserve({"model": "small", "messages": [], "max_tokens": 100})
    first.gateway._log.began(cut_off, "participant", "chat/completions", {})
    await first.gateway.close()
    second = Bench(tmp_path, budget, lambda _: said())
    assert second.gateway.meter.spent.calls == 2
    assert second.gateway.meter.spent.tokens == 15 + cut_off.worst.tokens
    assert second.gateway.meter.reserve({"model": "small"}).number == 2
    await second.gateway.close()


async def test_a_scoring_pays_from_its_own_allowance_and_the_session_from_its_own(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    bench = await start(calls=1)
    first, second = (bench.gateway.key_for(name, allowance=Allowance(calls=2)) for name in ("one", "two"))
    statuses = [(await bench.ask(key=key))[0] for key in (first, first, first, second, bench.key, bench.key)]
    assert statuses == [200, 200, 402, 200, 200, 402]
    assert [told.caller.account for told in bench.told] == ["one", "one", "two", "session"]
    lines = read_calls(tmp_path / "gateway" / "calls.jsonl")
    assert [line.number for line in lines] == [0, 0, 1, 1, 2, 2, 3, 3]
    spent, following = spent_so_far(lines)
    assert (spent.calls, following) == (1, 4)


@pytest.mark.parametrize("figure", [-5, 1.5, True, None, "many", 10**6])
async def test_usage_that_is_no_count_costs_the_worst_case(start: Callable[..., Any], figure: object) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": figure}
    bench = await start(lambda _: Answer(200, {"choices": [], "usage": usage}), largest_answer=64)
    await bench.ask()
    assert bench.gateway.meter.spent.tokens > 64
    assert all(told.output_tokens >= 0 for told in bench.told)


@pytest.mark.parametrize("price", ["nan", "-1.0", "inf"])
def test_a_price_that_is_no_amount_is_refused(price: str) -> None:
    with pytest.raises(ValueError, match="a cap could not hold"):
        Price(input=1.0, output=float(price))
    with pytest.raises(ValueError, match="a cap could not hold"):
        ModelBudget(models=PRICES, dollars=float(price))


def test_a_meter_says_how_much_is_left() -> None:
    meter = Meter(ModelBudget(models=PRICES, tokens=50, largest_answer=100))
    with pytest.raises(BudgetSpent, match=r"50 tokens .* are left"):
        meter.reserve({"model": "small", "messages": []})


async def test_a_real_service_is_reached_over_http(start: Callable[..., Any]) -> None:
    service = await start()
    upstream = HttpUpstream(f"http://127.0.0.1:{service.gateway.port}/v1", service.key)
    answer = await upstream.complete("chat/completions", {"model": "small", "messages": []})
    assert answer.status == 200
    await upstream.close()
    gone = HttpUpstream("http://127.0.0.1:9/v1")
    with pytest.raises(UpstreamFailed, match="did not answer"):
        await gone.complete("chat/completions", {"model": "small", "messages": []})
    await gone.close()
