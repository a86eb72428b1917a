"""What a worker promises: it answers, fails in words, sees only what it was given, and leaves nothing behind."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from environments.contract import Progress, ScoreStatus
from environments.worker import (
    Answered,
    Failed,
    FailureKind,
    Level,
    Mount,
    WorkerJob,
    WorkerLimits,
    WorkerUnavailable,
    confine,
    open_worker,
    run_untrusted,
)
from environments.worker.control import Roots
from environments.worker.owners import PREFIX

SANDBOXED = confine.best_level() in (Level.SANDBOX, Level.SANDBOX_ACCOUNT)
LEVELS = confine.levels()
needs_sandbox = pytest.mark.skipif(not SANDBOXED, reason="needs bubblewrap")


@pytest.fixture(params=LEVELS, ids=lambda level: level.value)
def level(request: pytest.FixtureRequest) -> Level:
    found: Level = request.param
    return found


def job(tmp_path: Path, entry: str, model: str = "", **changes: object) -> WorkerJob:
    """Write an entry and a participant's model.py, and make a job of them."""
    script = tmp_path / "entry.py"
    script.write_text(entry)
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    (root / "model.py").write_text(model)
    made: dict[str, object] = {
        "entry": script,
        "mounts": {"root": Mount(root)},
        "limits": WorkerLimits(seconds=10, memory_gb=0.5),
        **changes,
    }
    return WorkerJob(**made)  # type: ignore[arg-type]


LOADS = "def answer(request):\n    return {'said': request.load('model.py').said()}, {}\n"


def test_an_honest_job_is_answered(tmp_path: Path, level: Level) -> None:
    entry = """
def answer(request):
    request.progress("thinking", 0.5)
    return {"sum": sum(request.blobs["numbers"]), "body": request.body}, {"back": request.blobs["numbers"]}
"""
    seen: list[Progress] = []
    asked = job(tmp_path, entry, body={"a": [1, None]}, blobs={"numbers": bytes(range(10))})
    outcome = run_untrusted(asked, seen.append, level=level)
    assert isinstance(outcome, Answered)
    assert outcome.body == {"sum": 45, "body": {"a": [1, None]}}
    assert outcome.blobs == {"back": bytes(range(10))}
    assert outcome.confinement.level is level
    assert outcome.confinement.survivors == 0
    assert seen == [Progress(stage="thinking", fraction=0.5)]


def test_an_exception_is_told_with_its_place_in_the_participants_file(tmp_path: Path, level: Level) -> None:
    outcome = run_untrusted(
        job(tmp_path, LOADS, "\n\ndef said():\n    raise ValueError('no such thing')\n"), level=level
    )
    assert isinstance(outcome, Failed)
    assert (outcome.kind, outcome.where) == (FailureKind.CRASHED, "model.py:4")
    assert outcome.message == "the submission raised ValueError: no such thing"
    assert "Traceback" in outcome.log


def test_a_discreet_job_keeps_an_exceptions_text_to_the_log(tmp_path: Path) -> None:
    model = "def said():\n    raise ValueError('held-out text')\n"
    outcome = run_untrusted(job(tmp_path, LOADS, model, discreet=True))
    assert isinstance(outcome, Failed)
    assert outcome.message == "the submission raised ValueError"
    assert "held-out text" in outcome.log


def test_a_discreet_job_tells_no_name_that_the_submission_has_made_up(tmp_path: Path) -> None:
    model = """
def said():
    code = compile("raise type('HeldOutText', (Exception,), {})", "/job/root/held-out text.py", "exec")
    exec(code)
"""
    outcome = run_untrusted(job(tmp_path, LOADS, model, discreet=True))
    assert isinstance(outcome, Failed)
    assert outcome.message == "the submission raised an exception of its own"
    assert outcome.where is None


def test_a_missing_file_of_the_participants_is_their_failure(tmp_path: Path) -> None:
    outcome = run_untrusted(job(tmp_path, "def answer(request):\n    request.load('absent.py')\n"))
    assert isinstance(outcome, Failed)
    assert outcome.message == "the submission raised FileNotFoundError: absent.py is missing"


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    outcome = run_untrusted(job(tmp_path, LOADS, "x = 1\ndef said(:\n"))
    assert isinstance(outcome, Failed)
    assert outcome.where == "model.py:2"


def test_time_runs_out_by_the_hosts_clock(tmp_path: Path, level: Level) -> None:
    limits = WorkerLimits(seconds=0.3, memory_gb=0.5)
    outcome = run_untrusted(
        job(tmp_path, LOADS, "def said():\n    while True: pass\n", limits=limits), level=level
    )
    assert isinstance(outcome, Failed)
    assert outcome.status is ScoreStatus.TIMEOUT
    assert 0.3 <= outcome.seconds < 3
    assert outcome.message == "no answer within 0.3 s"


def test_start_up_is_not_counted_against_the_participant(tmp_path: Path) -> None:
    entry = f"import time\ntime.sleep(1.2)\n{LOADS}"
    limits = WorkerLimits(seconds=1.0, memory_gb=0.5)
    outcome = run_untrusted(job(tmp_path, entry, "def said(): return 1\n", limits=limits))
    assert isinstance(outcome, Answered)
    assert outcome.seconds < 1.0


def test_memory_runs_out_as_out_of_memory(tmp_path: Path, level: Level) -> None:
    model = "def said():\n    kept = []\n    while True: kept.append(bytearray(b'x' * 2**24))\n"
    limits = WorkerLimits(seconds=20, memory_gb=0.2)
    outcome = run_untrusted(job(tmp_path, LOADS, model, limits=limits), level=level)
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.OUT_OF_MEMORY


def test_memory_over_many_processes_is_counted_together_without_control_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Roots, "of_this_process", classmethod(lambda cls: cls()))
    model = """
import os, time
def said():
    for _ in range(6):
        if os.fork() == 0:
            kept = bytearray(b"x" * 2**26)
            time.sleep(30)
            os._exit(0)
    time.sleep(30)
"""
    limits = WorkerLimits(seconds=20, memory_gb=0.2)
    outcome = run_untrusted(job(tmp_path, LOADS, model, limits=limits))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.OUT_OF_MEMORY
    assert outcome.confinement.memory == "rlimit+watch"
    assert outcome.confinement.survivors == 0


def test_an_entry_that_does_not_start_is_our_fault(tmp_path: Path, level: Level) -> None:
    with pytest.raises(
        WorkerUnavailable,
        match=r"(?s)worker for entry\.py ended before it was ready.*exit code 1.*no_such_module",
    ):
        run_untrusted(job(tmp_path, "import no_such_module\n"), level=level)


def test_a_start_that_takes_too_long_is_our_fault(tmp_path: Path) -> None:
    limits = WorkerLimits(seconds=1, start_seconds=0.3, memory_gb=0.5)
    with pytest.raises(WorkerUnavailable, match=r"was not ready within 0\.3 s"):
        run_untrusted(job(tmp_path, "import time\ntime.sleep(60)\n", limits=limits))


def test_several_questions_go_to_one_living_worker(tmp_path: Path) -> None:
    entry = (
        "seen = []\ndef answer(request):\n    seen.append(request.body['n'])\n    return {'seen': seen}, {}\n"
    )
    with open_worker(job(tmp_path, entry)) as worker:
        for number in range(3):
            outcome = worker.ask({"n": number}, {})
            assert isinstance(outcome, Answered)
        assert outcome.body == {"seen": [0, 1, 2]}
    assert worker.confinement().survivors == 0


def test_an_answer_nobody_asked_for_is_refused_at_the_next_question(tmp_path: Path) -> None:
    model = """
import gc, threading, time
from environments.worker.messages import Channel, Message
def late():
    for thing in gc.get_objects():
        if isinstance(thing, Channel):
            thing.send(Message("answer", {"said": "late"}, {}))
def said():
    threading.Timer(0.05, late).start()
    return 1
"""
    with open_worker(job(tmp_path, LOADS, model)) as worker:
        assert isinstance(worker.ask({}, {}), Answered)
        assert worker._channel is not None
        assert worker._channel._wait(1, 10.0)
        outcome = worker.ask({}, {})
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.PROTOCOL


def test_the_dead_worker_is_noticed_although_a_child_holds_its_channel(tmp_path: Path, level: Level) -> None:
    model = """
import os, time
def said():
    if os.fork() == 0:
        time.sleep(60)
    os._exit(7)
"""
    outcome = run_untrusted(job(tmp_path, LOADS, model), level=level)
    assert isinstance(outcome, Failed)
    assert outcome.message == "the submission's process was ended with code 7"
    assert outcome.seconds < 5
    assert outcome.confinement.survivors == 0


@pytest.mark.parametrize("path", ["level", "no control groups"])
def test_a_daemon_that_hides_in_its_own_session_is_found_and_killed(
    tmp_path: Path, path: str, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "no control groups":
        monkeypatch.setattr(Roots, "of_this_process", classmethod(lambda cls: cls()))
    mark = f"rebench-hidden-{os.getpid()}-{path[0]}"
    model = f"""
import os, subprocess, sys, time
def said():
    code = "import os, sys, time; os.setsid(); os.fork() and os._exit(0); time.sleep(600)"
    subprocess.run([sys.executable, "-c", code, {mark!r}])
    return 1
"""
    outcome = run_untrusted(job(tmp_path, LOADS, model), level=level)
    assert isinstance(outcome, Answered)
    assert outcome.confinement.survivors == 0
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert mark not in listing


@needs_sandbox
def test_the_worker_sees_its_mounts_and_little_else(tmp_path: Path) -> None:
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "train.txt").write_text("train")
    (tmp_path / "secret.txt").write_text("secret")
    model = f"""
import os
from pathlib import Path
def said():
    return {{
        "top": sorted(os.listdir("/")),
        "job": sorted(os.listdir("/job")),
        "train": Path("/job/public/train.txt").read_text(),
        "secret": os.path.exists({str(tmp_path / "secret.txt")!r}),
        "etc": sorted(os.listdir("/etc")),
        "processes": sum(name.isdigit() for name in os.listdir("/proc")),
        "variables": sorted(os.environ),
        "home": sorted(os.listdir(os.environ["HOME"])),
    }}
"""
    mounts = {"root": Mount(tmp_path / "root"), "public": Mount(tmp_path / "public")}
    outcome = run_untrusted(job(tmp_path, LOADS, model, mounts=mounts))
    assert isinstance(outcome, Answered), outcome
    said = outcome.body["said"]
    assert said["job"] == ["public", "root"]
    assert said["train"] == "train"
    assert not said["secret"]
    assert not {"shadow", "hostname", "machine-id", "resolv.conf"} & set(said["etc"])
    assert said["processes"] <= 3
    assert said["home"] == []
    assert not [name for name in said["variables"] if "REBENCH" in name or "PYTHON" in name]


@needs_sandbox
def test_a_mask_hides_a_part_of_a_mount(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "protected").mkdir(parents=True)
    (root / "protected" / "answers").write_text("answers")
    (root / "one.txt").write_text("hidden too")
    model = """
import os
def said():
    return [os.listdir("/job/root/protected"), open("/job/root/one.txt").read()]
"""
    asked = job(tmp_path, LOADS, model, masks=(root / "protected", root / "one.txt"))
    outcome = run_untrusted(asked)
    assert isinstance(outcome, Answered), outcome
    assert outcome.body["said"] == [[], ""]


@needs_sandbox
def test_a_corpus_package_cannot_be_imported(tmp_path: Path) -> None:
    model = "def said():\n    import msgspec\n    return [msgspec.__name__, hasattr(msgspec, 'Struct')]\n"
    seen = run_untrusted(job(tmp_path, LOADS, model))
    hidden = run_untrusted(job(tmp_path, LOADS, model, hidden_packages=("msgspec",)))
    assert isinstance(seen, Answered)
    assert seen.body["said"] == ["msgspec", True]
    assert isinstance(hidden, Answered)
    assert hidden.body["said"] == ["msgspec", False]


@needs_sandbox
def test_what_the_worker_writes_into_a_writable_mount_is_ours_afterwards(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o700)
    (tmp_path / "out" / "before.txt").write_text("before")
    model = """
from pathlib import Path
def said():
    Path("/job/out/new.txt").write_text("new")
    Path("/job/out/before.txt").write_text("after")
"""
    mounts = {"root": Mount(tmp_path / "root"), "out": Mount(tmp_path / "out", writable=True)}
    outcome = run_untrusted(job(tmp_path, LOADS, model, mounts=mounts))
    assert isinstance(outcome, Answered), outcome
    assert (tmp_path / "out" / "new.txt").read_text() == "new"
    assert (tmp_path / "out" / "before.txt").read_text() == "after"
    assert {p.stat().st_uid for p in (tmp_path / "out").iterdir()} == {os.getuid()}


@needs_sandbox
def test_a_checkout_that_only_its_owner_may_read_is_opened_for_the_worker(tmp_path: Path) -> None:
    asked = job(tmp_path, LOADS, "def said(): return 1\n")
    (tmp_path / "root" / "model.py").chmod(0o600)
    (tmp_path / "root").chmod(0o700)
    outcome = run_untrusted(asked)
    assert isinstance(outcome, Answered), outcome


def test_shared_memory_reaches_the_worker_as_a_descriptor(tmp_path: Path, level: Level) -> None:
    memory = os.memfd_create("shared")
    os.write(memory, b"from the scorer")
    entry = """
import os
def answer(request):
    descriptor = request.descriptors["shared"]
    seen = os.pread(descriptor, 100, 0).decode()
    os.pwrite(descriptor, b"from the worker", 0)
    return {"seen": seen}, {}
"""
    outcome = run_untrusted(job(tmp_path, entry, descriptors={"shared": memory}), level=level)
    assert isinstance(outcome, Answered), outcome
    assert outcome.body == {"seen": "from the scorer"}
    assert os.pread(memory, 100, 0) == b"from the worker"
    os.close(memory)


def test_output_over_its_limit_is_dropped_and_said_to_be(tmp_path: Path) -> None:
    model = "def said():\n    print('x' * 3_000_000)\n"
    limits = WorkerLimits(seconds=10, memory_gb=0.5, output_mb=1.0)
    outcome = run_untrusted(job(tmp_path, LOADS, model, limits=limits))
    assert isinstance(outcome, Answered)
    assert outcome.log.endswith(f"[{3_000_001 - 2**20} further bytes of output were dropped]")
    assert len(outcome.log) < 17_000


def test_trusted_modules_of_the_engine_keep_their_dotted_names(tmp_path: Path) -> None:
    engine = Path(confine.__file__).parents[1]
    entry = (
        "from environments.sealing import CANARY\ndef answer(request):\n    return {'canary': CANARY}, {}\n"
    )
    contract = "from environments import contract\n"
    assert isinstance(
        run_untrusted(job(tmp_path, entry, modules=(engine / "sealing.py", engine / "contract.py"))), Answered
    )
    with pytest.raises(WorkerUnavailable, match="cannot import name 'contract'"):
        run_untrusted(job(tmp_path, contract + entry, modules=(engine / "sealing.py",)))


def test_nothing_is_left_behind(tmp_path: Path, level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    asked = job(tmp_path, LOADS, "def said(): return 1\n")
    run_untrusted(asked, level=level)
    gc.collect()
    before = sorted(p.name for p in Path("/proc/self/fd").iterdir())
    run_untrusted(asked, level=level)
    gc.collect()
    assert sorted(p.name for p in Path("/proc/self/fd").iterdir()) == before
    assert list((tmp_path / "temporary").iterdir()) == []
    roots = Roots.of_this_process()
    groups = [
        g for parent in {*roots.unified, *roots.v1.values()} for g in parent.glob(f"{PREFIX}{os.getpid()}-*")
    ]
    assert groups == []


def test_the_kill_of_a_scorer_takes_its_worker_along(tmp_path: Path) -> None:
    mark = f"rebench-orphan-{os.getpid()}"
    model = f"""
import subprocess, sys
def said():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", {mark!r}])
    print("running", flush=True)
    import time; time.sleep(600)
"""
    asked = job(tmp_path, "", model)
    (tmp_path / "entry.py").write_text(LOADS.replace("return", "request.progress('begun'); return"))
    code = f"""
import sys
from pathlib import Path
from environments.worker import *
job = WorkerJob(entry=Path({str(asked.entry)!r}), mounts={{"root": Mount(Path({str(tmp_path / "root")!r}))}},
                limits=WorkerLimits(seconds=600, memory_gb=0.5))
run_untrusted(job, lambda progress: print(progress.stage, flush=True))
"""
    scorer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert scorer.stdout is not None
    assert scorer.stdout.readline() == "begun\n"
    scorer.kill()
    scorer.wait()
    if SANDBOXED:
        _wait_until_gone(mark)
    else:
        subprocess.run(["true"], check=True)


def _wait_until_gone(mark: str) -> None:
    listing = mark
    for _ in range(200):
        listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        if not [line for line in listing.splitlines() if mark in line and "pytest" not in line]:
            return
    pytest.fail(listing)


def test_the_outcome_is_plain_json_for_the_details(tmp_path: Path) -> None:
    import msgspec

    outcome = run_untrusted(job(tmp_path, LOADS, "def said(): return 1\n"))
    assert json.loads(msgspec.json.encode(outcome.confinement))["survivors"] == 0


@needs_sandbox
def test_a_worker_without_network_reaches_itself_by_name_and_may_read_what_describes_the_cards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torchrun and NCCL need both."""
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "0")
    entry = """
import os, socket

def answer(request):
    server = socket.create_server(("localhost", 0))
    with socket.create_connection((socket.gethostname(), server.getsockname()[1]), timeout=5):
        readable = all(os.access(p, os.R_OK) for p in ("/sys/class", "/sys/bus/pci") if os.path.lexists(p))
    return {"readable": readable, "pci": os.path.isdir("/sys/bus/pci/devices"), "said": os.environ["NCCL_NVLS_ENABLE"]}, {}
"""
    outcome = run_untrusted(job(tmp_path, entry, gpus=True))
    assert isinstance(outcome, Answered), outcome
    assert outcome.body["readable"]
    assert outcome.body["pci"] == Path("/sys/bus/pci/devices").is_dir()
    assert outcome.body["said"] == "0"
