"""Prepared files are whole or said not to be; two preparations take turns; a broken one resumes."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import time
from collections.abc import Mapping
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from environments import assets, registry
from environments.contract import AssetsMissing, PrepareRequest, Progress, ReportProgress
from environments.sealing import PUBLIC_PASSPHRASE
from tests.environments.harness import TINY, Tiny, quiet

SPEC = registry.read_specification(TINY)


class Scripted:
    """An environment whose preparation the test writes."""

    def __init__(self, files: Mapping[str, bytes], fail_after: int | None = None) -> None:
        self.files, self.fail_after = files, fail_after
        self.made: list[str] = []

    def prepare(self, request: PrepareRequest, report: ReportProgress) -> None:
        for number, (name, content) in enumerate(self.files.items()):
            if number == self.fail_after:
                raise AssetsMissing("the second source is not installed")
            path = request.assets.public.parent / name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                self.made.append(name)


def prepare(environment: object, home: Path) -> assets.Manifest:
    return assets.prepare(environment, SPEC, "cpu", PUBLIC_PASSPHRASE, home, quiet)  # type: ignore[arg-type]


FILES = {"public/a.txt": b"one", "protected/b.txt": b"two", "public/deep/c.bin": b"three"}


def test_a_preparation_leaves_a_manifest_of_every_file(tmp_path: Path) -> None:
    manifest = prepare(Scripted(FILES), tmp_path)
    assert {f.path: f.sha256 for f in manifest.files} == {
        name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()
    }
    folders = assets.folders_for(SPEC, "cpu", tmp_path)
    assert folders.public == tmp_path / "assets" / "tiny" / "1.0" / "cpu" / "public"
    assert assets.state(folders) is assets.State.READY
    assert assets.verify(folders, deep=True) == manifest


def test_protected_files_are_the_owners_and_public_ones_everybodys(tmp_path: Path) -> None:
    os.umask(old := os.umask(0o077))
    try:
        os.umask(0o077)
        prepare(Scripted(FILES), tmp_path)
    finally:
        os.umask(old)
    folders = assets.folders_for(SPEC, "cpu", tmp_path)
    assert folders.protected.stat().st_mode & 0o777 == 0o700
    assert folders.public.stat().st_mode & 0o777 == 0o755
    assert (folders.public / "deep" / "c.bin").stat().st_mode & 0o044 == 0o044


def test_preparing_again_does_nothing_when_everything_is_whole(tmp_path: Path) -> None:
    first = prepare(Scripted(FILES), tmp_path)
    again = Scripted(FILES)
    assert prepare(again, tmp_path) == first
    assert again.made == []


def test_a_failed_preparation_is_partial_and_resumes(tmp_path: Path) -> None:
    folders = assets.folders_for(SPEC, "cpu", tmp_path)
    assert assets.state(folders) is assets.State.ABSENT
    with pytest.raises(AssetsMissing, match="second source"):
        prepare(Scripted(FILES, fail_after=1), tmp_path)
    assert assets.state(folders) is assets.State.PARTIAL
    with pytest.raises(AssetsMissing, match=r"was begun but not finished.*env prepare tiny --profile cpu"):
        assets.verify(folders)
    resumed = Scripted(FILES)
    prepare(resumed, tmp_path)
    assert resumed.made == ["protected/b.txt", "public/deep/c.bin"]


def test_assets_that_were_never_prepared_say_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(AssetsMissing, match=r"has not been run.*env prepare tiny --profile cpu"):
        assets.verify(assets.folders_for(SPEC, "cpu", tmp_path))


@pytest.mark.parametrize("damage", ["missing", "shorter", "touched"])
def test_damage_is_found_without_reading_everything(tmp_path: Path, damage: str) -> None:
    prepare(Scripted(FILES), tmp_path)
    folders = assets.folders_for(SPEC, "cpu", tmp_path)
    victim = folders.protected / "b.txt"
    match damage:
        case "missing":
            victim.unlink()
        case "shorter":
            victim.write_bytes(b"t")
        case _:
            os.utime(victim, ns=(0, 0))
    assert assets.state(folders) is assets.State.DAMAGED
    with pytest.raises(AssetsMissing, match=r"protected/b\.txt"):
        assets.verify(folders)


def test_a_change_that_keeps_size_and_time_is_found_by_reading(tmp_path: Path) -> None:
    prepare(Scripted(FILES), tmp_path)
    folders = assets.folders_for(SPEC, "cpu", tmp_path)
    victim = folders.protected / "b.txt"
    before = victim.stat()
    victim.write_bytes(b"owt")
    os.utime(victim, ns=(before.st_atime_ns, before.st_mtime_ns))
    assets.verify(folders)
    seen: list[Progress] = []
    with pytest.raises(AssetsMissing, match="other contents"):
        assets.verify(folders, deep=True, report=seen.append)


def test_a_damaged_manifest_reads_as_damage(tmp_path: Path) -> None:
    prepare(Scripted(FILES), tmp_path)
    folders = assets.folders_for(SPEC, "cpu", tmp_path)
    (folders.public.parent / "manifest.json").write_text("{")
    assert assets.state(folders) is assets.State.DAMAGED
    prepare(Scripted(FILES), tmp_path)
    assert assets.state(folders) is assets.State.READY


def test_removed_assets_are_absent(tmp_path: Path) -> None:
    prepare(Scripted(FILES), tmp_path)
    folders = assets.folders_for(SPEC, "cpu", tmp_path)
    assets.remove(folders)
    assert assets.state(folders) is assets.State.ABSENT


def hold(path: Path, held: Event, let_go: Event) -> None:
    with assets.locked(path):
        held.set()
        let_go.wait(30)


def test_a_second_preparation_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    place = assets.folders_for(SPEC, "cpu", tmp_path).public.parent
    place.mkdir(parents=True)
    spawn = multiprocessing.get_context("spawn")
    held, let_go = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(place / ".lock", held, let_go))
    other.start()
    try:
        assert held.wait(30)
        stages: list[str] = []

        def report(progress: Progress) -> None:
            stages.append(progress.stage)
            let_go.set()

        assets.prepare(Scripted(FILES), SPEC, "cpu", PUBLIC_PASSPHRASE, tmp_path, report)  # type: ignore[arg-type]
        assert stages[0] == "waiting for another preparation to finish"
    finally:
        let_go.set()
        other.join()


def test_a_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    held, let_go = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(tmp_path / "lock", held, let_go))
    other.start()
    assert held.wait(30)
    other.kill()
    other.join()
    began = time.monotonic()
    with assets.locked(tmp_path / "lock"):
        assert time.monotonic() - began < 5


def test_the_tiny_environment_prepares_the_same_numbers_every_time(tmp_path: Path) -> None:
    digests = [
        {f.path: f.sha256 for f in assets.read_manifest(Tiny(tmp_path / name).folders).files} for name in "ab"
    ]
    assert digests[0] == digests[1]
