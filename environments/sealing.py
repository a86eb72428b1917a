"""Seals folders that must stay out of crawls and training data: encrypted archives, opened with the operator's key."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import lzma
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from environments.contract import CANARY, SealBroken

PUBLIC_PASSPHRASE = "rebench-workbench: please do not train on this"  # noqa: S105  (public on purpose)
"""The default key. It keeps solutions out of crawls, not from a person who reads this line."""

KEY_VARIABLE = "REBENCH_WORKBENCH_KEY"
KEY_FILE_VARIABLE = "REBENCH_WORKBENCH_KEY_FILE"

_MAGIC = b"REBENCH-SEAL 1\n"
_SCRYPT = {"n": 2**15, "r": 8, "p": 1}
_LARGEST = 2**30


def passphrase_from(variables: Mapping[str, str]) -> str:
    """Return the key named by the process's `variables`, or the public default.

    Raises:
        SealBroken: the key file is named but cannot be read or is empty.
    """
    if key := variables.get(KEY_VARIABLE):
        return key
    if not (name := variables.get(KEY_FILE_VARIABLE)):
        return PUBLIC_PASSPHRASE
    try:
        key = Path(name).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SealBroken(
            f"the key file {name} named by {KEY_FILE_VARIABLE} cannot be read: {error}"
        ) from error
    if not key:
        raise SealBroken(f"the key file {name} named by {KEY_FILE_VARIABLE} is empty")
    return key


def seal(folder: Path, archive: Path, passphrase: str) -> None:
    """Encrypt every regular file below `folder` into `archive`.

    The same files under the same passphrase give the same bytes: salt and nonce are keyed digests of the content,
    so a re-sealed archive shows no change in version control and no nonce ever serves two contents.

    Raises:
        SealBroken: `folder` is not a folder, is empty, or holds something that is not a plain file.
    """
    content = lzma.compress(_pack(folder), preset=6)
    digest = hmac.new(passphrase.encode(), content, hashlib.sha512).digest()
    header = (
        _MAGIC
        + json.dumps(
            {
                "canary": CANARY,
                "kdf": "scrypt",
                **_SCRYPT,
                "salt": digest[:16].hex(),
                "nonce": digest[16:28].hex(),
            },
            sort_keys=True,
        ).encode()
        + b"\n"
    )
    sealed = header + _cipher(passphrase, digest[:16], **_SCRYPT).encrypt(digest[16:28], content, header)
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_name(archive.name + ".partial")
    partial.write_bytes(sealed)
    partial.replace(archive)


def open_sealed(archive: Path, passphrase: str) -> dict[str, bytes]:
    """Return {relative path: content} of a sealed archive; nothing touches the disk.

    Raises:
        SealBroken: absent, not ours, damaged, another key, or a name in it leads outside.
    """
    header, parameters, body = _split(archive)
    content = _decrypt(archive, header, parameters, body, passphrase)
    try:
        with tarfile.open(fileobj=io.BytesIO(lzma.decompress(content)), mode="r:") as tar:
            return {_safe_name(m, archive): _member(tar, m) for m in tar.getmembers()}
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise SealBroken(f"{archive} opened but its contents are damaged: {error}") from error


def unseal(archive: Path, folder: Path, passphrase: str) -> list[Path]:
    """Write a sealed archive's files below `folder` (0700, files 0600) and return their paths.

    Raises:
        SealBroken: as `open_sealed`, or a link in `folder` leads a file outside.
    """
    return write_below(open_sealed(archive, passphrase), folder, archive)


def write_below(files: Mapping[str, bytes], folder: Path, archive: Path) -> list[Path]:
    """Write what `archive` held below `folder` (0700, files 0600) and return the paths.

    Raises:
        SealBroken: a link in `folder` leads a file outside.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    written = []
    for name, content in sorted(files.items()):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.parent.resolve().is_relative_to(folder.resolve()) or target.is_symlink():
            raise SealBroken(f"{archive}: writing {name} below {folder} would follow a link outside it")
        partial = target.with_name(target.name + ".partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        partial.replace(target)
        written.append(target)
    return written


def _pack(folder: Path) -> bytes:
    """Return a tar of `folder` that depends on names and contents only."""
    if not folder.is_dir():
        raise SealBroken(f"{folder} cannot be sealed: it is not a folder")
    out = io.BytesIO()
    names = sorted(
        p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir() or p.is_symlink()
    )
    if not names:
        raise SealBroken(f"{folder} cannot be sealed: it holds no files")
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            path = folder / name
            if path.is_symlink() or not path.is_file():
                raise SealBroken(f"{path} cannot be sealed: only plain files can")
            content = path.read_bytes()
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(content), 0o600, 0
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def _split(archive: Path) -> tuple[bytes, dict[str, object], bytes]:
    try:
        sealed = archive.read_bytes()
    except OSError as error:
        raise SealBroken(f"the sealed archive {archive} cannot be read: {error}") from error
    if not sealed.startswith(_MAGIC):
        raise SealBroken(
            f"{archive} is not a sealed archive of this project (or a newer kind): its first line differs"
        )
    end = sealed.find(b"\n", len(_MAGIC)) + 1
    try:
        parameters = json.loads(sealed[len(_MAGIC) : end])
    except ValueError as error:
        raise SealBroken(f"{archive}: its header is damaged: {error}") from error
    if not end or not isinstance(parameters, dict):
        raise SealBroken(f"{archive}: its header is damaged")
    return sealed[:end], parameters, sealed[end:]


def _decrypt(
    archive: Path, header: bytes, parameters: dict[str, object], body: bytes, passphrase: str
) -> bytes:
    from cryptography.exceptions import InvalidTag

    try:
        n, r, p = (int(str(parameters[key])) for key in "nrp")
        salt, nonce = (bytes.fromhex(str(parameters[key])) for key in ("salt", "nonce"))
        if n > 2**20 or n * r * p > 2**24 or n & (n - 1) or parameters["kdf"] != "scrypt":
            raise ValueError("unreasonable key derivation")
    except (KeyError, ValueError) as error:
        raise SealBroken(f"{archive}: its header is damaged: {error}") from error
    try:
        return _cipher(passphrase, salt, n, r, p).decrypt(nonce, body, header)
    except InvalidTag:
        known = "the public default key" if passphrase == PUBLIC_PASSPHRASE else "the key given"
        raise SealBroken(
            f"{archive} does not open with {known}: it was sealed with another one or is damaged. "
            f"Set {KEY_VARIABLE}, or {KEY_FILE_VARIABLE} to a file that holds the key"
        ) from None
    except ValueError as error:
        raise SealBroken(f"{archive}: its header is damaged: {error}") from error


class _Cipher:
    """AES-256-GCM under a key derived by scrypt; `cryptography` is imported only when something is sealed or opened."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._gcm = AESGCM(key)

    def encrypt(self, nonce: bytes, content: bytes, clear: bytes) -> bytes:
        return self._gcm.encrypt(nonce, content, clear)

    def decrypt(self, nonce: bytes, sealed: bytes, clear: bytes) -> bytes:
        return self._gcm.decrypt(nonce, sealed, clear)


def _cipher(passphrase: str, salt: bytes, n: int, r: int, p: int) -> _Cipher:
    return _Cipher(
        hashlib.scrypt(
            passphrase.encode(), salt=salt, n=n, r=r, p=p, maxmem=128 * r * (n + p) + 2**20, dklen=32
        )
    )


def _safe_name(member: tarfile.TarInfo, archive: Path) -> str:
    """Return the member's name if it is a plain file that stays inside."""
    path = PurePosixPath(member.name)
    plain = member.isreg() and 0 <= member.size <= _LARGEST
    if not plain or path.is_absolute() or not path.parts or ".." in path.parts or "\0" in member.name:
        raise SealBroken(f"{archive} holds {member.name!r}, which is no plain file inside it: refused")
    return path.as_posix()


def _member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None  # _safe_name let only regular files through
    return file.read()
