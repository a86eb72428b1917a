"""A profile's settings table and an environment's sealed keys, decoded strictly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from environments.contract import AssetsMissing, SealBroken, SpecificationInvalid
from environments.kit.tokens import write_whole
from environments.sealing import open_sealed

T = TypeVar("T")
FILE = "keys.json"


def decode_table(slug: str, settings: Mapping[str, Any], kind: type[T]) -> T:
    """Return a profile's `settings` table as a `kind`.

    Raises:
        SpecificationInvalid: a key is missing, unknown or of another type; names it.
    """
    try:
        return msgspec.convert(dict(settings), kind)
    except msgspec.ValidationError as error:
        raise SpecificationInvalid(f"{slug}: the profile's settings do not decode: {error}") from error


def decoder(slug: str, kind: type[T]) -> Callable[[Mapping[str, Any]], T]:
    """Return `decode_table` for one environment."""
    return lambda settings: decode_table(slug, settings, kind)


class SealedKeys(Generic[T]):
    """What an environment keeps sealed; `prepare` opens it once and leaves it beside the protected files."""

    def __init__(self, environment: Path, kind: type[T]) -> None:
        self._slug = environment.name
        self._archive = environment / "protected" / "keys.sealed"
        self._kind = kind

    def open(self, passphrase: str) -> T:
        """Return the keys from the archive.

        Raises:
            SealBroken: it does not open, or does not hold them.
        """
        try:
            return msgspec.json.decode(open_sealed(self._archive, passphrase)[FILE], type=self._kind)
        except (KeyError, msgspec.MsgspecError) as error:
            raise SealBroken(f"{self._archive} opened but holds no usable {FILE}: {error}") from error

    def leave(self, keys: T, protected: Path) -> None:
        """Write the keys for the scorer."""
        write_whole(protected / FILE, msgspec.json.encode(keys))

    def read(self, protected: Path) -> T:
        """Return what `prepare` left.

        Raises:
            AssetsMissing: it is not there or does not decode.
        """
        path = protected / FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=self._kind)
        except (OSError, msgspec.MsgspecError) as error:
            raise AssetsMissing(
                f"{path} cannot be read ({error}); run `rebench-workbench env prepare {self._slug}` "
                f"with --profile {protected.parent.name}"
            ) from error
