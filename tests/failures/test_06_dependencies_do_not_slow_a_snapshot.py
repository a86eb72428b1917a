"""Twenty thousand installed files in the working tree, unchanged: the second snapshot takes under half a second."""

from pathlib import Path

import pytest

from sessions.snapshots import SnapshotStatus
from tests.sessions.trees import fill, world
from tests.spent import processor_seconds

pytestmark = [pytest.mark.failures, pytest.mark.serial]
FILES = 20_000


@pytest.mark.parametrize("excluded", [True, False], ids=["a-virtual-environment", "vendored-sources"])
def test_the_second_snapshot_takes_under_half_a_second(tmp_path: Path, excluded: bool) -> None:
    store, work = world(tmp_path)
    for package in range(FILES // 50):
        folder = work / f"env/lib/p{package % 40}/m{package}"
        folder.mkdir(parents=True)
        for i in range(50):
            (folder / f"{i}.py").write_bytes(b"x = 1\n" * (i + 1))
    if excluded:
        fill(work, {"env/pyvenv.cfg": "home = /usr/bin\n"})
    fill(work, {"solution.py": "0"})
    store.take(work, 1, "")
    seconds = []
    for number in (2, 3, 4):
        fill(work, {"solution.py": str(number)})
        began = processor_seconds()
        taken = store.take(work, number, "")
        seconds.append(processor_seconds() - began)
        assert taken.status is SnapshotStatus.COMPLETE
    assert min(seconds) < 0.5
    if excluded:
        assert taken.files == 1
        total = taken.excluded[0]
        assert total.files == FILES + 1 or not total.counted
    else:
        assert taken.files == FILES + 1
