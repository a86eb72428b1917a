"""tmate 115: a read-only link that could write. `watch` has no way to send anything to the session it shows."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sessions.clients.protocol import PARTICIPANT_METHODS, PROCTOR_METHODS, Refusal
from tests.workbench.cli.conftest import Story, home, host_for, story
from tests.workbench.cli.fake_host import FakeHost
from workbench.tui.app import WorkbenchApp
from workbench.tui.watching import WatchSource

__all__ = ["home", "host_for", "story"]

pytestmark = pytest.mark.failures
ROOT = Path(__file__).parents[2]
Told = Callable[..., Story]
READS = {"status", "history", "brief", "diff"}


def _everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("method", sorted({*PARTICIPANT_METHODS, *PROCTOR_METHODS} - READS))
async def test_the_watching_source_refuses_every_method_that_could_act(story: Told, method: str) -> None:
    told = story().begin()
    before = _everything(told.record.folder)
    with pytest.raises(Refusal):
        await WatchSource(told.record).request(method, text="x", by="x", reason="break", number=1)
    assert _everything(told.record.folder) == before


async def test_no_key_on_the_watching_screen_reaches_the_host_or_the_record(
    story: Told, host_for: Callable[..., FakeHost]
) -> None:
    told = story().begin().score(1, 1.5)
    host = host_for(told.record)
    before = _everything(told.record.folder)
    app = WorkbenchApp(WatchSource(told.record), ascii_only=False)
    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(100):
            if app.view is not None:
                break
            await asyncio.sleep(0.02)
        assert app.view is not None
        for key in ("s", "c", "n", "p", "r", "t", "x", "a", "S", "b", "f", "d", "enter", "y", "escape"):
            await pilot.press(key)
            for typed in ("h", "i", "enter"):
                await pilot.press(typed)
            await pilot.press("escape")
            await pilot.pause()
        assert app.is_running
    assert host.asked == []
    assert _everything(told.record.folder) == before


def test_watch_on_a_pipe_opens_no_socket_and_nothing_for_writing(story: Told, tmp_path: Path) -> None:
    """Seen from the kernel: every socket and every file opened for writing is counted."""
    told = story().begin().note("[/] \x1b]52;c;aGk=\x07").close()
    audit = (
        "import sys\n"
        "seen = []\n"
        "def hook(event, args):\n"
        "    if event.startswith('socket.'): seen.append(event)\n"
        "    if event == 'open' and isinstance(args[1], str) and set(args[1]) & set('wax+'): seen.append(args)\n"
        "sys.addaudithook(hook)\n"
        "from workbench.cli import run\n"
        f"code = run(['watch', {told.record.session!r}, '--text'])\n"
        "print(code, [s for s in seen if '__pycache__' not in str(s)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", audit],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert done.stdout.splitlines()[-1] == "0 []"
    assert "\x1b" not in done.stdout


def test_the_module_that_watches_cannot_reach_a_client_at_all() -> None:
    """What is not imported cannot be called: neither the watching source nor what it imports of ours connects."""
    imported: set[str] = set()
    waiting = ["workbench/tui/watching.py"]
    while waiting:
        path = ROOT / waiting.pop()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in names:
                file = name.replace(".", "/") + ".py"
                if name not in imported and (ROOT / file).is_file():
                    waiting.append(file)
                imported.add(name)
    reaching = ("socket", "sessions.clients", "sessions.host")
    harmless = {"sessions.clients.protocol"}  # words only: what the log holds of them
    assert not [name for name in imported - harmless if name.startswith(reaching)]
