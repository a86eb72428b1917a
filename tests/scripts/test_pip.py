"""What the set-up shows of pip, and how it explains its failures."""

import io
from pathlib import Path

import pytest

from scripts.bootstrap.pip import PipFailed, explain, fetched_bytes
from tests.scripts.fakes import FakePip

NO_NETWORK = [
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NameResolutionError(...)': /simple/click/",
    "ERROR: Could not find a version that satisfies the requirement click>=8.1.8",
]


def test_large_downloads_get_a_line_and_small_ones_do_not(fake_pip: FakePip, said: io.StringIO) -> None:
    pip = fake_pip(
        [
            "  Downloading pyarrow-26.0.1-cp311-cp311-manylinux_2_28_x86_64.whl (55.0 MB)",
            "  Downloading idna-3.20-py3-none-any.whl (70 kB)",
            "Installing collected packages: idna, pyarrow",
            "Successfully installed idna-3.20 pyarrow-26.0.1",
        ]
    )
    assert pip.install("pyarrow") == "2 packages, 55 MB fetched"
    assert said.getvalue().splitlines() == ["    fetching pyarrow, 55.0 MB", "    installing 2 packages"]


def test_what_pip_says_goes_to_the_log_whole(fake_pip: FakePip, tmp_path: Path) -> None:
    fake_pip(["Collecting idna", "Requirement already satisfied: idna"]).install("idna")
    log = (tmp_path / "setup.log").read_text()
    assert "pip install" in log
    assert log.endswith("Collecting idna\nRequirement already satisfied: idna\n")


def test_a_failure_shows_its_last_lines_and_the_log(fake_pip: FakePip, tmp_path: Path) -> None:
    with pytest.raises(PipFailed) as failed:
        fake_pip([f"line {n}" for n in range(40)], 1).install("x")
    told = str(explain(failed.value, "Installing"))
    assert "line 39" in told
    assert "line 2\n" not in told
    assert str(tmp_path / "setup.log") in told


def test_no_network_is_said_in_words(fake_pip: FakePip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    with pytest.raises(PipFailed) as failed:
        fake_pip(NO_NETWORK, 1).install("click")
    told = str(explain(failed.value, "Installing"))
    assert "could not reach the package index" in told
    assert "HTTPS_PROXY is set" in told


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("  Downloading a.whl (12.3 MB)", 12.3e6),
        ("  Using cached a.whl (1.5 GB)", 1.5e9),
        ("  Downloading a.whl.metadata (900 bytes)", 900),
        ("Collecting a (1.0 MB)", 0),
    ],
)
def test_sizes_are_read_from_pips_own_words(line: str, size: float) -> None:
    assert fetched_bytes(line) == size
