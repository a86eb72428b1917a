"""Settings and sealed keys of any environment: decoded strictly, and every refusal says what was tried and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.contract import AssetsMissing, SealBroken, SpecificationInvalid, Value
from environments.kit.settings import SealedKeys, decode_table
from environments.sealing import seal


class Seeds(Value, frozen=True, forbid_unknown_fields=True):
    rows: int


@pytest.fixture
def sealed(tmp_path: Path) -> SealedKeys[Seeds]:
    return sealed_as(tmp_path, '{"rows": 7}')


def sealed_as(folder: Path, text: str, name: str = "keys.json") -> SealedKeys[Seeds]:
    (folder / "plain").mkdir()
    (folder / "plain" / name).write_text(text)
    seal(folder / "plain", folder / "mine" / "protected" / "keys.sealed", "key")
    return SealedKeys(folder / "mine", Seeds)


def test_keys_go_from_the_archive_to_the_scorer(sealed: SealedKeys[Seeds], tmp_path: Path) -> None:
    protected = tmp_path / "cpu" / "protected"
    sealed.leave(sealed.open("key"), protected)
    assert sealed.read(protected) == Seeds(rows=7)


def test_another_key_does_not_open_them(sealed: SealedKeys[Seeds]) -> None:
    with pytest.raises(SealBroken, match="does not open"):
        sealed.open("another")


@pytest.mark.parametrize("text", ["{}", '{"rows": "x"}', '{"rows": 1, "more": 2}', "nonsense"])
def test_an_archive_with_other_contents_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SealBroken, match=r"holds no usable keys\.json"):
        sealed_as(tmp_path, text).open("key")


def test_an_archive_without_them_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SealBroken, match=r"holds no usable keys\.json"):
        sealed_as(tmp_path, "{}", "other.json").open("key")


@pytest.mark.parametrize("left", [None, "", '{"rows": null}'])
def test_keys_that_prepare_did_not_leave_whole_say_what_to_run(
    sealed: SealedKeys[Seeds], tmp_path: Path, left: str | None
) -> None:
    protected = tmp_path / "gpu" / "protected"
    protected.mkdir(parents=True)
    if left is not None:
        (protected / "keys.json").write_text(left)
    with pytest.raises(AssetsMissing, match="env prepare mine` with --profile gpu"):
        sealed.read(protected)


@pytest.mark.parametrize(
    ("table", "names"), [({}, "rows"), ({"rows": "7"}, "rows"), ({"rows": 7, "hue": 1}, "hue")]
)
def test_a_table_that_does_not_decode_names_the_key(table: dict[str, object], names: str) -> None:
    with pytest.raises(SpecificationInvalid, match=rf"mine: the profile's settings do not decode: .*{names}"):
        decode_table("mine", table, Seeds)
    assert decode_table("mine", {"rows": 7}, Seeds) == Seeds(rows=7)
