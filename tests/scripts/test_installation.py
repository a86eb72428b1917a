"""When the set-up installs, when it does nothing, and how it recovers."""

import io
import shutil
import sys
from pathlib import Path

import pytest

from scripts.bootstrap import installation as subject
from scripts.bootstrap.installation import Installation, install
from scripts.bootstrap.pip import PipFailed
from scripts.bootstrap.talk import Stopped, Talk


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """A checkout whose virtual environment is this very Python, with installing replaced by counting."""
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    monkeypatch.delenv("REBENCH_VENV", raising=False)
    found = Installation.of(tmp_path)
    (found.venv / "bin").mkdir(parents=True)
    (found.venv / "pyvenv.cfg").touch()
    found.python.symlink_to(sys.executable)
    return found


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    times: list[str] = []
    monkeypatch.setattr(subject, "_fill", lambda _place, extra, _talk: times.append(extra))
    return times


def test_the_second_time_installs_nothing(checkout: Installation, filled: list[str], talk: Talk) -> None:
    install(checkout, "environments", talk)
    install(checkout, "environments", talk)
    assert filled == ["environments"]


def test_the_tools_for_testing_include_what_a_session_needs(
    checkout: Installation, filled: list[str], talk: Talk
) -> None:
    install(checkout, "dev", talk)
    install(checkout, "environments", talk)
    assert filled == ["dev"]


def test_changed_requirements_install_again(checkout: Installation, filled: list[str], talk: Talk) -> None:
    install(checkout, "environments", talk)
    (checkout.root / "pyproject.toml").write_text("[project]\ndependencies = []\n")
    install(checkout, "environments", talk)
    assert filled == ["environments", "environments"]


def test_a_damaged_marker_means_install_again(checkout: Installation, filled: list[str], talk: Talk) -> None:
    install(checkout, "environments", talk)
    (checkout.venv / subject.MARKER).write_text('{"key": ')
    install(checkout, "environments", talk)
    assert len(filled) == 2


def test_changed_requirements_without_a_network_go_on_with_what_is_there(
    checkout: Installation, filled: list[str], talk: Talk, said: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(checkout, "environments", talk)
    (checkout.root / "pyproject.toml").write_text("[project]\ndependencies = []\n")

    def unreachable(*_: object) -> None:
        raise PipFailed(["NameResolutionError"], checkout.log)

    monkeypatch.setattr(subject, "_fill", unreachable)
    install(checkout, "environments", talk)
    assert "Going on with what is installed" in said.getvalue()
    assert not checkout.is_current("environments"), "the next time tries again"


def test_a_first_installation_without_a_network_stops(
    checkout: Installation, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise PipFailed(["NameResolutionError"], checkout.log)

    monkeypatch.setattr(subject, "_fill", unreachable)
    with pytest.raises(Stopped, match="could not reach"):
        install(checkout, "environments", talk)


def test_a_virtual_environment_whose_python_is_gone_is_made_again(
    checkout: Installation, filled: list[str], talk: Talk, said: io.StringIO
) -> None:
    checkout.python.unlink()
    checkout.python.symlink_to(checkout.root / "no-such-python")
    install(checkout, "environments", talk)
    assert checkout.works()
    assert "the old one no longer worked and was replaced" in said.getvalue()
    assert filled == ["environments"]


def test_a_folder_that_is_no_virtual_environment_is_never_deleted(
    checkout: Installation, talk: Talk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    monkeypatch.setenv("REBENCH_VENV", str(precious))
    with pytest.raises(Stopped, match="no virtual environment"):
        install(Installation.of(checkout.root), "environments", talk)
    assert (precious / "thesis.tex").exists()


def test_a_full_disk_is_refused_before_anything_is_fetched(
    checkout: Installation, filled: list[str], talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(checkout.venv)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**10, 10**10, 10**6))  # type: ignore[attr-defined]
    with pytest.raises(Stopped, match=r"has 1 MB free, and the installation needs about 2.5 GB"):
        install(checkout, "environments", talk)
    assert filled == []
