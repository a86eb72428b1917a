"""The values of a profile's `settings` table and of the sealed keys, decoded strictly."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from environments.contract import SpecificationInvalid, Value
from environments.kit.settings import SealedKeys, decode_table


class Model(Value, frozen=True, forbid_unknown_fields=True):
    """Shape of the base model that `prepare` makes."""

    width: int
    layers: int
    heads: int
    feed_forward: int
    positions: int
    dtype: str = "float32"


class Rows(Value, frozen=True, forbid_unknown_fields=True):
    """What the training rows look like."""

    count: int
    shortest: int
    """Characters."""
    longest: int


class FoundrySettings(Value, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[profiles.*.settings]`."""

    starter: str
    """Folder below `starter/`."""
    foundry_starter: str = ""
    """Folder to take instead where LLM Foundry is installed: it runs LLM Foundry's own trainer."""
    rows: Rows
    quick_rows: Rows
    """Of the second, smaller run with other options."""
    limit_seconds: float
    """The least that a run may take before it is ended."""
    quick_share: float
    """Seconds of the untouched script's quick run over those of its whole run, measured."""
    bound_share: float
    """Largest distance to the reference, as a share of how far the reference is from the base."""
    quick_bound_share: float
    along_bound: float
    """Largest part of that distance along the reference's own way, either direction: rounding has hardly any there."""
    quick_along_bound: float
    floor_share: float = 0.5
    """Least distance to the base, likewise."""
    most_drift: float = 1.5
    """Largest ratio between two quick runs of the untouched script before and after; beyond it there is no score."""
    threads: int = 1
    gpus: bool = False
    options: dict[str, Any] = {}  # noqa: RUF012  (msgspec copies it)
    """Lines of finetune.yaml that differ from the starter's file."""
    model: Model | None = None
    hub_model: str = ""
    """Instead of `model`: a repository of the hub, or a folder in its layout."""
    hub_revision: str = "main"


class Keys(Value, frozen=True, forbid_unknown_fields=True):
    """What stays sealed."""

    documents_seed: int
    """Decides which documents scored rows are drawn from."""
    rows_seed: int
    """Mixed with the seed of a call: knowing the one does not give the rows."""

    def seed_for(self, call: int, purpose: str) -> int:
        """Return the seed of one purpose of one scoring call."""
        content = f"{self.rows_seed}/{call}/{purpose}".encode()
        return int.from_bytes(hashlib.sha256(content).digest()[:6])


KEYS = SealedKeys(Path(__file__).parent, Keys)


def decode_settings(settings: Mapping[str, Any]) -> FoundrySettings:
    """Return a profile's settings.

    Raises:
        SpecificationInvalid: names the key.
    """
    found = decode_table("optimize_llm_foundry", settings, FoundrySettings)
    if (found.model is None) == (not found.hub_model):
        raise SpecificationInvalid("optimize_llm_foundry: settings want either `model` or `hub_model`")
    return found
