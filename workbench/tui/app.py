"""The app: folds what a source brings into one view, hands it to the screens, and sends what they ask."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.filter import Monochrome, NoColor
from textual.screen import Screen

from sessions.clients.client import HostGone
from sessions.clients.protocol import Refusal
from sessions.record.events import Event, SnapshotTaken, WarningGiven
from sessions.record.fold import apply, instant_of
from sessions.record.state import Phase, SessionState
from sessions.telemetry.samples import Sample
from workbench.ink import words
from workbench.ink.text import one_line
from workbench.tui.glyphs import AsciiOnly, speaks_unicode
from workbench.tui.messages import Ask
from workbench.tui.screens.dialog import Dialog
from workbench.tui.screens.main import MainScreen
from workbench.tui.source import Batch, Happened, HostFound, HostLost, Mode, Replaced, Sampled, Source
from workbench.tui.theme import NAMES, THEMES
from workbench.tui.view import HISTORY, ChangedFile, Link, View
from workbench.tui.widgets.colours import Colours

Shell = Callable[[], object]
"""Runs the recorded shell on this terminal and returns when it ends."""

CHANGES_SHOWN = 1_000
"""Changed files of which a screen draws lines; the rest is counted."""
FIRST_WAIT = 0.25
"""Seconds the first paint waits for the first facts."""


class WorkbenchApp(App[int]):
    """One session on one terminal."""

    CSS_PATH: ClassVar[str] = str(Path(__file__).with_name("workbench.tcss"))
    TITLE = "rebench-workbench"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "detach", "detach", show=False, priority=True),
        Binding("ctrl+c", "hint", "how to leave", show=False),
    ]

    def __init__(
        self,
        source: Source,
        *,
        theme: str = "dark",
        shell: Shell | None = None,
        rules: str = "",
        ascii_only: bool | None = None,
    ) -> None:
        super().__init__()
        self.source = source
        self.draft = ""
        self.suspended = False
        self.colours = Colours()
        self._shell = shell
        self._rules = rules
        self._state: SessionState | None = None
        self._link = Link()
        self._samples: deque[Sample] = deque(maxlen=HISTORY)
        self._brief: str | None = None
        self._brief_asked = False
        self._changed: tuple[ChangedFile, ...] | None = None
        self._changed_count = 0
        self._changed_problem = ""
        self._first = asyncio.Event()
        self._caught_up = False
        self._follower: asyncio.Task[None] | None = None
        self._phase: Phase | None = None
        self._finish_opened = False
        if self.no_color:
            # The framework would turn colours to grey; without colour means without any.
            self._filters = [one for one in self._filters if not isinstance(one, Monochrome)] + [NoColor()]
        if not speaks_unicode() if ascii_only is None else ascii_only:
            self._filters.append(AsciiOnly())
        for one in THEMES:
            self.register_theme(one)
        self.theme = theme

    # --- facts in -----------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[Any]:
        return self.main_screen()

    def main_screen(self) -> MainScreen:
        """Return the main screen; replay has one with a timeline."""
        return MainScreen()

    async def on_load(self) -> None:
        """Begin to read before anything is painted, so that the first paint shows facts."""
        await self.source.start()
        self._follower = asyncio.create_task(self._follow())
        self._follower.add_done_callback(self._follower_ended)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._first.wait(), FIRST_WAIT)

    async def on_mount(self) -> None:
        self._caught_up = True
        self._show()
        self._tick()

    async def on_unmount(self) -> None:
        if self._follower is not None:
            self._follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._follower
        await self.source.close()

    def _follower_ended(self, task: asyncio.Task[None]) -> None:
        """A fault in a source or the fold must be seen, not swallowed with its task."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._handle_exception(error)  # type: ignore[arg-type]

    async def _follow(self) -> None:
        async for batch in self.source.updates():
            self._take(batch)
            self._first.set()

    def _take(self, batch: Batch) -> None:
        """Fold one batch and show the result once."""
        fresh: list[Event] = []
        for update in batch:
            match update:
                case Happened(event):
                    self._state = apply(self._state, event)
                    fresh.append(event)
                case Replaced(state, samples):
                    self._state = state
                    self._samples = deque(samples, maxlen=HISTORY)
                case Sampled(sample):
                    self._samples.append(sample)
                case HostLost(why, attempt):
                    since = self._link.since or self.source.now()
                    self._link = Link(up=False, why=why, attempt=attempt, since=since)
                case HostFound():
                    self._link = Link(up=True)
        for event in fresh:
            self._notice(event)
        # Figures of the machine come every second; they are painted with the clock, in one go.
        if self._caught_up and not all(isinstance(update, Sampled) for update in batch):
            self._show()

    def _notice(self, event: Event) -> None:
        """Ring and say what a person must not miss, for events that happen while the screen is open."""
        body = event.body
        if isinstance(body, SnapshotTaken):
            self._changed = None
        if not self._caught_up or self.source.mode is Mode.REPLAY or self.source.now().milliseconds_since(
            instant_of(event)) > 30_000:  # fmt: skip
            return
        if isinstance(body, WarningGiven):
            self.ring()
            self.notify(
                f"{words.count(body.minutes_left, 'minute')} left",
                severity="warning",
                timeout=10,
                markup=False,
            )

    @property
    def view(self) -> View | None:
        """What there is to show now."""
        if self._state is None:
            return None
        return View(
            state=self._state,
            now=self.source.now(),
            mode=self.source.mode,
            link=self._link,
            samples=tuple(self._samples),
            brief=self._brief,
            changed=self._changed,
            changed_count=0 if self._changed is None else self._changed_count,
            changed_problem=self._changed_problem,
        )

    def _show(self) -> None:
        view = self.view
        if view is None or self.suspended or not self.screen_stack:
            return
        self._open_page_of(view)
        for screen in self.screen_stack:
            show = getattr(screen, "show", None)
            if show is not None and screen.is_mounted:
                show(view)
        self._fetch_brief(view)

    def _open_page_of(self, view: View) -> None:
        """Open the page that belongs to the phase, once; never over a dialog somebody is writing in."""
        before, self._phase = self._phase, view.state.phase
        if view.mode is not Mode.LIVE:
            return
        match view.state.phase:
            case Phase.OPENED | Phase.READY:
                from workbench.tui.screens.ready import ReadyPage

                if before is None:
                    self.push_screen(ReadyPage(view, self._rules))
            case Phase.RUNNING | Phase.PAUSED:
                if before in {Phase.OPENED, Phase.READY}:
                    self._close_pages()
            case Phase.FINISHING | Phase.CLOSED:
                from workbench.tui.screens.submitting import FinishPage

                if not self._finish_opened and len(self.screen_stack) == 1:
                    self._finish_opened = True
                    self.push_screen(FinishPage(view))

    def _close_pages(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def _tick(self) -> None:
        """Redraw what shows the time, at each whole second of the session's own clock."""
        view = self.view
        wait = 1.0
        if view is not None and not self.suspended:
            self._open_page_of(view)
            self._tick_screens(view)
            if view.state.clock.running:
                wait = (view.remaining_ms % 1000 or 1000) / 1000
        self.set_timer(wait + 0.005, self._tick)

    def _tick_screens(self, view: View) -> None:
        """The clock goes on under dialogs too; a page hides it and needs no tick."""
        for screen in reversed(self.screen_stack):
            if (isinstance(screen, MainScreen) and screen.is_mounted) or (
                isinstance(screen, Dialog) and screen.is_mounted
            ):
                screen.tick(view)
            elif not screen.is_modal:
                return

    def _fetch_brief(self, view: View) -> None:
        if (
            self._brief is None
            and not self._brief_asked
            and view.state.started_at is not None
            and self._link.up
        ):
            self._brief_asked = True
            self.run_worker(self._ask_for_brief())

    async def _ask_for_brief(self) -> None:
        try:
            answer = await self.source.request("brief")
            self._brief = str(answer["text"])
            self._show()
        except (Refusal, HostGone, KeyError):
            self._brief_asked = False

    def look_for_changes(self) -> None:
        """Ask which files differ from the last snapshot; the answer arrives in a later view."""
        self.run_worker(self._ask_for_changes(), exclusive=True, group="changes")

    async def _ask_for_changes(self) -> None:
        self._changed, self._changed_problem = None, ""
        try:
            answer = await self.source.request("changed")
            files = answer["files"]
            self._changed_count = len(files) + int(answer.get("unlisted", 0))
            self._changed = tuple(
                ChangedFile(str(one["path"]), str(one["kind"]), one.get("size"))
                for one in files[:CHANGES_SHOWN]
            )
        except (Refusal, HostGone) as error:
            self._changed_problem = str(error)
        self._show()

    # --- wishes out ---------------------------------------------------------------------------------------

    @on(Ask)
    def _asked(self, event: Ask) -> None:
        self.ask(event.method, done=event.done, **event.parameters)

    def ask(self, method: str, *, done: str = "", **parameters: Any) -> None:
        """Send a request and say how it went; nothing waits for it."""
        self.run_worker(self._ask(method, done, parameters))

    async def _ask(self, method: str, done: str, parameters: dict[str, Any]) -> None:
        try:
            await self.source.request(method, **parameters)
        except Refusal as error:
            self.notify(one_line(str(error)), title="refused", severity="warning", timeout=8, markup=False)
        except HostGone as error:
            text = f"{one_line(str(error))}. Nothing was lost; try again in a moment"
            self.notify(text, title=f"{method} was not sent", severity="error", timeout=8, markup=False)
        else:
            if done:
                self.notify(done, timeout=3, markup=False)

    def _may(self, *phases: Phase) -> View | None:
        """Return the view if the session is in one of the phases and ours to act on, else say why not."""
        view = self.view
        if view is None:
            return None
        if view.mode is not Mode.LIVE:
            self.notify("this screen only watches", severity="warning", markup=False)
            return None
        if view.state.phase not in phases:
            self.notify(
                f"not while the session is {view.state.phase.value}", severity="warning", markup=False
            )
            return None
        return view

    def action_score(self) -> None:
        from workbench.tui.screens.prompts import ScorePrompt

        def send(note: str | None) -> None:
            if note is not None:
                self.ask("score", note=note, wait=False)

        if self._may(Phase.RUNNING):
            self.push_screen(ScorePrompt(), send)

    def action_check(self) -> None:
        if self._may(Phase.RUNNING, Phase.PAUSED):
            self.notify("checking …", timeout=2, markup=False)
            self.ask("check")

    def action_note(self) -> None:
        from workbench.tui.screens.prompts import NotePrompt

        def send(text: str | None) -> None:
            if text is not None:
                self.draft = ""
                if text.strip():
                    self.ask("note", done="noted", text=text)

        if self._may(Phase.OPENED, Phase.READY, Phase.RUNNING, Phase.PAUSED, Phase.FINISHING):
            self.push_screen(NotePrompt(self.draft), send)

    def action_pause(self) -> None:
        from workbench.tui.screens.prompts import PausePrompt

        def send(note: str | None) -> None:
            if note is not None:
                self.ask("pause", reason="break", note=note)

        if view := self._may(Phase.RUNNING):
            self.push_screen(PausePrompt(view), send)

    def action_resume(self) -> None:
        if self._may(Phase.PAUSED):
            self.ask("resume", done="the clock runs again")

    def action_cancel(self) -> None:
        view = self.view
        pending = [row for row in view.state.pending if row.number] if view and view.can_act else []
        if pending:
            self.ask("cancel_score", done=f"score #{pending[0].number} cancelled", number=pending[0].number)
        else:
            self.notify("no score is running", markup=False)

    def action_message(self) -> None:
        from workbench.tui.screens.prompts import MessagePage

        view = self.view
        if view is None:
            return
        unread = view.unread

        def send(acknowledged: bool | None) -> None:
            if acknowledged and unread is not None:
                self.ask("acknowledge", number=unread.number)

        self.push_screen(MessagePage(view), send)

    def action_submit(self) -> None:
        from workbench.tui.screens.submitting import SubmitDialog

        def send(sure: bool | None) -> None:
            if sure:
                self.ask("submit")

        if view := self._may(Phase.RUNNING, Phase.PAUSED):
            self.push_screen(SubmitDialog(view), send)
            self.look_for_changes()

    def action_health(self) -> None:
        from workbench.tui.screens.prompts import HealthPage

        if view := self.view:
            self.push_screen(HealthPage(view))

    def action_brief(self) -> None:
        from workbench.tui.screens.reading import ReadingPage

        if view := self.view:
            self.push_screen(ReadingPage(view))

    def action_keys(self) -> None:
        from workbench.tui.screens.prompts import KeysPage

        self.push_screen(KeysPage(self.source.mode))

    def open_details(self, number: int) -> None:
        """Show one scoring in full."""
        from workbench.tui.screens.details import DetailsPage

        if view := self.view:
            self.push_screen(DetailsPage(view, number, self.source))

    def action_detach(self) -> None:
        """Leave the screen; the session goes on."""
        self.exit(0)

    def action_hint(self) -> None:
        self.notify("q detaches, the session goes on · S submits and finishes", markup=False)

    def ring(self) -> None:
        """Sound the terminal's bell, unless a shell has the terminal."""
        if not self.suspended:
            self.bell()

    def action_shell(self) -> None:
        """Give the terminal to the recorded shell and take it back as it was."""
        from workbench.tui.terminal import lent

        if self._shell is None:
            self.notify(
                "no shell can be opened from here; use your own terminal", severity="warning", markup=False
            )
            return
        if self._may(Phase.RUNNING, Phase.PAUSED) is None:
            return
        self.suspended = True
        try:
            with lent(self):
                self._shell()
        except (OSError, Refusal) as error:
            self.notify(one_line(str(error)), title="the shell failed", severity="error", markup=False)
        finally:
            self.suspended = False
        self._show()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        from workbench.tui.commands import commands

        return commands(self)

    def set_theme(self, name: str) -> None:
        """Change the theme; remembered nowhere."""
        assert name in NAMES
        self.theme = name
