"""The token files of a profile, with a vocabulary that is shipped, fetched or trained, and `task.json` beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from environments.contract import PrepareRequest, ReportProgress
from environments.kit.bpe import load_bpe, train_bpe
from environments.kit.hub import hub_tokenizer
from environments.kit.sources import Document
from environments.kit.token_corpus import (
    PUBLIC_PARTS,
    TOKENIZER,
    CorpusRecord,
    Vocabulary,
    prepare_token_corpus,
)
from environments.kit.tokens import write_whole
from environments.restricted_mlm.settings import Keys, MlmSettings

TASK = "task.json"


def prepare_corpus(
    request: PrepareRequest, settings: MlmSettings, keys: Keys, report: ReportProgress
) -> None:
    """Fill both asset folders; token files that are there and whole are left alone."""
    public = request.assets.public
    record = prepare_token_corpus(
        request.assets, settings, keys, lambda train: _vocabulary(public, settings, train), report
    )
    write_whole(public / TASK, json.dumps(_task(settings, record), indent=2).encode() + b"\n")


def _vocabulary(public: Path, settings: MlmSettings, train: Sequence[Document]) -> Vocabulary:
    """Return the vocabulary: shipped, from the hub, or trained on the training documents."""
    end, dropped = settings.end_token, (settings.mask_token,)
    if settings.vocabulary_file:
        return Vocabulary.shipped(settings.vocabulary_file, end, dropped)
    path = public / TOKENIZER
    if settings.hub_tokenizer:
        made = hub_tokenizer(settings.hub_tokenizer)
    else:
        made = train_bpe((document.text for document in train), settings.vocabulary)
    write_whole(path, made.to_str().encode())
    return Vocabulary(load_bpe(path), path, end, dropped)


def _task(settings: MlmSettings, record: CorpusRecord) -> dict[str, Any]:
    """Return the sizes that the starter reads."""
    return {
        "vocabulary": settings.vocabulary,
        "length": settings.length,
        "mask_token": settings.mask_token,
        "end_token": settings.end_token,
        "mask_share": settings.mask_share,
        "text_bytes_per_token": {f"{part}.npy": record.text_bytes_per_token[part] for part in PUBLIC_PARTS},
    }
