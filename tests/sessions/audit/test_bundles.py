import shutil
import tarfile
from pathlib import Path

import pytest

from sessions.audit.bundles import BundleRefused, bundle, take_in
from sessions.audit.verify import verify
from sessions.record.store import Record, Store
from tests.sessions.bench import ME, Bench
from tests.sessions.builders import valid
from tests.sessions.live import live


@pytest.fixture
async def closed(tmp_path: Path) -> Record:
    (tmp_path / "a").mkdir()
    bench = Bench(tmp_path / "a", valid(1.5), valid(1.2))
    await bench.running()
    (bench.work / "weights.bin").write_bytes(bytes(9 * 1024 * 1024))
    await bench.scored("first")
    bench.engine.submit(ME)
    await bench.engine.ending.until_finished()
    bench.engine.survey({}, ME)
    await bench.engine.ending.closed.wait()
    await bench.die()
    return bench.record


def test_a_bundle_opens_and_verifies_in_another_store(closed: Record, tmp_path: Path) -> None:
    archive = bundle(closed, tmp_path)
    shutil.rmtree(closed.home)
    record = take_in(archive, Store(tmp_path / "b"))
    report = verify(record)
    assert report.sound, report.problems
    assert "another store's key" in report.remarks[0]


def test_a_file_of_zeros_takes_no_room_where_it_is_taken_in(closed: Record, tmp_path: Path) -> None:
    record = take_in(bundle(closed, tmp_path), Store(tmp_path / "b"))
    (weights,) = (path for path in (record.folder / "artifacts").rglob("*") if path.is_file())
    assert weights.stat().st_size == 9 * 1024 * 1024
    assert weights.stat().st_blocks * 512 < 1024 * 1024


@pytest.mark.parametrize("name", ["none/b", "n" * 256, "loop/b"])
def test_a_bundle_that_cannot_be_written_says_why(closed: Record, tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(BundleRefused, match="cannot write"):
        bundle(closed, tmp_path / name)


def test_nothing_of_this_machine_travels(closed: Record, tmp_path: Path) -> None:
    with tarfile.open(bundle(closed, tmp_path)) as archive:
        names = {Path(member.name).name for member in archive.getmembers()}
        assert all(member.uname == "" for member in archive.getmembers())
    assert not names & {"wiring.json", "host.lock", "host.log", "signing.key"}


@pytest.mark.parametrize("cut", [10, 1000, -20])
def test_a_cut_off_bundle_is_refused(closed: Record, tmp_path: Path, cut: int) -> None:
    archive = bundle(closed, tmp_path)
    archive.write_bytes(archive.read_bytes()[:cut])
    store = Store(tmp_path / "b")
    with pytest.raises(BundleRefused, match="no bundle"):
        take_in(archive, store)
    assert [path.name for path in store.home.iterdir()] == ["sessions"]


def test_an_unsound_record_is_refused_and_its_neighbours_stay(closed: Record, tmp_path: Path) -> None:
    good = bundle(closed, tmp_path)
    store = Store(tmp_path / "b")
    neighbour = take_in(good, store)
    closed.folder.rename(closed.folder.with_name("s-forged"))
    forged = Record(closed.folder.with_name("s-forged"))
    with pytest.raises(BundleRefused, match="not sound"):
        take_in(bundle(forged, tmp_path), store)
    assert [record.session for record in store.records()] == [neighbour.session]
    assert verify(neighbour).sound


def test_a_record_that_is_there_already_is_refused(closed: Record, tmp_path: Path) -> None:
    archive = bundle(closed, tmp_path)
    with pytest.raises(BundleRefused, match="already"):
        take_in(archive, Store(closed.home))
    with pytest.raises(BundleRefused, match="exists already"):
        bundle(closed, tmp_path)


def test_an_archive_that_climbs_out_is_refused(tmp_path: Path) -> None:
    evil = tmp_path / "evil.rebench.tar.gz"
    payload = tmp_path / "payload"
    payload.write_text("x")
    with tarfile.open(evil, "w:gz") as archive:
        archive.add(payload, arcname="../../escaped")
    with pytest.raises(BundleRefused):
        take_in(evil, Store(tmp_path / "b"))
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize("filtered", [True, False])
def test_a_record_comes_in_and_a_link_does_not_on_every_python(
    closed: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filtered: bool
) -> None:
    if not filtered:  # Python before 3.11.4
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    assert verify(take_in(bundle(closed, tmp_path), Store(tmp_path / "b"))).sound
    evil = tmp_path / "evil.rebench.tar.gz"
    (tmp_path / "link").symlink_to("/etc")
    with tarfile.open(evil, "w:gz") as archive:
        archive.add(tmp_path / "link", arcname="s-000000/link")
    with pytest.raises(BundleRefused, match="neither a file nor a folder"):
        take_in(evil, Store(tmp_path / "c"))


def test_a_live_session_is_not_bundled(tmp_path: Path) -> None:
    with live(tmp_path) as session:
        session.begin()
        with pytest.raises(BundleRefused, match="going on"):
            bundle(session.record, tmp_path)
