"""scripts/start, test and check, as somebody on a bare machine meets them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A path with the shell's own tools and no Python and no git."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "dirname", "head", "cat"):
        found = shutil.which(tool)
        assert found
        (folder / tool).symlink_to(found)
    return folder


def run(script: str, path: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(ROOT / "scripts" / script), *arguments],
        env={"PATH": str(path), "HOME": str(path)} | environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def fake_python(folder: Path, name: str, version: str) -> None:
    (folder / name).write_text(
        f'#!/bin/sh\ntest "$1" = --version && echo "Python {version}" && exit 0\nexit 1\n'
    )
    (folder / name).chmod(0o755)


def test_an_old_python_is_named_with_what_to_do(bare: Path) -> None:
    fake_python(bare, "python3", "3.9.2")
    done = run("start", bare)
    assert done.returncode == 3
    assert "needs Python 3.11, 3.12 or 3.13" in done.stderr
    assert "python3: Python 3.9.2" in done.stderr
    assert "REBENCH_PYTHON=" in done.stderr


def test_no_python_at_all_is_said_in_words(bare: Path) -> None:
    done = run("test", bare)
    assert done.returncode == 3
    assert "found none" in done.stderr


def test_a_newer_python_beside_an_old_one_is_found(bare: Path) -> None:
    fake_python(bare, "python3", "3.9.2")
    (bare / "python3.11").symlink_to(sys.executable)
    assert "git is not on the path" in run("start", bare).stderr


def test_missing_git_is_said_before_anything_is_installed(bare: Path, tmp_path: Path) -> None:
    done = run("start", bare, REBENCH_PYTHON=sys.executable, REBENCH_VENV=str(tmp_path / "venv"))
    assert done.returncode == 3
    assert "git is not on the path" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_check_before_any_set_up_says_what_to_run(tmp_path: Path) -> None:
    done = run(
        "check", Path(os.environ["PATH"]), REBENCH_PYTHON=sys.executable, REBENCH_VENV=str(tmp_path / "none")
    )
    assert done.returncode == 3
    assert "run scripts/test once" in done.stderr


def test_the_scripts_work_from_any_folder(bare: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(ROOT / "scripts" / "start")],
        cwd=tmp_path,
        env={"PATH": str(bare), "REBENCH_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert "git is not on the path" in done.stderr
