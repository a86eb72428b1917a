"""Small dialogs that ask for words or a choice: note, score note, pause, health, keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input, TextArea

from sessions.record.events import Breaks, Light, Part
from workbench.ink.lines import EMPTY, Line, Tone
from workbench.ink.text import one_line
from workbench.tui.isolation import isolation_sentences
from workbench.tui.screens.dialog import Dialog, fact, paragraph
from workbench.tui.source import Mode
from workbench.tui.view import View
from workbench.tui.widgets.header import light_of
from workbench.tui.widgets.lines import Words


class ScorePrompt(Dialog[str]):
    """One optional line to remember a score by; the answer is the note."""

    title_text = "Score the work folder as it is now"

    def body(self) -> Iterable[Widget]:
        yield Words(
            paragraph(
                "A snapshot is taken first and that is what is scored; keep working meanwhile.", Tone.MUTED
            )
        )
        yield Input(placeholder="what changed? (optional)", id="words", max_length=400)

    def keys(self) -> Sequence[tuple[str, str]]:
        return (("enter", "score"), ("esc", "not now"))

    @on(Input.Submitted)
    def _take(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class NotePrompt(Dialog[str]):
    """A note of any length; it goes into the record as it is."""

    title_text = "Note for the record"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,ctrl+enter,alt+enter", "save", "save", show=False, priority=True),
    ]

    def __init__(self, draft: str = "") -> None:
        super().__init__()
        self._draft = draft

    def body(self) -> Iterable[Widget]:
        yield TextArea(self._draft, id="words", soft_wrap=True, show_line_numbers=False, tab_behavior="focus")

    def keys(self) -> Sequence[tuple[str, str]]:
        return (("ctrl+s", "save"), ("esc", "leave (kept as a draft)"))

    @property
    def words(self) -> str:
        return self.query_one("#words", TextArea).text

    def action_save(self) -> None:
        self.dismiss(self.words)

    def action_close(self) -> None:
        """Leave; the app keeps the draft."""
        self.app.draft = self.words  # type: ignore[attr-defined]
        self.dismiss(None)


class PausePrompt(Dialog[str]):
    """Asks for a break, or says why there is none."""

    title_text = "Stop the clock for a break"

    def __init__(self, view: View) -> None:
        super().__init__()
        self._breaks = view.state.opened.policy.breaks

    @property
    def allowed(self) -> bool:
        return self._breaks is Breaks.ALLOWED

    def body(self) -> Iterable[Widget]:
        if self.allowed:
            yield Words(paragraph(
                "The clock stands until you resume. Breaks are on the record with their length; "
                "please do not work during one: file activity is seen.", Tone.MUTED))  # fmt: skip
            yield Input(placeholder="why? (optional)", id="words", max_length=400)
        elif self._breaks is Breaks.PROCTOR:
            yield Words(paragraph("In this session only a proctor may stop the clock. Ask them for a break."))
        else:
            yield Words(
                paragraph("This session has no breaks: the clock runs until you submit or time is up.")
            )

    def keys(self) -> Sequence[tuple[str, str]]:
        return (
            (("enter", "stop the clock"), ("esc", "keep it running")) if self.allowed else (("esc", "close"),)
        )

    @on(Input.Submitted)
    def _take(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class HealthPage(Dialog[None]):
    """Every light with its reason."""

    title_text = "Is everything well?"

    def __init__(self, view: View) -> None:
        super().__init__()
        self._lines = health_lines(view)

    def body(self) -> Iterable[Widget]:
        yield Words(self._lines, id="health")

    def show(self, view: View) -> None:
        self.query_one("#health", Words).put(health_lines(view))


_LIGHT_WORDS = {
    Light.GREEN: ("● well", Tone.GOOD),
    Light.AMBER: ("▲ impaired", Tone.WARN),
    Light.RED: ("■ broken", Tone.BAD),
}
_PART_WORDS = {
    Part.RECORDER: "recording",
    Part.SNAPSHOTS: "snapshots",
    Part.HOST: "host",
    Part.DISK: "disk",
    Part.GPU: "gpu",
    Part.WATCHING: "file watching",
    Part.SCORER: "scorer",
    Part.GATEWAY: "model gateway",
}


def health_lines(view: View) -> list[Line]:
    """Return each part's light, reason and time."""
    lines: list[Line] = []
    for part, name in _PART_WORDS.items():
        light = light_of(view, part)
        word, tone = _LIGHT_WORDS[light]
        health = view.state.health.get(part)
        since = f"  since {health.at[11:19]} UTC" if health else ""
        lines.append(fact(name, (word, tone), (since, Tone.MUTED)))
        reason = view.link.why if part is Part.HOST and not view.link.up else health.reason if health else ""
        lines += [
            ((" " * 14 + drawn[0][0], Tone.TEXT),)
            for drawn in paragraph(one_line(reason), measure=52)
            if reason
        ]
    opened = view.state.opened
    lines += [EMPTY, fact("isolation", opened.isolation.level.value)]
    lines += [((" " * 14 + drawn[0][0], Tone.MUTED),)
              for one in isolation_sentences(opened.isolation) for drawn in paragraph(one, measure=52)]  # fmt: skip
    unrecorded = [shell for shell in view.state.shells if shell.recording is None and not shell.closed]
    if unrecorded:
        lines += [EMPTY, fact("shells", (f"{len(unrecorded)} not recorded", Tone.WARN))]
    return lines


class MessagePage(Dialog[bool]):
    """A proctor's message in full."""

    title_text = "Message"

    def __init__(self, view: View) -> None:
        super().__init__()
        self._message = view.unread
        self._may = view.mode is Mode.LIVE
        self.title_text = (
            f"Message from {one_line(self._message.by)}" if self._message else "No message waits"
        )

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,a", "acknowledge", "acknowledge", show=False)]

    def body(self) -> Iterable[Widget]:
        yield Words(paragraph(self._message.text) if self._message else [])

    def keys(self) -> Sequence[tuple[str, str]]:
        return (
            (("enter", "acknowledge"), ("esc", "later"))
            if self._message and self._may
            else (("esc", "close"),)
        )

    def action_acknowledge(self) -> None:
        self.dismiss(self._message is not None and self._may)


KEYS = (
    ("s  c", "score the work folder, or only check it"), ("n", "write a note"), ("p  r", "pause, resume"),
    ("t", "recorded shell in the work folder"), ("b", "brief, with contents and search"),
    ("f", "files changed since the last snapshot"), ("enter  d", "details and diff of the score under the cursor"),
    ("x", "cancel the running score"), ("a", "read and acknowledge a proctor's message"),
    ("h", "health of recorder, snapshots, host"), ("l  z", "chart: linear or logarithmic, zoom"),
    ("1-5  ← →", "overview, brief, notes, files, machine"), ("tab  ↑ ↓", "next panel, move or scroll (also j k)"),
    ("ctrl+p", "all commands"), ("S", "submit and finish"), ("q", "detach; the session goes on"),
)  # fmt: skip
"""As many as a terminal of 24 rows shows."""
WATCHING = {
    "s  c": None, "n": None, "p  r": None, "t": None, "f": None, "x": None, "S": None,
    "a": "read a proctor's message in full", "q": "quit; the session goes on",
}  # fmt: skip
"""What differs where nothing can be sent: other words, or no such key."""


def keys_of(mode: Mode) -> list[tuple[str, str]]:
    """Return the keys of the main screen that do something in this mode."""
    if mode is Mode.LIVE:
        return list(KEYS)
    said = ((key, WATCHING.get(key, what)) for key, what in KEYS)
    return [(key, what) for key, what in said if what is not None]


class KeysPage(Dialog[None]):
    """Every key of the main screen."""

    title_text = "Keys"

    def __init__(self, mode: Mode) -> None:
        super().__init__()
        self._mode = mode

    def body(self) -> Iterable[Widget]:
        yield Words([((f"{key:<12}", Tone.KEY), (what, Tone.TEXT)) for key, what in keys_of(self._mode)])
