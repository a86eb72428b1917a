"""Makes the token files of a profile: train and validation for the participant, scoring and control for the scorer."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from environments.contract import AssetFolders, AssetsMissing, Progress, ReportProgress
from environments.fix_embedding.settings import FixSettings, Keys
from environments.kit.bpe import END, encode_documents, load_bpe
from environments.kit.hub import hub_documents
from environments.kit.sources import Document, derived_file, load_documents, load_sources, wheel_documents
from environments.kit.splits import Draw, duplicate_groups, split_documents
from environments.kit.tokens import token_file_bytes, write_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PARTS = {"train": "public", "validation": "public", "scoring": "protected", "control": "protected"}
RECORD = "corpus.json"
SHIPPED_VOCABULARY = "bpe4096.json"

Encode = Callable[[Sequence[str]], "Iterable[NDArray[np.uint16]]"]
"""Texts to tokens, each followed by the token that ends a document."""


class CorpusRecord(msgspec.Struct, frozen=True):
    """What was made of what, kept beside the protected files."""

    made_from: str
    """Digest of the settings, the keys and the tokenizer."""
    files: dict[str, str]
    """Token file -> SHA-256."""
    text_bytes_per_token: dict[str, float]


class Vocabulary(msgspec.Struct, frozen=True):
    """A tokenizer: its file, the token between documents, and how it encodes."""

    file: Path
    end: int
    encode: Encode


def shipped_vocabulary() -> Vocabulary:
    """Return the kit's own vocabulary."""
    path = derived_file(SHIPPED_VOCABULARY)
    tokenizer = load_bpe(path)
    return Vocabulary(path, END, lambda texts: encode_documents(tokenizer, texts))


def tokenizers_vocabulary(path: Path, end: int) -> Vocabulary:
    """Return the vocabulary of a `tokenizer.json`, with `end` after each document."""
    tokenizer = load_bpe(path)
    return Vocabulary(path, end, lambda texts: encode_documents(tokenizer, texts, end, dropped=()))


def prepare_corpus(
    folders: AssetFolders, settings: FixSettings, keys: Keys, vocabulary: Vocabulary, report: ReportProgress
) -> CorpusRecord:
    """Fill both folders with token files; does nothing where they are there and whole.

    Raises:
        AssetsMissing: a corpus cannot be had, or the training text is not the one that the shipped weights know.
    """
    recipe = hashlib.sha256(msgspec.json.encode((settings, keys)) + vocabulary.file.read_bytes()).hexdigest()
    if (present := _present(folders, recipe)) is not None:
        report(Progress(stage="the token files are there and whole", fraction=1.0))
        return present
    report(Progress(stage="reading the corpus", fraction=0.05))
    documents, groups = _documents(settings, folders.protected / "downloads")
    report(Progress(stage="dividing the documents", fraction=0.2))
    parts = split_documents(documents, groups, _draws(settings, keys))
    files: dict[str, str] = {}
    density: dict[str, float] = {}
    for number, (name, side) in enumerate(PARTS.items()):
        report(Progress(stage=f"writing {name} tokens", fraction=0.4 + 0.15 * number))
        texts = [document.text for document in parts[name]]
        tokens = list(vocabulary.encode(texts))
        files[name] = write_whole(_place(folders, side) / f"{name}.npy", token_file_bytes(tokens))
        density[name] = sum(len(text.encode()) for text in texts) / max(1, sum(map(len, tokens)))
    if settings.train_sha256 and files["train"] != settings.train_sha256:
        raise AssetsMissing(
            f"the training tokens have SHA-256 {files['train']}, but the shipped weights were trained on "
            f"{settings.train_sha256}: with another division of the documents they may have seen held-out text. "
            "Use the released package with its own keys, or train minigpt again (see environments/kit/minigpt/train.py)"
        )
    target = folders.public / "tokenizer.json"
    if vocabulary.file != target:
        shutil.copyfile(vocabulary.file, target)
    record = CorpusRecord(recipe, files, density)
    write_whole(folders.protected / RECORD, msgspec.json.format(msgspec.json.encode(record)))
    return record


def read_record(folders: AssetFolders) -> CorpusRecord:
    """Return what `prepare_corpus` made.

    Raises:
        AssetsMissing: it has not run.
    """
    path = folders.protected / RECORD
    try:
        return msgspec.json.decode(path.read_bytes(), type=CorpusRecord)
    except (OSError, msgspec.MsgspecError) as error:
        raise AssetsMissing(
            f"{path} cannot be read ({error}); run `rebench-workbench env prepare` again"
        ) from error


def _present(folders: AssetFolders, recipe: str) -> CorpusRecord | None:
    try:
        record = read_record(folders)
    except AssetsMissing:
        return None
    whole = record.made_from == recipe and (folders.public / "tokenizer.json").is_file()
    for name, digest in record.files.items():
        path = _place(folders, PARTS[name]) / f"{name}.npy"
        whole = whole and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest
    return record if whole else None


def _place(folders: AssetFolders, side: str) -> Path:
    return folders.public if side == "public" else folders.protected


def _draws(settings: FixSettings, keys: Keys) -> dict[str, Draw]:
    return {
        "scoring": Draw(settings.scoring_share, keys.scoring_seed),
        "control": Draw(settings.control_share, keys.control_seed),
        "validation": Draw(settings.validation_share, keys.validation_seed),
    }


def _documents(settings: FixSettings, downloads: Path) -> tuple[list[Document], list[list[str]]]:
    """Return every document and which of them must stay on one side."""
    sources = load_sources()
    documents: list[Document] = []
    groups: list[list[str]] = []
    for corpus in settings.corpora:
        if corpus in sources.sources:
            found = load_documents(corpus, sources)
            groups += duplicate_groups(found)
        elif corpus == "hub":
            found = hub_documents(settings.hub_dataset, settings.hub_split, settings.hub_documents)
            groups += [[document.name] for document in found]
        else:
            found = wheel_documents(corpus, downloads, sources)
            groups += [[document.name] for document in found]
        documents += found
    return documents, groups
