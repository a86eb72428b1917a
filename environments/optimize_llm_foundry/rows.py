"""Draws training rows: passages of real documents, each divided into a prompt and a response."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence

from environments.kit.sources import Document
from environments.optimize_llm_foundry.settings import Rows

SCORED_SHARE = 0.5
"""Of the documents; example rows come from the others."""
_SENTENCE_END = re.compile(r"(?<=[.?!;:])\s+")


def divide(documents: Sequence[Document], seed: int) -> tuple[list[Document], list[Document]]:
    """Return (documents for examples, documents for scored rows)."""
    order = sorted(documents, key=lambda document: document.name)
    random.Random(seed).shuffle(order)
    cut = int(len(order) * SCORED_SHARE)
    return order[cut:], order[:cut]


def draw_rows(documents: Sequence[Document], rows: Rows, seed: int) -> list[dict[str, str]]:
    """Return `rows.count` rows whose lengths spread evenly on a logarithmic scale."""
    chance = random.Random(seed)
    sentences = [found for document in documents if len(found := _SENTENCE_END.split(document.text)) > 8]
    drawn: list[dict[str, str]] = []
    while len(drawn) < rows.count:
        of = chance.choice(sentences)
        wanted = int(rows.shortest * (rows.longest / rows.shortest) ** chance.random())
        first = chance.randrange(len(of) - 1)
        prompt, response, at = of[first], "", first + 1
        while len(prompt) + len(response) < wanted and at < len(of):
            response += " " + of[at]
            at += 1
        drawn.append({"prompt": prompt[: wanted // 2], "response": response[:wanted]})
    return drawn


def odd_rows(seed: int) -> list[dict[str, str]]:
    """Return a few rows of unusual kinds: a script must not count on the looks of its example."""
    chance = random.Random(seed)
    number = str(chance.randrange(10**9))
    return [
        {"prompt": "", "response": f"{number} without a prompt."},
        {"prompt": f"Nothing follows {number}.", "response": ""},
        {"prompt": "", "response": ""},
        {"prompt": f"日本 {number} é\n\n\t", "response": "\u2028naïve \U0001f9ea\r\n" + number[::-1]},
        {"prompt": f"{number} " * 400, "response": "lies beyond the end of the row"},
        {"prompt": "A long answer:", "response": f" so {number}," * 300},
        {"prompt": "Twice the same", "response": number},
        {"prompt": "Twice the same", "response": number},
    ]


def to_jsonl(rows: Sequence[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
