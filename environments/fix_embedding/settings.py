"""The values of a profile's `settings` table and of the sealed keys, decoded strictly."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import msgspec

from environments.kit.settings import SealedKeys, decoder


class Family(StrEnum):
    """Which network class computes the model."""

    MINIGPT = "minigpt"
    """Ours; the damaged weights and the helper are shipped."""
    TRANSFORMERS = "transformers"
    """A causal language model of `transformers`; `prepare` fetches the weights and damages them."""


class Pretrained(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where `prepare` gets the healthy large model and the helper."""

    model: str = ""
    """Repository of the hub, or a folder in its layout."""
    helper: str = ""
    """The same for the helper; empty: `prepare` trains one on the training text."""
    package: str = ""
    """Distribution whose wheel holds the model as a GGUF file, instead of the hub."""
    version: str = ""
    wheel_sha256: str = ""
    member: str = ""
    """The GGUF file inside the wheel."""
    helper_layers: int = 2
    helper_width: int = 256
    helper_tokens: int = 0
    """Training of the helper where it is ours to train."""


class FixSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[profiles.<name>.settings]`."""

    family: Family
    corpora: tuple[str, ...]
    """Names in `kit/data/SOURCES.toml`, or `hub`."""
    vocabulary: int
    length: int
    """Tokens a row predicts; also the most that the starter trains on at once."""
    scoring_share: float = 0.05
    control_share: float = 0.03
    validation_share: float = 0.04
    scoring_rows: int
    control_rows: int
    """Rows of the second protected part and of the training text."""
    batch: int = 16
    log_constant: float
    """raw = ln(loss - log_constant)."""
    device: str = "cpu"
    train_sha256: str = ""
    """Digest of the training tokens that the shipped weights were trained on; another split would let them see held-out text."""
    pretrained: Pretrained = Pretrained()
    hub_dataset: str = ""
    """Repository of the hub, or a folder in its layout."""
    hub_split: str = "train"
    hub_documents: int = 0
    """How many documents to take from its beginning."""


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What decides the held-out documents, the scored rows and the damage."""

    scoring_seed: int
    control_seed: int
    validation_seed: int
    rows_seed: int
    permutation_seed: int


KEYS = SealedKeys(Path(__file__).parent, Keys)
decode_settings = decoder("fix_embedding", FixSettings)
"""Return a profile's settings, decoded strictly."""
