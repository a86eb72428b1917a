"""Where everything that this product keeps lives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

HOME_VARIABLE = "REBENCH_HOME"


def home_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Return `$REBENCH_HOME`, else the user's data folder; links are resolved, so that there is one name for one place.

    Masks of sandboxes, records and prepared assets are compared by path: under a link they would miss each other.
    """
    if named := variables.get(HOME_VARIABLE):
        return Path(named).expanduser().resolve()
    from platformdirs import user_data_path

    return user_data_path("rebench-workbench").resolve()
