"""Sealed archives open with their key, with nothing else, and never write outside their folder."""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from pathlib import Path

import pytest

from environments import sealing
from environments.contract import CANARY, SealBroken
from environments.sealing import PUBLIC_PASSPHRASE, open_sealed, passphrase_from, seal, unseal

KEY = "a key for tests"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "plain"
    (made / "deep").mkdir(parents=True)
    (made / "solution.py").write_text("print('the solution')\n")
    (made / "deep" / "weights.bin").write_bytes(bytes(range(256)))
    return made


def forged(archive: Path, *members: tarfile.TarInfo) -> Path:
    """Seal a tar that `seal` would never write."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    plain = lzma.compress(out.getvalue())
    header = (
        sealing._MAGIC
        + b'{"kdf": "scrypt", "n": 2, "nonce": "'
        + b"00" * 12
        + b'", "p": 1, "r": 8, "salt": "00"}\n'
    )
    archive.write_bytes(header + sealing._cipher(KEY, b"\0", 2, 8, 1).encrypt(b"\0" * 12, plain, header))
    return archive


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, link, 1 if kind == tarfile.REGTYPE else 0
    return made


def test_what_was_sealed_comes_back_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    seal(folder, tmp_path / "a.sealed", KEY)
    assert open_sealed(tmp_path / "a.sealed", KEY) == {
        "deep/weights.bin": bytes(range(256)),
        "solution.py": b"print('the solution')\n",
    }


def test_the_contents_are_not_readable_but_the_canary_is(folder: Path, tmp_path: Path) -> None:
    seal(folder, tmp_path / "a.sealed", KEY)
    sealed = (tmp_path / "a.sealed").read_bytes()
    assert CANARY.encode() in sealed
    assert b"solution" not in sealed


def test_sealing_the_same_files_again_changes_nothing(folder: Path, tmp_path: Path) -> None:
    seal(folder, tmp_path / "a.sealed", KEY)
    (folder / "solution.py").touch()
    seal(folder, tmp_path / "b.sealed", KEY)
    assert (tmp_path / "a.sealed").read_bytes() == (tmp_path / "b.sealed").read_bytes()


def test_other_contents_or_another_key_use_another_nonce(folder: Path, tmp_path: Path) -> None:
    for name, key in (("a", KEY), ("b", "another")):
        seal(folder, tmp_path / name, key)
    (folder / "solution.py").write_text("changed")
    seal(folder, tmp_path / "c", KEY)
    headers = {(tmp_path / name).read_bytes().split(b"\n")[1] for name in "abc"}
    assert len(headers) == 3


def test_another_key_is_refused_in_words(folder: Path, tmp_path: Path) -> None:
    seal(folder, tmp_path / "a.sealed", KEY)
    with pytest.raises(SealBroken, match=r"does not open with the public default key.*REBENCH_WORKBENCH_KEY"):
        open_sealed(tmp_path / "a.sealed", PUBLIC_PASSPHRASE)


@pytest.mark.parametrize("position", [20, 120, -20])
def test_a_changed_byte_anywhere_is_noticed(folder: Path, tmp_path: Path, position: int) -> None:
    seal(folder, tmp_path / "a.sealed", KEY)
    content = bytearray((tmp_path / "a.sealed").read_bytes())
    content[position] ^= 1
    (tmp_path / "a.sealed").write_bytes(content)
    with pytest.raises(SealBroken):
        open_sealed(tmp_path / "a.sealed", KEY)


def test_every_shorter_file_is_refused_and_none_crashes(folder: Path, tmp_path: Path) -> None:
    seal(folder, tmp_path / "a.sealed", KEY)
    whole = (tmp_path / "a.sealed").read_bytes()
    header_end = whole.index(b"\n", 20) + 1
    for cut in (*range(header_end), header_end + 1, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:cut])
        with pytest.raises(SealBroken):
            open_sealed(tmp_path / "cut", KEY)


def test_a_missing_archive_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(SealBroken, match="cannot be read"):
        open_sealed(tmp_path / "none.sealed", KEY)


@pytest.mark.parametrize(
    "bad",
    [
        member("../outside"),
        member("/etc/outside"),
        member("a/../../outside"),
        member("link", tarfile.SYMTYPE, "/etc"),
        member("hard", tarfile.LNKTYPE, "../../secret"),
        member("device", tarfile.CHRTYPE),
        member("folder", tarfile.DIRTYPE),
    ],
    ids=lambda m: m.name,
)
def test_a_name_that_leads_outside_is_refused(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    archive = forged(tmp_path / "bad.sealed", member("good"), bad)
    with pytest.raises(SealBroken, match="no plain file inside it"):
        unseal(archive, tmp_path / "out", KEY)
    assert not (tmp_path / "outside").exists()


def test_a_link_already_in_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    seal(folder, tmp_path / "a.sealed", KEY)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "deep").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SealBroken, match="follow a link"):
        unseal(tmp_path / "a.sealed", tmp_path / "out", KEY)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_unsealed_files_are_the_owners_alone(folder: Path, tmp_path: Path) -> None:
    seal(folder, tmp_path / "a.sealed", KEY)
    written = unseal(tmp_path / "a.sealed", tmp_path / "out", KEY)
    assert {p.stat().st_mode & 0o777 for p in written} == {0o600}
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("problem", ["empty", "link", "no folder"])
def test_what_cannot_be_sealed_is_refused(tmp_path: Path, problem: str) -> None:
    place = tmp_path / "place"
    if problem != "no folder":
        place.mkdir()
    if problem == "link":
        (place / "link").symlink_to("/etc/passwd")
    with pytest.raises(SealBroken, match="cannot be sealed"):
        seal(place, tmp_path / "a.sealed", KEY)


def test_a_header_cannot_ask_for_unreasonable_work(folder: Path, tmp_path: Path) -> None:
    seal(folder, tmp_path / "a.sealed", KEY)
    content = (tmp_path / "a.sealed").read_bytes().replace(b'"n": 32768', b'"n": 1073741824')
    (tmp_path / "a.sealed").write_bytes(content)
    with pytest.raises(SealBroken, match="unreasonable"):
        open_sealed(tmp_path / "a.sealed", KEY)


def test_the_key_comes_from_the_variable_then_the_file_then_the_public_default(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file\n")
    named = {"REBENCH_WORKBENCH_KEY_FILE": str(tmp_path / "key")}
    assert passphrase_from({"REBENCH_WORKBENCH_KEY": "direct", **named}) == "direct"
    assert passphrase_from(named) == "from a file"
    assert passphrase_from({}) == PUBLIC_PASSPHRASE


def test_a_named_key_file_that_is_missing_or_empty_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    for name, says in (("none", "cannot be read"), ("empty", "is empty")):
        with pytest.raises(SealBroken, match=says):
            passphrase_from({"REBENCH_WORKBENCH_KEY_FILE": str(tmp_path / name)})


def test_the_sealed_archives_of_the_project_open_with_the_public_key() -> None:
    root = Path(sealing.__file__).parent
    archives = [*root.glob("*/protected/*.sealed"), *Path(__file__).parent.glob("*/protected/*.sealed")]
    assert archives
    for archive in archives:
        files = open_sealed(archive, PUBLIC_PASSPHRASE)
        assert all(hashlib.sha256(content).digest() not in archive.read_bytes() for content in files.values())
