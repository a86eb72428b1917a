"""Reads documents and tokenizers from the hub, or from folders in the hub's layout."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from environments.contract import AssetsMissing
from environments.kit.sources import Document

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def hub_documents(dataset: str, split: str, count: int) -> list[Document]:
    """Return the first `count` documents of a dataset with a `text` column, streamed rather than downloaded whole.

    Raises:
        AssetsMissing: the dataset cannot be read, or has no text.
    """
    from datasets import load_dataset

    try:
        rows: Any = load_dataset(dataset, split=split, streaming=True)
        texts = [str(row["text"]) for row in itertools.islice(rows, count)]
    except KeyError as error:
        raise AssetsMissing(f"the dataset {dataset} has no column {error}") from error
    except Exception as error:
        raise AssetsMissing(
            f"the dataset {dataset} (split {split}) could not be read through `datasets`: {type(error).__name__}: {error}; "
            "it needs the network, or set HF_HUB_CACHE to a folder that holds it"
        ) from error
    if not texts:
        raise AssetsMissing(f"the dataset {dataset} (split {split}) holds no documents")
    return [Document(f"{dataset}/{number}", text) for number, text in enumerate(texts)]


def hub_tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer of a model of the hub.

    Raises:
        AssetsMissing: it cannot be read, or is not a fast one.
    """
    from transformers import AutoTokenizer

    try:
        found: Any = AutoTokenizer.from_pretrained(name)
        tokenizer: Tokenizer = found.backend_tokenizer
    except Exception as error:
        raise AssetsMissing(
            f"the tokenizer {name} could not be read through `transformers`: {type(error).__name__}: {error}; "
            "it needs the network, or set HF_HUB_CACHE to a folder that holds it"
        ) from error
    return tokenizer
