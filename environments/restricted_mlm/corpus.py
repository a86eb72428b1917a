"""Makes the token files of a profile: train and validation for the participant, scoring and control for the scorer."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from environments.contract import AssetsMissing, PrepareRequest, Progress, ReportProgress
from environments.kit.bpe import encode_documents, load_bpe, train_bpe
from environments.kit.hub import hub_documents, hub_tokenizer
from environments.kit.sources import Document, derived_file, load_documents, load_sources, wheel_documents
from environments.kit.splits import Draw, duplicate_groups, split_documents
from environments.kit.tokens import token_file_bytes, write_whole
from environments.restricted_mlm.settings import Keys, MlmSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PUBLIC_PARTS = ("train", "validation")
PROTECTED_PARTS = ("scoring", "control")
MANIFEST = "manifest.json"


class Manifest(msgspec.Struct, frozen=True):
    """What one asset folder holds, so that a second `prepare` has nothing to do and damage is seen."""

    made_from: str
    """Digest of the sources, the settings and the keys."""
    files: dict[str, str]
    """File name -> SHA-256."""
    text_bytes_per_token: dict[str, float] = {}
    """Token file -> bytes of text for each of its tokens."""


def prepare_corpus(
    request: PrepareRequest, settings: MlmSettings, keys: Keys, report: ReportProgress
) -> None:
    """Fill both asset folders with token files; does nothing where they are there and whole."""
    recipe = hashlib.sha256(msgspec.json.encode((settings, keys))).hexdigest()
    folders = {request.assets.public: PUBLIC_PARTS, request.assets.protected: PROTECTED_PARTS}
    if all(_is_whole(folder, recipe) for folder in folders):
        report(Progress(stage="the token files are there and whole", fraction=1.0))
        return
    report(Progress(stage="reading the corpus", fraction=0.05))
    documents, groups = _documents(settings, request.assets.protected / "downloads")
    report(Progress(stage="dividing the documents", fraction=0.2))
    parts = split_documents(
        documents,
        groups,
        {
            "scoring": Draw(settings.scoring_share, keys.scoring_seed),
            "control": Draw(settings.control_share, keys.control_seed),
            "validation": Draw(settings.validation_share, keys.validation_seed),
        },
    )
    report(Progress(stage="making the vocabulary", fraction=0.4))
    tokenizer, vocabulary_file = _vocabulary(request, settings, parts["train"])
    for folder, names in folders.items():
        files: dict[str, str] = {}
        density: dict[str, float] = {}
        for name in names:
            report(Progress(stage=f"writing {name} tokens", fraction=0.5 + 0.1 * len(files)))
            texts = [document.text for document in parts[name]]
            tokens = list(encode_documents(tokenizer, texts, settings.end_token, [settings.mask_token]))
            files[f"{name}.npy"] = write_whole(folder / f"{name}.npy", token_file_bytes(tokens))
            density[f"{name}.npy"] = sum(len(t.encode()) for t in texts) / max(1, sum(map(len, tokens)))
        if names == PUBLIC_PARTS:
            files |= _write_public_extras(folder, settings, vocabulary_file, density)
        else:
            folder.chmod(0o700)
        manifest = Manifest(made_from=recipe, files=files, text_bytes_per_token=density)
        write_whole(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    report(Progress(stage="the token files are written", fraction=1.0))


def read_manifest(folder: Path) -> Manifest:
    """Return what `folder` holds.

    Raises:
        AssetsMissing: it was never filled.
    """
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise AssetsMissing(
            f"{folder} is not prepared ({error}); run `rebench-workbench env prepare restricted_mlm`"
        ) from error


def _is_whole(folder: Path, recipe: str) -> bool:
    try:
        manifest = read_manifest(folder)
    except AssetsMissing:
        return False
    return manifest.made_from == recipe and all(
        (folder / name).is_file() and hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        for name, digest in manifest.files.items()
    )


def _documents(settings: MlmSettings, downloads: Path) -> tuple[list[Document], list[list[str]]]:
    """Return every document and which of them must stay on one side."""
    sources = load_sources()
    documents: list[Document] = []
    groups: list[list[str]] = []
    for corpus in settings.corpora:
        if corpus in sources.sources:
            found = load_documents(corpus, sources)
            groups += duplicate_groups(found)
        else:
            found = (
                hub_documents(settings.hub_dataset, settings.hub_split, settings.hub_documents)
                if corpus == "hub"
                else wheel_documents(corpus, downloads, sources)
            )
            groups += [[document.name] for document in found]
        documents += found
    return documents, groups


def _vocabulary(
    request: PrepareRequest, settings: MlmSettings, train: Sequence[Document]
) -> tuple[Tokenizer, Path]:
    """Return the tokenizer and its file: shipped, from the hub, or trained on the training documents."""
    if settings.vocabulary_file:
        path = derived_file(settings.vocabulary_file)
        return load_bpe(path), path
    path = request.assets.public / "tokenizer.json"
    if settings.hub_tokenizer:
        tokenizer = hub_tokenizer(settings.hub_tokenizer)
        write_whole(path, tokenizer.to_str().encode())
        return tokenizer, path
    tokenizer = train_bpe((document.text for document in train), settings.vocabulary)
    write_whole(path, tokenizer.to_str().encode())
    return load_bpe(path), path


def _write_public_extras(
    folder: Path, settings: MlmSettings, vocabulary_file: Path, density: Mapping[str, float]
) -> dict[str, str]:
    """Add the tokenizer and `task.json`, from which the starter reads the sizes."""
    target = folder / "tokenizer.json"
    if vocabulary_file != target:
        shutil.copyfile(vocabulary_file, target)
    task: dict[str, Any] = {
        "vocabulary": settings.vocabulary,
        "length": settings.length,
        "mask_token": settings.mask_token,
        "end_token": settings.end_token,
        "mask_share": settings.mask_share,
        "text_bytes_per_token": dict(density),
    }
    content = json.dumps(task, indent=2).encode() + b"\n"
    return {
        "tokenizer.json": hashlib.sha256(target.read_bytes()).hexdigest(),
        "task.json": write_whole(folder / "task.json", content),
    }
