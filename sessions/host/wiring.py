"""What a host must know about this machine to serve a record: kept beside the log, never part of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from environments.contract import AssetFolders


class Wiring(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Places on this machine that the session's environment needs."""

    public: str
    """Prepared files that participants may read."""
    protected: str
    """Prepared files that only the scorer may read."""
    scratch: str
    """Where snapshots are checked out for scoring; emptied after each."""
    environment_folder: str | None = None
    """Set when the environment is not one of the installed ones."""
    participant_user: str | None = None
    log_copy: str | None = None
    """A second place the log is written to as it grows."""

    @property
    def assets(self) -> AssetFolders:
        return AssetFolders(public=Path(self.public), protected=Path(self.protected))

    @property
    def environment_place(self) -> Path | None:
        return None if self.environment_folder is None else Path(self.environment_folder)

    def write(self, path: Path) -> None:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self)))

    @classmethod
    def read(cls, path: Path) -> Wiring:
        return msgspec.json.decode(path.read_bytes(), type=cls)
