"""Makes the starter's weights for profiles that ship none, by running the starter's own training from scratch."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from environments.contract import AssetsMissing, Progress, ReportProgress
from environments.restricted_mlm.settings import MlmSettings

WEIGHTS = "model.safetensors"
RECORD = "first-weights.txt"


def train_first_weights(starter: Path, public: Path, settings: MlmSettings, report: ReportProgress) -> None:
    """Leave `model.safetensors` in `public`; does nothing if this recipe left it there before.

    Raises:
        AssetsMissing: the training did not end well.
    """
    recipe = (
        f"{settings.first_weights_tokens} tokens, {settings.vocabulary} entries, length {settings.length}\n"
    )
    record = public / RECORD
    if (public / WEIGHTS).is_file() and record.is_file() and record.read_text() == recipe:
        return
    with tempfile.TemporaryDirectory(prefix="restricted-mlm-") as name:
        folder = Path(name)
        for file in ("model.py", "train.py"):
            shutil.copyfile(starter / file, folder / file)
        shutil.copyfile(public / "task.json", folder / "task.json")
        (folder / "data").symlink_to(public, target_is_directory=True)
        command = [sys.executable, "train.py", "--fresh", "--tokens", str(settings.first_weights_tokens)]
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process:
            tail: list[str] = []
            for line in process.stdout or ():
                tail = [*tail[-20:], line]
                if step := re.match(r"step (\d+)/(\d+)", line):
                    report(
                        Progress(stage="training the starting weights", fraction=int(step[1]) / int(step[2]))
                    )
        if process.returncode != 0 or not (folder / WEIGHTS).is_file():
            raise AssetsMissing(
                f"training the starting weights failed (exit {process.returncode}):\n{''.join(tail)}"
            )
        part = public / (WEIGHTS + ".part")
        shutil.copyfile(folder / WEIGHTS, part)
        part.replace(public / WEIGHTS)
    record.write_text(recipe)
