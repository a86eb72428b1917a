"""The brief: set Markdown that scrolls, with search and jumps between headings."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from workbench.ink.lines import Line, Span, Tone, text_of
from workbench.tui.markdown import Heading, Page, page_of
from workbench.tui.source import Mode
from workbench.tui.view import View
from workbench.tui.widgets.rows import Rows


class BriefPage(Rows):
    """Set once a width; searching only repaints."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("]", "heading(1)", "next heading", show=False),
        Binding("[", "heading(-1)", "heading before", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self._page: Page | None = None
        self._set: tuple[str, int] | None = None
        self.sought = ""

    @property
    def headings(self) -> list[Heading]:
        return self._page.headings if self._page else []

    def scrolling(self, view: View, width: int) -> list[Line]:
        if view.brief is None:
            waiting = "the brief appears when the clock starts"
            text = (
                waiting
                if view.state.started_at is None or view.mode is not Mode.LIVE
                else "fetching the brief"
            )
            return [((text, Tone.MUTED),)]
        if self._page is None or self._set != (view.brief, width):
            self._set = (view.brief, width)
            self._page = page_of(view.brief, width - 1)
        return [marked(drawn, self.sought) for drawn in self._page.lines]

    def search(self, words: str) -> int:
        """Mark every line that holds `words`, go to the next one below, and return how many there are."""
        self.sought = words.casefold().strip()
        self.redraw()
        found = self.found()
        if found:
            here = self.scroll_offset.y
            self.scroll_to(y=next((line for line in found if line > here), found[0]), animate=False)
        return len(found)

    def found(self) -> list[int]:
        """Return the lines that hold what is sought."""
        if not self.sought or self._page is None:
            return []
        return [at for at, drawn in enumerate(self._page.lines) if self.sought in text_of(drawn).casefold()]

    def go_to(self, heading: Heading) -> None:
        self.scroll_to(y=heading.line, animate=False)

    def action_heading(self, by: int) -> None:
        here = self.scroll_offset.y
        lines = [heading.line for heading in self.headings]
        following = (
            [line for line in lines if line > here]
            if by > 0
            else [line for line in lines if line < here][::-1]
        )
        if following:
            self.scroll_to(y=following[0], animate=False)


def marked(drawn: Line, sought: str) -> Line:
    """Return the line with each occurrence of `sought` in the tone of a find."""
    if not sought or sought not in text_of(drawn).casefold():
        return drawn
    spans: list[Span] = []
    characters = [(character, tone) for text, tone in drawn for character in text]
    plain = "".join(character for character, _ in characters)
    hits: set[int] = set()
    at = plain.casefold().find(sought)
    while at >= 0:
        hits.update(range(at, at + len(sought)))
        at = plain.casefold().find(sought, at + 1)
    for index, (character, tone) in enumerate(characters):
        now = Tone.FOUND if index in hits else tone
        if spans and spans[-1][1] is now:
            spans[-1] = (spans[-1][0] + character, now)
        else:
            spans.append((character, now))
    return tuple(spans)
