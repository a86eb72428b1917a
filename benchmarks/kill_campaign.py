"""SIGKILL at random moments of a busy session, and what was lost: `python -m benchmarks.kill_campaign [--kills 200]`.

A session with a recorded shell, notes and scorings side by side; each round kills the host, a recorder, a scorer, a
worker or the poller. In the end every acknowledged note must be in the log, elapsed right to a second, the work tree as
the session itself left it, and the record sound.
"""

import argparse
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil

from sessions.audit.verify import verify
from sessions.clients.client import HostGone
from sessions.clients.protocol import Refusal
from sessions.record.fold import fold
from tests.sessions.live import Live, live, until

SOLUTION = "import time\ntime.sleep({pause})\ndef predict(xs):\n    return [{factor} * x for x in xs]\n"


def role(process: psutil.Process) -> str | None:
    """Which of our parts a process is."""
    try:
        words = " ".join(process.cmdline())
    except psutil.Error:
        return None
    names = {
        "sessions.host ": "host",
        "recording.recorder": "recorder",
        "environments.invoke": "scorer",
        "telemetry.poller": "poller",
        "bwrap": "worker",
    }
    return next((name for mark, name in names.items() if mark in words), None)


def parts_of(session: Live) -> Iterator[tuple[str, psutil.Process]]:
    """Every process of the session that may be killed."""
    mark = session.record.session
    for process in psutil.process_iter():
        name = role(process)
        if name is None:
            continue
        try:
            words = " ".join(process.cmdline())
            mine = mark in words or any(mark in " ".join(p.cmdline()) for p in process.parents())
        except psutil.Error:
            continue
        if mine:
            yield name, process


def digest_of(tree: Path) -> str:
    total = sha256()
    for path in sorted(tree.rglob("*")):
        total.update(str(path.relative_to(tree)).encode())
        if path.is_file():
            total.update(path.read_bytes())
    return total.hexdigest()


def patiently(session: Live, method: str, **parameters: Any) -> bool:
    """Ask until the host answers; returns whether the first try was acknowledged."""
    try:
        session.ask(method, **parameters)
    except (HostGone, Refusal):
        return False
    return True


def campaign(kills: int, seed: int) -> dict[str, Any]:
    """Return what was killed and what was lost."""
    chance = random.Random(seed)
    killed: Counter[str] = Counter()
    acknowledged: list[str] = []
    trees_changed = 0
    with tempfile.TemporaryDirectory() as folder, live(Path(folder)) as session:
        session.begin()
        began = time.monotonic()
        number = 0
        while sum(killed.values()) < kills:
            number += 1
            if number % 10 == 1:
                patiently(session, "open_shell")
            source = SOLUTION.format(pause=round(chance.random() * 0.4, 2), factor=number)
            (session.work / "solution.py").write_text(source)
            before = digest_of(session.work)
            patiently(session, "score", wait=False)
            for extra in range(3):
                text = f"note {number}.{extra}"
                if patiently(session, "note", text=text):
                    acknowledged.append(text)
            time.sleep(chance.random() * 0.5)
            found = list(parts_of(session))
            if not found:
                continue
            wanted = chance.choice(sorted({name for name, _ in found}))
            name, victim = chance.choice([pair for pair in found if pair[0] == wanted])
            try:
                os.kill(victim.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed[name] += 1
            trees_changed += digest_of(session.work) != before
        until(lambda: not session.ask("status")["pending"], 300)
        elapsed = session.ask("status")["elapsed_ms"] / 1000
        error = abs(elapsed - (time.monotonic() - began))
        state = fold(session.events())
        noted = {note.text for note in state.notes}
        report = verify(session.record)
    return {
        "kills": dict(killed),
        "acknowledged notes": len(acknowledged),
        "acknowledged notes lost": len(set(acknowledged) - noted),
        "scores asked for": len(state.scores),
        "scores without a result": len(state.pending),
        "elapsed error in seconds": round(error, 3),
        "work trees changed": trees_changed,
        "record sound": report.sound,
        "problems": report.problems,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(json.dumps(campaign(arguments.kills, arguments.seed), indent=2))


if __name__ == "__main__":
    main()
