"""What stands where solution.py should is read only if it is a plain file of a sensible size."""

import os
from pathlib import Path

import pytest

from environments.triton_cumsum.environment import _read_problem


@pytest.mark.timeout(20)
@pytest.mark.parametrize("what", ["fifo", "device", "loop", "folder", "huge", "nested", "deep", "bytes"])
def test_a_solution_that_is_no_plain_source_is_named_and_not_read_for_ever(tmp_path: Path, what: str) -> None:
    solution = tmp_path / "solution.py"
    match what:
        case "fifo":
            os.mkfifo(solution)
        case "device":
            solution.symlink_to("/dev/zero")
        case "loop":
            solution.symlink_to("solution.py")
        case "folder":
            solution.mkdir()
        case "huge":
            solution.touch()
            os.truncate(solution, 1 << 40)
        case "nested":
            solution.write_text("(" * 100_000)
        case "deep":
            solution.write_text("x = " + "-" * 200_000 + "1")
        case "bytes":
            solution.write_bytes(b"\0\xff\x1b")
    problem = _read_problem(tmp_path)
    assert problem is not None
    assert "cannot be read" in problem.what
