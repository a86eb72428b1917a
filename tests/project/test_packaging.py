"""What is in the wheel, what the packages may import, and what the README promises."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import workbench
from scripts.bootstrap.installation import LOCKED, OLDEST, TORCH

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = folder.glob("*.whl")
    assert wheel.name == f"rebench_workbench-{workbench.__version__}-py3-none-any.whl"
    return zipfile.ZipFile(wheel).namelist()


def built_in() -> list[Path]:
    return sorted(path.parent for path in ROOT.glob("environments/*/environment.toml"))


def test_the_wheel_holds_the_three_packages_and_no_tests(wheel_names: list[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_names if ".dist-info" not in name}
    assert tops == {"workbench", "sessions", "environments"}


def test_the_wheel_holds_no_plain_protected_file(wheel_names: list[str]) -> None:
    plain = [n for n in wheel_names if "/protected/" in n and not n.endswith((".sealed", "README.md"))]
    assert plain == []


def test_the_wheel_holds_every_file_an_environment_needs(wheel_names: list[str]) -> None:
    listing = subprocess.run(
        ["git", "ls-files", "environments"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert [
        n for n in listing.split() if n not in wheel_names and not fnmatch(n, "*/protected/README.md")
    ] == []
    for folder in built_in():
        slug = folder.name
        assert f"environments/{slug}/brief.md" in wheel_names
        assert any(n.startswith(f"environments/{slug}/starter/") for n in wheel_names), slug


def test_the_wheel_holds_the_stylesheets(wheel_names: list[str]) -> None:
    sheets = [str(path.relative_to(ROOT)) for path in ROOT.glob("workbench/**/*.tcss")]
    assert [sheet for sheet in sheets if sheet not in wheel_names] == []


def test_the_core_needs_no_torch() -> None:
    names = {Requirement(line).name.lower() for line in PROJECT["dependencies"]}
    assert not names & {"torch", "transformers", "datasets", "numpy", "pandas", "triton"}


def test_the_torch_that_start_installs_is_one_the_environments_accept() -> None:
    accepted = {
        Requirement(line).name: Requirement(line) for line in PROJECT["optional-dependencies"]["environments"]
    }
    (pinned,) = Requirement(TORCH).specifier
    assert accepted["torch"].specifier.contains(Version(pinned.version))


def needed(*extras: str) -> dict[str, Requirement]:
    lines = [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    found = [Requirement(line) for line in [*PROJECT["dependencies"], *lines]]
    return {line.name: line for line in found if line.name not in {"torch", "triton", PROJECT["name"]}}


def releases(name: str) -> dict[str, Version]:
    lines = (ROOT / "scripts" / name).read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines]
    return {line.name: Version(next(iter(line.specifier)).version) for line in found if _here(line)}


def _here(line: Requirement) -> bool:
    return line.marker is None or line.marker.evaluate()


@pytest.mark.parametrize("name", [LOCKED, OLDEST])
def test_each_list_of_releases_has_one_that_is_allowed_for_all_that_is_needed(name: str) -> None:
    extras = set(PROJECT["optional-dependencies"]) - ({"dev"} if name == OLDEST else set())
    listed = releases(name)
    wrong = [
        str(line)
        for line in needed(*extras).values()
        if line.name not in listed or not line.specifier.contains(listed[line.name])
    ]
    assert wrong == [], f"scripts/{name} is not up to date: run scripts/lock"


def test_the_oldest_releases_are_the_lowest_that_are_allowed() -> None:
    oldest = releases(OLDEST)
    lowest = {
        line.name: next(iter(line.specifier)).version for line in needed("environments", "agents").values()
    }
    assert {name: low for name, low in lowest.items() if not str(oldest[name]).startswith(low)} == {}


def test_the_tests_extra_brings_every_other_extra_but_the_gpus() -> None:
    extras = PROJECT["optional-dependencies"]
    brought = {extra for line in extras["dev"] for extra in Requirement(line).extras}
    assert brought == set(extras) - {"dev", "gpu"}


def test_the_first_screen_of_the_readme_has_exactly_two_commands() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert len(first_screen.splitlines()) <= 40
    blocks = re.findall(r"```\w*\n(.*?)```", first_screen, flags=re.DOTALL)
    assert [block.strip() for block in blocks] == ["scripts/start", "scripts/test"]


@pytest.mark.parametrize(
    "name", ["scripts/start", "scripts/test", "scripts/check", "scripts/lock", ".ci/run"]
)
def test_a_script_is_executable_and_parses(name: str) -> None:
    script = ROOT / name
    assert os.access(script, os.X_OK)
    shell = script.read_text(encoding="utf-8").splitlines()[0].split("/")[-1].split()[-1]
    subprocess.run([shell, "-n", str(script)], check=True)


def test_links_between_the_documents_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []
