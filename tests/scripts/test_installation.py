"""When the set-up installs, what it asks pip for, when it does nothing, and how it recovers."""

import sys
from pathlib import Path

import pytest

from scripts.bootstrap import installation as subject
from scripts.bootstrap.installation import OLDEST, TORCH, Installation, install, torch_for_this_machine
from scripts.bootstrap.talk import Stopped

PIP = """#!/bin/sh
case "$*" in *importlib*) exit 1;; *--version*) exit 0;; esac
echo "$@" >>calls
cat said
exit $(cat code)
"""
NO_CPU_BUILD = (
    f"ERROR: Could not find a version that satisfies the requirement {TORCH}+cpu (from versions: 2.13.0)\n"
)
NO_NETWORK = NO_CPU_BUILD.replace("2.13.0)", "none)")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """A checkout whose virtual environment's Python is a script: it writes down what is asked of pip, and answers."""
    for name in ("REBENCH_VENV", "REBENCH_SYSTEM_PACKAGES", "REBENCH_TORCH", "REBENCH_TORCH_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr(subject, "NVIDIA_TRACES", ())
    place = Installation.of(tmp_path)
    (place.venv / "bin").mkdir(parents=True)
    (place.venv / "pyvenv.cfg").touch()
    Path(place.program("python")).write_text(PIP)
    Path(place.program("python")).chmod(0o755)
    (tmp_path / "scripts").mkdir()
    for name, text in {"scripts/locked.txt": "a==1\n", "pyproject.toml": "", "said": "", "code": "0"}.items():
        (tmp_path / name).write_text(text)
    return place


def calls(place: Installation) -> list[str]:
    return (place.root / "calls").read_text().splitlines()


def test_torch_comes_first_and_everything_in_the_locked_releases(checkout: Installation) -> None:
    install(checkout, "environments")
    torch, rest = calls(checkout)
    assert torch.endswith(f"--constraint {checkout.root}/scripts/locked.txt {TORCH}+cpu")
    assert rest.endswith(
        f"--constraint {checkout.root}/scripts/locked.txt --editable {checkout.root}[environments]"
    )


def test_the_second_time_installs_nothing(checkout: Installation) -> None:
    install(checkout, "environments")
    before = calls(checkout)
    install(checkout, "environments")
    assert calls(checkout) == before


def test_the_tools_for_testing_include_what_a_session_needs(checkout: Installation) -> None:
    install(checkout, "dev")
    assert checkout.is_current("environments")


@pytest.mark.parametrize("changed", ["pyproject.toml", "scripts/locked.txt"])
def test_changed_requirements_or_releases_install_again(checkout: Installation, changed: str) -> None:
    install(checkout, "environments")
    (checkout.root / changed).write_text("another")
    assert not checkout.is_current("environments")
    install(checkout, "environments")
    assert len(calls(checkout)) == 4


def test_changed_requirements_without_a_network_go_on_with_what_is_there(
    checkout: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    install(checkout, "environments")
    (checkout.root / "pyproject.toml").write_text("another")
    (checkout.root / "code").write_text("1")
    install(checkout, "environments")
    assert "Going on with what was installed before" in capsys.readouterr().err
    assert not checkout.is_current("environments"), "the next time tries again"


@pytest.mark.parametrize(
    ("said", "remedy"), [(NO_NETWORK, "needs a network"), (NO_CPU_BUILD, "REBENCH_TORCH_INDEX=URL")]
)
def test_a_first_installation_that_fails_says_what_pip_said_and_what_to_do(
    checkout: Installation, said: str, remedy: str
) -> None:
    (checkout.root / "said").write_text(said)
    (checkout.root / "code").write_text("1")
    with pytest.raises(Stopped, match=remedy) as stopped:
        install(checkout, "environments")
    assert said.strip() in str(stopped.value)
    assert checkout.log.read_text() == said
    assert not checkout.marker("environments").exists()


def test_of_what_pip_says_the_reader_gets_the_large_downloads(
    checkout: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout.root / "said").write_text(
        "Collecting idna\n  Downloading idna.whl (70 kB)\n  Downloading pyarrow-26.whl (55.0 MB)\n"
    )
    install(checkout, "environments")
    said = capsys.readouterr().err
    assert "Downloading pyarrow-26.whl (55.0 MB)" in said
    assert "idna" not in said


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({}, [f"{TORCH}+cpu"]),
        ({"REBENCH_ALLOW_CUDA": "1"}, [TORCH]),
        ({"REBENCH_TORCH": "torch==2.9.1"}, ["torch==2.9.1"]),
        ({"REBENCH_TORCH_INDEX": "https://wheels.example"}, ["--index-url", "https://wheels.example", TORCH]),
    ],
)
def test_without_a_gpu_a_cuda_build_of_torch_is_taken_only_when_asked_for(
    checkout: Installation, variables: dict[str, str], asked: list[str]
) -> None:
    assert torch_for_this_machine(variables) == asked


def test_with_an_nvidia_driver_torch_comes_as_the_index_has_it(
    checkout: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "NVIDIA_TRACES", (checkout.root,))
    assert torch_for_this_machine({}) == [TORCH]


@pytest.mark.slow
def test_a_virtual_environment_whose_python_is_gone_is_made_again(tmp_path: Path) -> None:
    place = Installation(tmp_path, tmp_path / "venv")
    (place.venv / "bin").mkdir(parents=True)
    (place.venv / "pyvenv.cfg").touch()
    Path(place.program("python")).symlink_to(tmp_path / "no-such-python")
    subject._make_venv(place)
    assert place.works()


def test_a_folder_that_is_no_virtual_environment_is_never_deleted(
    checkout: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = checkout.root / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    monkeypatch.setenv("REBENCH_VENV", str(precious))
    with pytest.raises(Stopped, match="no virtual environment"):
        install(Installation.of(checkout.root), "environments")
    assert (precious / "thesis.tex").exists()


def test_the_oldest_releases_have_a_virtual_environment_of_their_own(checkout: Installation) -> None:
    assert Installation.of(checkout.root, OLDEST).venv != checkout.venv


def test_what_is_opened_finds_the_virtual_environments_python_first(
    checkout: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("PYTHONPATH", sys.prefix)
    assert checkout.environment()["PATH"] == f"{checkout.venv}/bin:/usr/bin"
    assert "PYTHONPATH" not in checkout.environment()
