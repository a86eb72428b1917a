"""Trains, saves and loads byte-level BPE vocabularies; the same documents give the same bytes on every run.

Run `python -m environments.kit.bpe SOURCE ENTRIES FILE` to remake a vocabulary.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.kit.sources import load_documents

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

END = 0
"""Token between documents."""
MASK = 1
"""Token that hides another; it never occurs in text."""
ENCODED_AT_ONCE = 1000
SPECIAL_TOKENS = ("<end>", "<mask>")


def train_bpe(texts: Iterable[str], entries: int) -> Tokenizer:
    """Return a byte-level BPE of `entries` entries, special tokens and the 256 bytes included."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer: Any = trainers.BpeTrainer(
        vocab_size=entries,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def load_bpe(path: Path) -> Tokenizer:
    """Return the vocabulary stored in `path`."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(path))


def encode_documents(
    tokenizer: Tokenizer, texts: Sequence[str], end: int = END, dropped: Sequence[int] = (MASK,)
) -> Iterator[NDArray[np.uint16]]:
    """Yield each text's tokens, followed by `end`; `end` and `dropped` are left out where a text spells them out."""
    import numpy as np

    unwanted = [end, *dropped]
    for start in range(0, len(texts), ENCODED_AT_ONCE):
        for encoding in tokenizer.encode_batch(
            list(texts[start : start + ENCODED_AT_ONCE]), add_special_tokens=False
        ):
            tokens = np.asarray(encoding.ids, dtype=np.int64)
            kept = np.append(tokens[~np.isin(tokens, unwanted)], end)
            if kept.max() > np.iinfo(np.uint16).max:
                raise ValueError(f"token {kept.max()} does not fit into 16 bits")
            yield kept.astype("<u2")


def main(arguments: Sequence[str]) -> None:
    """Train on one source and save."""
    source, entries, path = arguments
    texts = [document.text for document in load_documents(source)]
    train_bpe(texts, int(entries)).save(path, pretty=False)


if __name__ == "__main__":
    main(sys.argv[1:])
