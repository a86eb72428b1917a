"""The operator's signature under a closed record: whoever changes the log later cannot make it again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from sessions.record.events import SessionClosed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_NAME = "signing.key"


def own_key(home: Path) -> Path:
    """Return the operator's private key, made on first use and readable by its owner alone."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = home / KEY_NAME
    with contextlib.suppress(FileExistsError):
        home.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(Ed25519PrivateKey.generate().private_bytes_raw())
    return path


def public_key(private: Path) -> str:
    """Return the public half in hex."""
    return _load(private).public_key().public_bytes_raw().hex()


def sign(private: Path, session: str, prev: str, body: SessionClosed) -> str:
    """Return the signature, in hex, over the closing event and, through `prev`, all that came before it."""
    return _load(private).sign(_message(session, prev, body)).hex()


def holds(public: str, session: str, prev: str, body: SessionClosed) -> bool:
    """Whether the closing event bears the signature of `public`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(body.signature or ""), _message(session, prev, body))
    except (InvalidSignature, ValueError):
        return False
    return True


def _load(private: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(private.read_bytes())


def _message(session: str, prev: str, body: SessionClosed) -> bytes:
    unsigned = replace(body, signature=None)
    return b"\n".join((session.encode(), prev.encode(), msgspec.json.encode(unsigned)))
