"""recordings: a real recorded shell, listed and exported."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.sessions.live import live, until


def test_a_recorded_shell_is_listed_and_exported(tmp_path: Path) -> None:
    with live(tmp_path) as session:
        session.begin()
        session.ask("open_shell")
        until(lambda: "shell_opened" in [event.kind for event in session.events()])
        command = [sys.executable, "-m", "workbench.cli", "recordings", session.record.session]
        variables = {**os.environ, "REBENCH_HOME": str(session.store.home)}

        def run(*options: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [*command, *options], env=variables, capture_output=True, text=True, check=False
            )

        (row,) = json.loads(run("--json").stdout)["recordings"]
        assert (row["number"], row["state"]) == (1, "running")
        target = tmp_path / "shell.cast"
        done = run("--export", "1", "--output", str(target))
        assert done.returncode == 0, done.stderr
        assert json.loads(target.read_text().splitlines()[0])["version"] == 2
        missing = run("--export", "7")
        assert missing.returncode == 2
        assert "recording 7" in missing.stderr
