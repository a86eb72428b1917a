"""The values of a profile's `settings` table and of the sealed keys, decoded strictly."""

from __future__ import annotations

from pathlib import Path

import msgspec

from environments.kit.bpe import END, MASK
from environments.kit.settings import SealedKeys, decoder


class MlmSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[profiles.<name>.settings]`."""

    corpora: tuple[str, ...]
    """Names in `kit/data/SOURCES.toml`, or `hub`."""
    vocabulary: int
    """Entries, the mask token included."""
    length: int
    """Tokens in one row."""
    vocabulary_file: str = ""
    """A derived file of the kit; empty means: trained by prepare."""
    mask_token: int = MASK
    end_token: int = END
    mask_share: float = 0.15
    scoring_share: float = 0.05
    control_share: float = 0.03
    validation_share: float = 0.04
    scoring_rows: int
    control_rows: int
    """Rows of the second protected part and of the training text, for the memorisation flag."""
    batch: int = 64
    log_constant: float
    """raw = ln(loss - log_constant)."""
    capture_seconds: float = 120.0
    """Time for importing `model.py` and capturing it."""
    largest_parameters: int
    """Numbers in all weights and constants together."""
    largest_intermediate: int
    """Numbers in any one intermediate tensor, for one batch."""
    largest_memory_gb: float
    """Intermediate tensors alive at one time, for one batch."""
    largest_gigaflops: float
    """Arithmetic for one row."""
    first_weights_tokens: int = 0
    """Training of the starting weights where none are shipped."""
    device: str = "cpu"
    hub_dataset: str = ""
    """Repository of the hub, or a folder in its layout."""
    hub_split: str = "train"
    hub_documents: int = 0
    """How many documents to take from its beginning."""
    hub_tokenizer: str = ""
    """Tokenizer of the hub to use instead of our own; the mask token is an entry beyond its last."""


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What decides the held-out documents and the hidden positions."""

    scoring_seed: int
    control_seed: int
    validation_seed: int
    mask_seed: int


KEYS = SealedKeys(Path(__file__).parent, Keys)
decode_settings = decoder("restricted_mlm", MlmSettings)
"""Return a profile's settings, decoded strictly."""
