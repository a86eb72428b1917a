"""Opening a session: the folder of its record, the starter in its work tree, the first event."""

from __future__ import annotations

import os
import platform
import pwd
import shutil
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import psutil
from msgspec import structs

from environments.contract import AssetFolders, EnvironmentSpec
from environments.machine.hardware import cpu_name
from sessions.host.isolation import detect
from sessions.host.participants import guarded_of, surroundings_of
from sessions.host.surveying import questions
from sessions.host.wiring import Wiring
from sessions.record.clock import Clock, SystemClock
from sessions.record.events import (
    SCHEMA,
    Hardware,
    Isolation,
    IsolationFound,
    ParticipantKind,
    SessionOpened,
    SessionPolicy,
)
from sessions.record.log import Journal
from sessions.record.signing import own_key, public_key
from sessions.record.store import Record, Store, make_runtime_folders
from sessions.snapshots import SnapshotStore

NOTED_SOFTWARE = ("rebench-workbench", "torch", "triton", "transformers", "datasets", "numpy", "textual")


class WorkTreeUnusable(ValueError):
    """The work folder cannot take the starter; nothing was changed."""


class IsolationUnavailable(RuntimeError):
    """The isolation that was asked for does not hold on this machine."""


class Opening(msgspec.Struct, frozen=True):
    """Everything a session is opened with."""

    environment: EnvironmentSpec
    profile: str
    policy: SessionPolicy
    participant: str
    participant_kind: ParticipantKind
    work_tree: Path
    isolation: IsolationFound | Isolation | None
    """What is wanted, None for the strongest that holds here; or what was found elsewhere."""
    hardware: Hardware
    brief: str
    starter: Mapping[str, Path]
    """Work-tree path to source file."""
    assets: AssetFolders
    environment_folder: Path | None = None
    participant_user: str | None = None
    log_copies: Path | None = None
    """A folder that gets a second copy of the log, under the session's name."""


def open_session(opening: Opening, store: Store, *, clock: Clock | None = None) -> Record:
    """Create the record and the work tree; the host takes it from here.

    Raises:
        WorkTreeUnusable: the work folder holds something already.
        IsolationUnavailable: the isolation that was asked for does not hold here; says what was reached.
    """
    require_empty(opening.work_tree)
    record = store.create()
    try:
        wiring = _wire(opening, record, store)
        isolation = _isolation(opening, record, wiring)
        _lay_out(opening)
        _begin_log(opening, record, store, wiring, isolation, clock or SystemClock())
    except BaseException:
        shutil.rmtree(record.folder, ignore_errors=True)
        raise
    return record


def _begin_log(
    opening: Opening, record: Record, store: Store, wiring: Wiring, isolation: IsolationFound, clock: Clock
) -> None:
    record.brief.write_text(opening.brief)
    SnapshotStore.create(record.folder)
    with Journal(
        record.log, clock, copy_to=None if wiring.log_copy is None else Path(wiring.log_copy)
    ) as journal:
        journal.append(
            SessionOpened(
                schema=SCHEMA,
                session=record.session,
                environment=structs.replace(
                    opening.environment, survey=questions(opening.environment.survey)
                ),
                profile=opening.profile,
                anchors=opening.environment.profile(opening.profile).anchors_for(opening.hardware.label),
                policy=opening.policy,
                participant=opening.participant,
                participant_kind=opening.participant_kind,
                work_tree=str(opening.work_tree.resolve()),
                isolation=isolation,
                hardware=opening.hardware,
                software=_software(),
                brief_sha256=sha256(opening.brief.encode()).hexdigest(),
                signer=public_key(own_key(store.home)),
            )
        )


def require_empty(place: Path) -> None:
    """Refuse a work folder that holds anything, or that can be none.

    Raises:
        WorkTreeUnusable: it does, or cannot.
    """
    try:
        os.path.realpath(place).encode()
        usable = not os.path.lexists(place) or (place.is_dir() and not any(place.iterdir()))
    except UnicodeEncodeError:
        raise _unusable(place, "its path is no UTF-8 text, which the record has to hold") from None
    except OSError as error:
        raise _unusable(place, error.strerror or str(error)) from error
    if not usable:
        raise _unusable(place, "it exists and is not an empty folder")


def _make(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(place, error.strerror or str(error)) from error


def _unusable(place: Path, why: str) -> WorkTreeUnusable:
    return WorkTreeUnusable(f"cannot put the starter into {place}: {why}; choose another with --workdir")


def _wire(opening: Opening, record: Record, store: Store) -> Wiring:
    wiring = Wiring(
        public=str(opening.assets.public),
        protected=str(opening.assets.protected),
        scratch=str(store.home / "scratch" / record.session),
        environment_folder=None if opening.environment_folder is None else str(opening.environment_folder),
        participant_user=opening.participant_user,
        log_copy=None if opening.log_copies is None else str(_copy_place(opening.log_copies, record)),
    )
    wiring.write(record.wiring)
    make_runtime_folders(record)
    return wiring


def _copy_place(folder: Path, record: Record) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{record.session}.events.jsonl"


def _isolation(opening: Opening, record: Record, wiring: Wiring) -> IsolationFound:
    """Return the isolation in force, found by trying."""
    wanted = opening.isolation
    if isinstance(wanted, IsolationFound):
        return wanted
    _make(opening.work_tree)
    hidden = opening.environment.profile(opening.profile).hidden_packages
    surroundings = surroundings_of(record, opening.work_tree, wiring, hidden)
    found = detect(guarded_of(record, wiring, hidden), replace(surroundings, terminal=False), wanted=wanted)
    if wanted not in (None, found.level):
        evidence = "".join(f"\n  - {line}" for line in found.evidence)
        raise IsolationUnavailable(f"isolation {wanted} does not hold on this machine:{evidence}")
    return found


def _lay_out(opening: Opening) -> None:
    """Copy the starter into an empty work folder."""
    place = opening.work_tree
    _make(place)
    for name, source in opening.starter.items():
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        if os.access(source, os.X_OK):
            target.chmod(0o755)
    if opening.participant_user is not None:
        _hand_over(place, opening.participant_user)


def _hand_over(place: Path, account: str) -> None:
    """Make the work folder the participant's own.

    Raises:
        IsolationUnavailable: there is no such account, or only root could give the folder away.
    """
    try:
        for path in (place, *place.rglob("*")):
            shutil.chown(path, account, pwd.getpwnam(account).pw_gid)
    except (KeyError, LookupError, PermissionError) as error:
        raise IsolationUnavailable(f"cannot give {place} to {account!r}: {error}") from error


def _software() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": platform.platform()}
    for name in NOTED_SOFTWARE:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def find_hardware(label: str, gpus: tuple[str, ...] = ()) -> Hardware:
    """Return this machine; `label` is the class that the session's profile has on it."""
    return Hardware(
        label=label,
        cpu=cpu_name(),
        cpus=psutil.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        gpus=gpus,
    )
