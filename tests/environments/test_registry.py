"""Environments are found without being imported, and a broken one says what is wrong with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from environments import registry
from environments.contract import EnvironmentUnknown, ProfileUnavailable, SpecificationInvalid
from tests.environments.harness import TINY

TOML = (TINY / "environment.toml").read_text()


def written(folder: Path, toml: str, code: str | None = None) -> Path:
    folder.mkdir(parents=True)
    (folder / "environment.toml").write_text(toml)
    if code is not None:
        (folder / "environment.py").write_text(code)
    return folder


def test_a_folder_is_found_by_the_slug_in_its_specification() -> None:
    found = registry.find("tiny", [TINY])
    assert found.spec.title == "Tiny Regression"
    assert found.folder == TINY


def test_finding_an_environment_does_not_run_its_code(tmp_path: Path) -> None:
    folder = written(tmp_path / "e", TOML.replace('"tiny"', '"loud"'), "raise AssertionError('imported')")
    assert registry.find("loud", [folder]).spec.slug == "loud"
    assert "loud" in [found.spec.slug for found in registry.all_found([folder])]


def test_a_folder_of_environments_is_searched_one_level_down(tmp_path: Path) -> None:
    written(tmp_path / "many" / "one", TOML.replace('"tiny"', '"one"'))
    written(tmp_path / "many" / "two", TOML.replace('"tiny"', '"two"'))
    assert {"one", "two"} <= {found.spec.slug for found in registry.all_found([tmp_path / "many"])}


def test_an_unknown_slug_lists_what_exists_and_suggests_the_nearest() -> None:
    with pytest.raises(
        EnvironmentUnknown, match=r"no environment 'tinny'; did you mean 'tiny'\? There are: .*tiny"
    ):
        registry.find("tinny", [TINY])


def test_an_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(ProfileUnavailable, match="tiny has no profile 'gpu'; it has cpu"):
        registry.find("tiny", [TINY]).spec.profile("gpu")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('version = "1.0"', "version = 1", r"key `version`: expected `str`, got `int`, found 1"),
        (
            'direction = "lower"',
            'direction = "down"',
            r"key `direction`: invalid enum value 'down', found 'down'",
        ),
        ('title = "Tiny Regression"', 'titel = "Tiny"', r"key `\(top level\)`: .*`titel`"),
        (
            "hours = 0.5",
            'hours = "half"',
            r"key `profiles.cpu.hours`: expected `float`, got `str`, found 'half'",
        ),
        (
            "memory_gb = 0.5\nprocesses",
            "memory_tb = 0.5\nprocesses",
            r"key `profiles.cpu.limits`: .*`memory_tb`",
        ),
        ('slug = "tiny"', "slug = ", r"cannot be read as TOML"),
    ],
)
def test_a_bad_specification_names_file_key_expected_and_found(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    folder = written(tmp_path / "tiny", TOML.replace(old, new, 1))
    with pytest.raises(SpecificationInvalid, match=says) as caught:
        registry.read_specification(folder)
    assert str(folder / "environment.toml") in str(caught.value)


def test_an_environment_without_profiles_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "bare", TOML.partition("[profiles")[0] + "[profiles]\n")
    with pytest.raises(SpecificationInvalid, match="at least one profile"):
        registry.read_specification(folder)


def test_a_broken_neighbour_does_not_hide_a_good_environment(tmp_path: Path) -> None:
    written(tmp_path / "broken", "slug = ")
    assert registry.find("tiny", [tmp_path, TINY]).spec.slug == "tiny"


def test_two_environments_of_one_slug_are_refused_in_a_list(tmp_path: Path) -> None:
    written(tmp_path / "copy", TOML)
    with pytest.raises(SpecificationInvalid, match="two environments call themselves 'tiny'"):
        registry.all_found([TINY, tmp_path])


def test_loading_needs_an_object_that_can_do_all_four_things(tmp_path: Path) -> None:
    folder = written(tmp_path / "half", TOML.replace('"tiny"', '"half"'), "environment = object()")
    with pytest.raises(SpecificationInvalid, match="missing: prepare, starter, check, score"):
        registry.load(registry.find("half", [folder]))


def test_loading_without_code_says_so(tmp_path: Path) -> None:
    folder = written(tmp_path / "empty", TOML.replace('"tiny"', '"empty"'))
    with pytest.raises(SpecificationInvalid, match=r"holds no environment\.py"):
        registry.load(registry.find("empty", [folder]))


def test_an_installed_plug_in_is_found_through_its_entry_point(tmp_path: Path) -> None:
    package = written(
        tmp_path / "plugged" / "inner", TOML.replace('"tiny"', '"plugged"'), "environment = None"
    )
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (package.parent / "__init__.py").write_text("")
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    group = registry.ENTRY_POINT_GROUP
    (info / "entry_points.txt").write_text(f"[{group}]\nplugged = plugged.inner\nbroken = no.such.package\n")
    code = "from environments import registry; f = registry.find('plugged'); print(f.module, f.folder)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{Path.cwd()}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["plugged.inner", str(package)], done.stderr


def test_the_registry_imports_no_heavy_library() -> None:
    code = "import environments.invoke, sys; print([m for m in ('torch', 'numpy', 'cryptography') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
