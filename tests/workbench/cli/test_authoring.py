"""An author's way: new, prepare, calibrate, prove, seal, unseal."""

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from workbench.cli.exits import Exit
from workbench.cli.root import root


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, list(arguments), catch_exceptions=False, standalone_mode=True)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    assert run("env", "new", "sort_numbers", "--into", str(tmp_path)).exit_code == 0
    return tmp_path / "sort_numbers"


def test_a_new_environment_scores_its_starter_and_reference_as_it_stands(made: Path) -> None:
    folders = ("--env-folder", str(made.parent))
    assert run("env", "prepare", "sort_numbers", *folders).exit_code == 0
    answer = run("env", "calibrate", "sort_numbers", "--repeats", "1", "--hardware", "any", *folders)
    assert answer.exit_code == 0
    anchors = answer.stdout
    parsed = tomllib.loads(anchors)["profiles"]["cpu"]["anchors"][0]
    assert parsed["start"] > 10
    assert parsed["reference"] < 0.1
    with (made / "environment.toml").open("a") as file:
        file.write("\n" + anchors)
    proof = run("env", "prove", "sort_numbers", "--json", *folders)
    assert proof.exit_code == 0
    assert [finding["holds"] for finding in json.loads(proof.stdout)["findings"]] == [True, True]


def test_no_solution_and_no_seed_stands_in_plain(made: Path) -> None:
    names = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    assert "protected/reference.sealed" in names
    for path in made.rglob("*"):
        if path.is_file():
            assert b"3.0 * x - 1.0 for x in xs" not in path.read_bytes().replace(b" + chance", b"")


def test_sealed_and_unsealed_is_the_same(tmp_path: Path) -> None:
    source = tmp_path / "answers"
    source.mkdir()
    (source / "key.json").write_text('{"seed": 1}')
    archive = tmp_path / "a.sealed"
    assert run("env", "seal", str(source), str(archive)).exit_code == 0
    assert b"seed" not in archive.read_bytes()
    assert run("env", "unseal", str(archive), str(tmp_path / "out")).exit_code == 0
    assert (tmp_path / "out" / "key.json").read_text() == '{"seed": 1}'


@pytest.mark.parametrize("slug", ["Sort", "1st", "a-b", "../up", ""])
def test_a_name_that_is_no_slug_is_refused(tmp_path: Path, slug: str) -> None:
    with pytest.raises(Exception, match="cannot be a slug"):
        run("env", "new", slug, "--into", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(made: Path) -> None:
    with pytest.raises(Exception, match="exists already") as raised:
        run("env", "new", "sort_numbers", "--into", str(made.parent))
    assert getattr(raised.value, "code", Exit.USAGE) == Exit.USAGE
