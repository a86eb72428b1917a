"""From "I want a session of that" to an opened record with its host running; the clock has not started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sessions.record.events import Breaks, Isolation, ParticipantKind, SessionPolicy
from sessions.record.store import Record, Store

if TYPE_CHECKING:
    from environments.registry import Found
    from workbench.preflight.machine import Machine

OnProgress = Callable[[str, float | None], None]


class Wish(msgspec.Struct, frozen=True):
    """What somebody asks for when they open a session."""

    environment: str
    profile: str | None = None
    """None: the one this machine can run."""
    budget_ms: int | None = None
    """None: the profile's own."""
    work_tree: Path | None = None
    """None: a new folder named after the session, in the current one."""
    participant: str = ""
    kind: ParticipantKind = ParticipantKind.HUMAN
    policy: SessionPolicy | None = None
    """Its `budget_ms` is replaced by `budget_ms` or the profile's hours."""
    isolation: Isolation | None = None
    """None: the strongest that works here."""
    participant_user: str | None = None
    """The account of the participant's shells, for isolation `user`."""
    log_copies: Path | None = None
    """A folder that gets a second copy of the log as it grows."""
    environment_folders: tuple[Path, ...] = ()
    """Where environments that are not installed are looked for too."""


def agent_wish(environment: str, **changes: Any) -> Wish:
    """Return the wish of an agent: no breaks but for its model service."""
    policy = SessionPolicy(budget_ms=0, breaks=Breaks.PROCTOR)
    given: dict[str, Any] = {"participant": "agent", "kind": ParticipantKind.AGENT, "policy": policy}
    return Wish(environment, **{**given, **changes})


class Plan(msgspec.Struct, frozen=True):
    """A wish with everything decided, before anything is made."""

    found: Found
    profile: str
    policy: SessionPolicy
    wish: Wish
    machine: Machine
    work_tree: Path


def plan(wish: Wish, store: Store) -> Plan:
    """Decide everything and check that this machine can do it; makes nothing.

    Raises:
        EnvironmentUnknown: no such environment; names the nearest.
        ProfileUnavailable: no such profile, or this machine lacks something for it.
        WorkTreeUnusable: the work folder asked for holds something, or is within an open session's.
    """
    from environments.registry import find
    from sessions.host.opening import require_empty
    from workbench.preflight.needs import default_profile, examine_for, require

    found = find(wish.environment, wish.environment_folders)
    machine = examine_for(found.spec, store.home)
    profile = wish.profile or default_profile(found.spec, machine)
    require(found.spec, profile, machine)
    if wish.work_tree is not None:
        require_empty(wish.work_tree)
    work_tree = wish.work_tree or _new_work_tree(found.spec.slug)
    _require_apart(work_tree, store)
    budget = wish.budget_ms or round(found.spec.profile(profile).hours * 3_600_000)
    policy = msgspec.structs.replace(wish.policy or SessionPolicy(budget_ms=budget), budget_ms=budget)
    return Plan(found, profile, policy, wish, machine, work_tree)


def is_prepared(planned: Plan, home: Path) -> bool:
    """Whether the profile's assets are whole, by names, sizes and times."""
    from environments import assets

    return assets.state(assets.folders_for(planned.found.spec, planned.profile, home)) is assets.State.READY


def prepare(planned: Plan, home: Path, on_progress: OnProgress) -> None:
    """Make the profile's assets; what was begun is taken up again.

    Raises:
        InvocationFailed: with what is missing and where it was looked for.
    """
    from environments.invoke import Action
    from workbench.preflight.invoking import invoke

    invoke(
        Action.PREPARE,
        planned.found.spec.slug,
        planned.profile,
        home=home,
        folder=planned.found.outside,
        on_progress=on_progress,
    )


def open_planned(planned: Plan, store: Store) -> Record:
    """Lay out the work folder, write the record's first event, start the host.

    Raises:
        EnvironmentFault: the assets are missing or damaged.
        WorkTreeUnusable: the work folder holds something.
        IsolationUnavailable: the isolation that was asked for does not hold here.
        HostGone: the host does not come up.
    """
    from environments import assets
    from environments.invoke import Action
    from sessions.clients.hosting import start_host
    from sessions.host.opening import Opening, find_hardware, open_session
    from workbench.preflight.hardware import hardware_for
    from workbench.preflight.invoking import invoke

    found, wish = planned.found, planned.wish
    folders = assets.folders_for(found.spec, planned.profile, store.home)
    gpus = tuple(gpu.name for gpu in planned.machine.gpus)
    label = hardware_for(found.spec.profile(planned.profile), gpus, planned.machine.cpus)
    starter = invoke(Action.STARTER, found.spec.slug, planned.profile, home=store.home, folder=found.outside)
    opening = Opening(
        environment=found.spec,
        profile=planned.profile,
        policy=planned.policy,
        participant=wish.participant,
        participant_kind=wish.kind,
        work_tree=planned.work_tree,
        isolation=wish.isolation,
        hardware=find_hardware(label, gpus),
        brief=read_brief(found),
        starter={name: Path(source) for name, source in starter.items()},
        assets=folders,
        environment_folder=found.outside,
        participant_user=wish.participant_user,
        log_copies=wish.log_copies,
    )
    record = open_session(opening, store)
    start_host(record)
    return record


def read_brief(found: Found) -> str:
    """Return the environment's brief.

    Raises:
        SpecificationInvalid: it has none, or none that is UTF-8 text.
    """
    from environments.contract import SpecificationInvalid

    path = found.folder / "brief.md"
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecificationInvalid(
            f"{found.spec.slug} cannot be started: its brief {path} cannot be read: {error}"
        ) from error


def _require_apart(place: Path, store: Store) -> None:
    from sessions.host.opening import WorkTreeUnusable

    if (other := store.sharing(place)) is not None:
        raise WorkTreeUnusable(
            f"cannot work in {place}: session {other.session} is open with the work folder {other.header()['work_tree']}, and "
            "its snapshots would take in this one's files or the other way round; go elsewhere, or name a folder with --workdir"
        )


def _new_work_tree(slug: str, parent: Path | None = None) -> Path:
    """Return the first of `slug`, `slug-2`, `slug-3`, ... that is free."""
    here = (parent or Path.cwd()).absolute()
    names = (slug if number == 1 else f"{slug}-{number}" for number in range(1, 10_000))
    return next(here / name for name in names if not (here / name).exists())
