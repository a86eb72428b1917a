from pathlib import Path

import pytest

from sessions.record.store import SessionNotFound, Store, make_runtime_folders
from tests.sessions.builders import journal_at, opened


def record_in(store: Store, work_tree: Path) -> str:
    record = store.create()
    with journal_at(record.folder) as journal:
        journal.append(opened(session=record.session, work_tree=str(work_tree)))
    return record.session


def test_a_session_is_found_by_the_work_folder_one_stands_in(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    works = [tmp_path / name for name in ("one", "two")]
    sessions = [record_in(store, work) for work in works]
    assert store.find(standing_in=works[1] / "deep" / "inside").session == sessions[1]
    with pytest.raises(SessionNotFound, match="several sessions are live"):
        store.find(standing_in=tmp_path)


@pytest.mark.parametrize(
    ("place", "shared"), [("work/new", True), (".", True), ("work", True), ("works", False)]
)
def test_an_open_session_that_shares_a_folder_is_found(tmp_path: Path, place: str, shared: bool) -> None:
    store = Store(tmp_path / "home")
    record = store.create()
    with journal_at(record.folder) as journal:
        journal.append(opened(session=record.session, work_tree=str(tmp_path / "area/work")))
    (tmp_path / "link").symlink_to(tmp_path / "area")
    found = store.sharing(tmp_path / "link" / place)
    assert (found is not None) is shared


def test_a_part_of_the_name_is_enough_and_an_unknown_one_lists_the_known(tmp_path: Path) -> None:
    store = Store(tmp_path)
    session = record_in(store, tmp_path / "work")
    assert store.find(session.removeprefix("s-")[:4]).session == session
    with pytest.raises(SessionNotFound, match=session):
        store.find("nothing")


def test_a_new_record_is_its_owners_alone(tmp_path: Path) -> None:
    assert Store(tmp_path).create().folder.stat().st_mode & 0o777 == 0o700


def test_a_runtime_folder_too_deep_for_sockets_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REBENCH_RUNTIME", str(tmp_path / ("deep" * 30)))
    with pytest.raises(OSError, match="REBENCH_RUNTIME to a shorter folder"):
        make_runtime_folders(Store(tmp_path).create())
