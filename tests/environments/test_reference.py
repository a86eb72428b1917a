"""The reference solution is laid out for its profile; what only a recipe makes is made once, kept, and never half."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from environments import registry
from environments.contract import Progress
from environments.reference import ARCHIVE, ReferenceNotMade, lay_out_reference
from environments.registry import Found
from environments.sealing import PUBLIC_PASSPHRASE, seal
from tests.environments.harness import TINY, Tiny, quiet


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny(tmp_path_factory.mktemp("home"))


class Case:
    """A copy of the tiny environment whose archive holds what a test says."""

    def __init__(self, tiny: Tiny, folder: Path) -> None:
        self.home, self.folder = tiny.home, folder
        shutil.copytree(TINY, folder / "tiny")

    def seal(self, **files: str) -> Found:
        plain = self.folder / "plain"
        shutil.rmtree(plain, ignore_errors=True)
        for name, text in files.items():
            path = plain / name.replace("__", "/").replace("_toml", ".toml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        seal(plain, self.folder / "tiny" / ARCHIVE, PUBLIC_PASSPHRASE)
        return registry.find("tiny", [self.folder / "tiny"])

    def lay_out(self, found: Found, name: str = "tree", seen: list[Progress] | None = None) -> Path:
        tree = self.folder / name
        tree.mkdir()
        report = quiet if seen is None else seen.append
        lay_out_reference(found, "cpu", tree, self.home, PUBLIC_PASSPHRASE, report)
        return tree


@pytest.fixture
def case(tiny: Tiny, tmp_path: Path) -> Case:
    return Case(tiny, tmp_path)


def recipe(make: str, seconds: float = 30.0) -> str:
    return f'[cpu]\nmake = ["python", "-c", {make!r}]\nseconds = {seconds}\nmakes = ["out/weights"]\n'


def test_files_below_a_profiles_name_are_for_that_profile_only(case: Case) -> None:
    tree = case.lay_out(case.seal(both="b", cpu__both="c", cpu__deep__one="1", other__kept="k"))
    files = {p.relative_to(tree).as_posix(): p.read_text() for p in tree.rglob("*") if p.is_file()}
    assert files == {"both": "c", "deep/one": "1", "other/kept": "k"}


def test_what_a_recipe_makes_is_made_once(case: Case) -> None:
    made = (
        "import os; os.mkdir('out'); open('out/weights','w').write(open('seed').read()*2); print('step 1/1')"
    )
    found = case.seal(seed="ab", reference_toml=recipe(made))
    seen: list[Progress] = []
    tree = case.lay_out(found, seen=seen)
    assert (tree / "out/weights").read_text() == "abab"
    assert not (tree / "reference.toml").exists()
    assert seen[-1].stage == "making the reference solution: step 1/1"
    again: list[Progress] = []
    assert (case.lay_out(found, "again", again) / "out/weights").read_text() == "abab"
    assert again == []


def test_a_changed_archive_is_made_anew(case: Case) -> None:
    made = "import os; os.mkdir('out'); open('out/weights','w').write(open('seed').read())"
    case.lay_out(case.seal(seed="1", reference_toml=recipe(made)))
    tree = case.lay_out(case.seal(seed="2", reference_toml=recipe(made)), "second")
    assert (tree / "out/weights").read_text() == "2"


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        (recipe("raise SystemExit('no card')"), r"(?s)exit 1.*no card"),
        (recipe("pass"), "left no out/weights"),
        (recipe("import time; time.sleep(600)", 0.2), "took over 0.2 s"),
        ('[cpu]\nmake = ["no-such-program"]\nseconds = 1\nmakes = []\n', "cannot be started"),
        ("[cpu]\nmake = 3\n", "cannot be used"),
        ("[cpu", "cannot be used"),
    ],
)
def test_a_recipe_that_fails_says_why_and_keeps_nothing(case: Case, toml: str, says: str) -> None:
    found = case.seal(seed=toml, reference_toml=toml)
    before = set((case.home / "references").rglob("*"))
    with pytest.raises(ReferenceNotMade, match=says):
        case.lay_out(found)
    left = {p for p in set((case.home / "references").rglob("*")) - before if p.name != ".lock"}
    assert not [p for p in left if p.is_file() or "partial" in p.name]


def test_a_recipe_whose_watcher_gives_up_is_ended_at_once(case: Case) -> None:
    waits = "import time; print('up', flush=True); time.sleep(600)"
    found = case.seal(seed="watched", reference_toml=recipe(waits, 600.0))

    def gives_up(progress: Progress) -> None:
        if progress.stage.endswith("up"):
            raise KeyError("the watcher")

    (case.folder / "watched").mkdir()
    began = time.monotonic()
    with pytest.raises(KeyError, match="the watcher"):
        lay_out_reference(found, "cpu", case.folder / "watched", case.home, PUBLIC_PASSPHRASE, gives_up)
    assert time.monotonic() - began < 60
