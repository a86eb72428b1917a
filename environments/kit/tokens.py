"""Writes and reads token files: one flat row of unsigned 16-bit numbers in NumPy's own format, checked by SHA-256."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from environments.contract import AssetsMissing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def token_file_bytes(documents: Iterable[Sequence[int] | NDArray[np.uint16]]) -> bytes:
    """Return the content of a token file holding `documents` one after another."""
    import numpy as np

    flat = np.concatenate([np.asarray(tokens, dtype="<u2") for tokens in documents])
    buffer = io.BytesIO()
    np.save(buffer, flat, allow_pickle=False)
    return buffer.getvalue()


def write_whole(path: Path, content: bytes) -> str:
    """Write `content` so that `path` holds all of it or does not exist, and return its SHA-256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)
    return hashlib.sha256(content).hexdigest()


def read_tokens(path: Path) -> NDArray[np.uint16]:
    """Return the tokens of `path` as one row, mapped rather than read.

    Raises:
        AssetsMissing: it is not a token file.
    """
    import numpy as np

    try:
        tokens: NDArray[np.uint16] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise AssetsMissing(
            f"{path} is not a token file ({error}); run `rebench-workbench env prepare` again"
        ) from error
    if tokens.ndim != 1 or tokens.dtype != np.dtype("<u2"):
        raise AssetsMissing(
            f"{path} holds {tokens.dtype} of shape {tokens.shape}, not a row of uint16; run `rebench-workbench env prepare` again"
        )
    return tokens
