"""The corpus is divided by document, once, and as the shipped weights expect."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from environments.contract import AssetFolders, AssetsMissing
from environments.fix_embedding.settings import FixSettings, Keys, decode_settings
from environments.kit import token_corpus as corpus
from environments.kit.sources import Document
from tests.environments.fix_embedding.models import FOUND, texts
from tests.environments.fix_embedding_small import Small, quiet

KEYS = Keys(scoring_seed=1, control_seed=2, validation_seed=3, rows_seed=4, permutation_seed=5)


def made(folders: AssetFolders, settings: FixSettings) -> corpus.CorpusRecord:
    shipped = corpus.Vocabulary.shipped("bpe4096.json")
    wanted = settings.train_sha256
    return corpus.prepare_token_corpus(folders, settings, KEYS, lambda _: shipped, quiet, train_sha256=wanted)


def test_prepare_divides_by_document_and_keeps_held_out_parts_apart(small: Small) -> None:
    record = corpus.read_corpus_record(small.folders)
    assert record.files["train"] == FOUND.spec.profile("cpu").settings["train_sha256"]
    assert all(4 < density < 4.5 for density in record.text_bytes_per_token.values())
    assert sorted(path.name for path in small.folders.public.glob("*.npy")) == ["train.npy", "validation.npy"]
    assert small.folders.protected.stat().st_mode & 0o077 == 0


def test_another_division_of_the_documents_is_refused_for_the_shipped_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [Document(str(number), text) for number, text in enumerate(texts(120))]
    monkeypatch.setattr(corpus, "load_documents", lambda name, sources: documents)
    monkeypatch.setattr(corpus, "duplicate_groups", lambda found: [[document.name] for document in found])
    settings = decode_settings(FOUND.spec.profile("cpu").settings)
    folders = AssetFolders(public=tmp_path / "public", protected=tmp_path / "protected")
    with pytest.raises(AssetsMissing, match="may have seen held-out text"):
        made(folders, settings)


def test_preparing_again_does_nothing_and_mends_what_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [Document(str(number), text) for number, text in enumerate(texts(120))]
    monkeypatch.setattr(corpus, "load_documents", lambda name, sources: documents)
    monkeypatch.setattr(corpus, "duplicate_groups", lambda found: [[document.name] for document in found])
    settings = msgspec.structs.replace(decode_settings(FOUND.spec.profile("cpu").settings), train_sha256="")
    folders = AssetFolders(public=tmp_path / "public", protected=tmp_path / "protected")
    first = made(folders, settings)
    written = (folders.protected / "scoring.npy").stat().st_mtime_ns
    assert made(folders, settings) == first
    assert (folders.protected / "scoring.npy").stat().st_mtime_ns == written
    (folders.protected / "scoring.npy").write_bytes(b"torn")
    assert made(folders, settings) == first
    assert (folders.protected / "scoring.npy").stat().st_size > 100
