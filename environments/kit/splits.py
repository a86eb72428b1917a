"""Divides a corpus by document with private seeds, keeping near-duplicates on the same side."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from environments.kit.sources import Document

PHRASE_WORDS = 8
COMMON_PHRASE = 6
"""A phrase in this many documents or more is a formula of the genre, not a sign of copying."""


class Draw(msgspec.Struct, frozen=True):
    """One held-out part: how much of the corpus, drawn with which seed."""

    share: float
    seed: int


def duplicate_groups(documents: Sequence[Document], overlap: float = 0.03) -> list[list[str]]:
    """Group documents that share more than `overlap` of the shorter one's 8-word phrases; others stand alone.

    Every document is in exactly one group; groups and their members keep the order of `documents`.
    """
    phrases = {document.name: _phrases(document.text) for document in documents}
    holders: dict[int, list[str]] = defaultdict(list)
    for name, found in phrases.items():
        for phrase in found:
            holders[phrase].append(name)
    shared: Counter[tuple[str, str]] = Counter()
    for names in holders.values():
        if 1 < len(names) < COMMON_PHRASE:
            shared.update((first, second) for i, second in enumerate(names) for first in names[:i])
    leader = {document.name: document.name for document in documents}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for (first, second), count in shared.items():
        if count > overlap * max(1, min(len(phrases[first]), len(phrases[second]))):
            leader[find(second)] = find(first)
    groups: dict[str, list[str]] = defaultdict(list)
    for document in documents:
        groups[find(document.name)].append(document.name)
    return list(groups.values())


def split_documents(
    documents: Sequence[Document], groups: Sequence[Sequence[str]], draws: Mapping[str, Draw]
) -> dict[str, list[Document]]:
    """Return the parts of `draws` and the rest as `train`; each in the order of `documents`.

    A part takes whole `groups` of names in a random order of its own seed until it holds its share of the characters.
    """
    sizes = {document.name: len(document.text) for document in documents}
    left = [list(group) for group in groups]
    chosen: dict[str, str] = {}
    for part, draw in draws.items():
        order = sorted(left)
        random.Random(draw.seed).shuffle(order)
        wanted, taken = draw.share * sum(sizes.values()), 0
        while taken < wanted and order:
            group = order.pop()
            size = sum(sizes[name] for name in group)
            if size > wanted:
                continue
            taken += size
            chosen.update((name, part) for name in group)
            left.remove(group)
    parts: dict[str, list[Document]] = {part: [] for part in (*draws, "train")}
    for document in documents:
        parts[chosen.get(document.name, "train")].append(document)
    return parts


def _phrases(text: str) -> set[int]:
    words = re.findall(r"\w+", text.lower())
    return {hash(tuple(words[i : i + PHRASE_WORDS])) for i in range(len(words) - PHRASE_WORDS + 1)}
