"""The documents say everything a user can type or get back, and nothing that is not there."""

import re
from pathlib import Path

import pytest

from scripts.bootstrap.talk import Exit as SetUpExit
from workbench.cli.environments import ENTRIES as ENVIRONMENT_COMMANDS
from workbench.cli.exits import Exit
from workbench.cli.root import ENTRIES as COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


# Commands the pages describe that are not there yet; to be empty in a release.
def code_cells(page: Path, column: int) -> list[str]:
    """What stands in backticks in one column of the tables of a page."""
    rows = [
        line.split("|")[1:-1]
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    return [name for row in rows if len(row) > column for name in re.findall(r"`([^`]+)`", row[column])]


def test_every_exit_code_has_its_row_and_no_row_is_without_its_code() -> None:
    rows = re.findall(
        r"^\| (\d+) \|", (DOCS / "exit-codes.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert [int(row) for row in rows] == sorted(Exit)


@pytest.mark.parametrize("code", list(SetUpExit))
def test_the_set_up_ends_with_the_products_own_exit_codes(code: SetUpExit) -> None:
    assert int(code) in set(Exit)


def test_the_readme_promises_exactly_the_environments_that_are_there() -> None:
    slugs = {path.parent.name for path in ROOT.glob("environments/*/environment.toml")}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    promised = set(re.findall(r"^\| `(\w+)` \|.*\| yes \|$", text, flags=re.MULTILINE))
    assert promised == slugs


def test_the_proctors_page_gives_the_public_passphrase_and_how_to_use_another() -> None:
    from environments.sealing import KEY_FILE_VARIABLE, KEY_VARIABLE, PUBLIC_PASSPHRASE

    page = (DOCS / "proctor.md").read_text(encoding="utf-8")
    assert f"`{KEY_VARIABLE}`" in page
    assert f"`{KEY_FILE_VARIABLE}`" in page
    assert PUBLIC_PASSPHRASE in page.splitlines()


@pytest.mark.parametrize("page", ["participant.md", "proctor.md", "agents.md", "analysis.md", "author.md"])
def test_a_page_names_only_commands_that_exist(page: str) -> None:
    """What follows the program's name in its examples."""
    text = (DOCS / page).read_text(encoding="utf-8")
    used = {f"{group}{name}" for group, name in re.findall(r"rebench-workbench (env )?([a-z]+)", text)}
    there = {*COMMANDS, *(f"env {name}" for name in ENVIRONMENT_COMMANDS)}
    assert used - there == set()
