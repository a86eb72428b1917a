"""Notes and changed files: two lists beside the brief."""

from __future__ import annotations

from workbench.ink import figures, words
from workbench.ink.lines import EMPTY, Line, Tone, beside, heading
from workbench.ink.text import lines_of, plain, wrap
from workbench.tui.source import Mode
from workbench.tui.view import View
from workbench.tui.widgets.rows import Rows


class NotesPage(Rows):
    """Everything noted, newest first; `titled` where no tab names it."""

    titled = False

    def fixed(self, view: View, width: int) -> list[Line]:
        return [heading("NOTES", width, focused=self.has_focus), EMPTY] if self.titled else []

    def scrolling(self, view: View, width: int) -> list[Line]:
        notes = view.state.notes
        if not notes:
            offer = " · n writes one into the record" if view.can_act else ""
            return [((f"no notes yet{offer}", Tone.MUTED),)]
        lines: list[Line] = []
        for note in reversed(notes):
            by = "" if note.by == "participant" else f"  {plain(note.by)}"
            lines.append(((words.clock_time(note.elapsed_ms), Tone.LABEL), (by, Tone.MUTED)))
            lines += [((piece, Tone.TEXT),) for one in lines_of(note.text) for piece in wrap(one, width)]
            lines.append(EMPTY)
        return lines[:-1]


_MARKS = {"added": ("+ ", Tone.GOOD), "modified": ("~ ", Tone.ACCENT),
          "removed": ("- ", Tone.BAD),
          "type-changed": ("! ", Tone.WARN)}  # fmt: skip


class FilesPage(Rows):
    """What differs from the last snapshot."""

    def scrolling(self, view: View, width: int) -> list[Line]:
        last = view.state.last_snapshot
        since = f"since snapshot {last.number} ({last.reason.value})" if last else "no snapshot yet"
        lines: list[Line] = []
        if view.changed_problem:
            lines = [((plain(view.changed_problem), Tone.WARN),)]
        elif view.changed is None:
            offer = "" if view.mode is Mode.WATCH else " · press f"
            lines = [((since + offer, Tone.MUTED),)]
        elif not view.changed:
            lines = [((f"nothing changed {since}", Tone.MUTED),)]
        else:
            lines = [((f"{words.count(view.changed_count, 'file')} changed {since}", Tone.MUTED),), EMPTY]
            lines += [_file(one.path, one.change, one.size, width) for one in view.changed]
            if (more := view.changed_count - len(view.changed)) > 0:
                lines.append(((f"and {words.count(more, 'file')} more", Tone.MUTED),))
        if last is not None and last.skipped_count:
            lines += [
                EMPTY,
                ((f"{words.count(last.skipped_count, 'file')} left out of the last snapshot:", Tone.WARN),),
            ]
            lines += [((f"  {plain(one.path)}  {plain(one.reason)}", Tone.MUTED),) for one in last.skipped]
        return lines


def _file(path: str, change: str, size: int | None, width: int) -> Line:
    mark, tone = _MARKS.get(change, ("? ", Tone.WARN))
    left: Line = ((mark, tone), (plain(path), Tone.TEXT))
    return beside(left, ((figures.size(size) if size is not None else "", Tone.MUTED),), width)
