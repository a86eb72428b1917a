"""The budget of model calls: reserved at its worst before a call, settled at what it cost after."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from environments.contract import Allowance, ModelBudget


class BudgetSpent(Exception):
    """A call would go over the budget; it is not made."""


class Spent(msgspec.Struct, frozen=True):
    """What calls have cost."""

    calls: int = 0
    tokens: int = 0
    dollars: float = 0.0

    def plus(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.dollars + other.dollars)

    def minus(self, other: Spent) -> Spent:
        return Spent(self.calls - other.calls, self.tokens - other.tokens, self.dollars - other.dollars)


class Reservation(msgspec.Struct, frozen=True):
    """The most one call can cost."""

    number: int
    model: str
    worst: Spent


class Meter:
    """Keeps one account within its limits, calls in flight included.

    Args:
        limits: this account's; the budget's own where they are not given.
        numbers: of the calls, where several accounts share a log.
    """

    def __init__(
        self,
        budget: ModelBudget,
        spent: Spent | None = None,
        *,
        limits: Allowance | None = None,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self.budget = budget
        self.limits = limits or budget
        self.spent = spent or Spent()
        self._reserved = Spent()
        self._numbers = numbers or itertools.count()

    def reserve(self, request: dict[str, Any]) -> Reservation:
        """Set the worst case of `request` aside.

        A token is at least one byte of its text, so the request's bytes bound its tokens from above. Every prompt of a list
        is completed `n` times.

        Raises:
            BudgetSpent: what is left does not cover it; says which limit and how much is left.
        """
        model = str(request["model"])
        answer = largest_answer(request, self.budget) * int(request.get("n") or 1) * _prompts(request)
        asked = len(msgspec.json.encode(request))
        worst = Spent(1, asked + answer, self.dollars(model, asked, answer))
        self._require_room(worst)
        self._reserved = self._reserved.plus(worst)
        return Reservation(next(self._numbers), model, worst)

    def _require_room(self, worst: Spent) -> None:
        after = self.spent.plus(self._reserved).plus(worst)
        for name in ("calls", "tokens", "dollars"):
            limit = getattr(self.limits, name)
            if limit is not None and getattr(after, name) > limit:
                left = limit - getattr(self.spent.plus(self._reserved), name)
                raise BudgetSpent(
                    f"the budget of {limit:g} {name} does not cover this call: it may take up to "
                    f"{getattr(worst, name):g} and {left:g} are left; ask for fewer tokens or completions"
                )

    def settle(self, reservation: Reservation, usage: tuple[int, int] | None) -> Spent:
        """Replace a reservation by what the call cost: its worst where nobody says."""
        self._reserved = self._reserved.minus(reservation.worst)
        cost = reservation.worst
        if usage is not None:
            asked, answered = usage
            cost = Spent(1, asked + answered, self.dollars(reservation.model, asked, answered))
        self.spent = self.spent.plus(cost)
        return cost

    def release(self, reservation: Reservation) -> Spent:
        """Give a reservation back for a call that never reached a model; the call itself still counts."""
        self._reserved = self._reserved.minus(reservation.worst)
        cost = replace(Spent(), calls=1)
        self.spent = self.spent.plus(cost)
        return cost

    def dollars(self, model: str, asked: int, answered: int) -> float:
        price = self.budget.models[model]
        return (asked * price.input + answered * price.output) / 1e6


def _prompts(request: dict[str, Any]) -> int:
    """Return how many prompts a request holds: one, unless it is a list of texts or of token lists."""
    prompt = request.get("prompt")
    several = isinstance(prompt, list) and not all(isinstance(token, int) for token in prompt)
    return max(1, len(prompt)) if several and isinstance(prompt, list) else 1


def largest_answer(request: dict[str, Any], budget: ModelBudget) -> int:
    """Return the most tokens a completion may have: what is asked for, within the budget's own limit."""
    wanted = request.get("max_completion_tokens") or request.get("max_tokens") or budget.largest_answer
    return min(int(wanted), budget.largest_answer)
