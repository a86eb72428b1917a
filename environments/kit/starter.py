"""The starter files that an environment hands out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from environments.contract import AssetsMissing, PrepareRequest


def all_present(files: Mapping[str, Path], slug: str, request: PrepareRequest) -> Mapping[str, Path]:
    """Return `files` (work-tree path -> source), every one of which must exist.

    Raises:
        AssetsMissing: names those that do not, and the command that makes them.
    """
    if absent := [str(path) for path in files.values() if not path.is_file()]:
        raise AssetsMissing(
            f"{', '.join(absent)} missing; run `rebench-workbench env prepare {slug} --profile {request.profile_name}`"
        )
    return files
