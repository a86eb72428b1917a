"""Sets Markdown as drawn lines with a table of contents; what it does not know it shows literally."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from workbench.tui.ink import EMPTY, Line, Span, Tone
from workbench.tui.text import broken, fit, lines_of, plain, width

if TYPE_CHECKING:
    from markdown_it.token import Token

MEASURE = 88
"""Longest line of running text in cells; longer ones tire the eye."""


class Heading(NamedTuple):
    """An entry of the table of contents."""

    level: int
    text: str
    line: int
    """Where it stands among the lines."""


class Page(NamedTuple):
    """A document set at some width."""

    lines: list[Line]
    headings: list[Heading]


def page_of(markdown: str, total: int) -> Page:
    """Set `markdown` at a width of `total` cells."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    setter = _Setter(max(8, min(total, MEASURE)))
    setter.run(tokens)
    while setter.lines and not setter.lines[-1]:
        setter.lines.pop()
    return Page(setter.lines, setter.headings)


class _Setter:
    """Walks block tokens and writes lines."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.lines: list[Line] = []
        self.headings: list[Heading] = []
        self._prefix: list[Span] = []
        self._counters: list[int | None] = []
        self._pending: set[int] = set()
        """Places in the prefix whose bullet has not been written yet."""

    def run(self, tokens: Sequence[Token]) -> None:
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if token.type == "table_open":
                end = next(at for at in range(index, len(tokens)) if tokens[at].type == "table_close")
                self._table(tokens[index:end])
                index = end
            else:
                self._token(token, tokens[index + 1] if index + 1 < len(tokens) else None)
            index += 1

    def _token(self, token: Token, following: Token | None) -> None:
        match token.type:
            case "heading_open" if following is not None:
                self._heading(int(token.tag[1]), following)
            case "inline" if not token.meta.get("set"):
                self._paragraph(token)
            case "fence" | "code_block" | "html_block":
                self._code(token.content)
            case "bullet_list_open":
                self._counters.append(None)
            case "ordered_list_open":
                self._counters.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                self._counters.pop()
                if not self._counters:
                    self._blank()
            case "list_item_open":
                self._item()
            case "list_item_close":
                if self._pending:
                    self.lines.append(tuple(self._indents()[0]))
                self._prefix.pop()
            case "blockquote_open":
                self._prefix.append(("▎ ", Tone.FAINT))
            case "blockquote_close":
                self._prefix.pop()
            case "hr":
                self.lines.append((("─" * self.total, Tone.FAINT),))
                self._blank()

    def _blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append(EMPTY)

    def _heading(self, level: int, inline: Token) -> None:
        inline.meta["set"] = True
        spans = list(_inline(inline))
        text = "".join(text for text, _ in spans).strip()
        self._blank()
        self.headings.append(Heading(level, text, len(self.lines)))
        tone = Tone.STRONG if level == 1 else Tone.HEADING
        self.lines += _flow([(text, tone)], self.total)
        if level == 1:
            self.lines.append((("─" * min(self.total, width(text)), Tone.FAINT),))
        self.lines.append(EMPTY)

    def _paragraph(self, token: Token) -> None:
        first, rest = self._indents()
        self.lines += _flow(list(_inline(token)), self.total, first, rest)
        if not token.hidden and not self._counters:
            self._blank()

    def _indents(self) -> tuple[list[Span], list[Span]]:
        """Return what stands before the first line and before the others."""
        rest = [(" " * width(text) if tone is Tone.ACCENT else text, tone) for text, tone in self._prefix]
        first = [self._prefix[at] if at in self._pending else span for at, span in enumerate(rest)]
        self._pending.clear()
        return first, rest

    def _item(self) -> None:
        counter = self._counters[-1]
        if counter is None:
            bullet: Span = ("• ", Tone.ACCENT)
        else:
            bullet = (f"{counter}. ", Tone.ACCENT)
            self._counters[-1] = counter + 1
        self._pending.add(len(self._prefix))
        self._prefix.append(bullet)

    def _code(self, content: str) -> None:
        first, rest = self._indents()
        inside = self.total - sum(width(text) for text, _ in rest)
        for number, one in enumerate(lines_of(content.rstrip("\n"))):
            self.lines.append((*(rest if number else first), (fit("  " + one, inside), Tone.CODE)))
        self._blank()

    def _table(self, tokens: Sequence[Token]) -> None:
        rows: list[list[str]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append("".join(text for text, _ in _inline(token)))
        columns = max((len(row) for row in rows), default=0)
        wide = [max((width(row[at]) for row in rows if at < len(row)), default=0) for at in range(columns)]
        room = self.total - 2 * (columns - 1)
        while sum(wide) > room and max(wide) > 4:
            wide[wide.index(max(wide))] -= 1
        for number, row in enumerate(rows):
            tone = Tone.LABEL if number == 0 else Tone.TEXT
            self.lines.append(tuple((fit(cell, wide[at]) + "  ", tone) for at, cell in enumerate(row)))
            if number == 0:
                self.lines.append((("  ".join("─" * each for each in wide), Tone.FAINT),))
        self._blank()


def _inline(token: Token) -> Iterator[Span]:
    """Yield the spans of a paragraph; a line break is the text `\\n`."""
    tones = [Tone.TEXT]
    link = ""
    for child in token.children or ():
        match child.type:
            case "strong_open":
                tones.append(Tone.STRONG)
            case "em_open":
                tones.append(Tone.LABEL)
            case "link_open":
                link = str(child.attrs.get("href", ""))
                tones.append(Tone.ACCENT)
            case "strong_close" | "em_close":
                tones.pop()
            case "link_close":
                tones.pop()
                yield f" ({plain(link)})", Tone.MUTED
            case "code_inline":
                yield plain(child.content), Tone.CODE
            case "softbreak":
                yield " ", tones[-1]
            case "hardbreak":
                yield "\n", tones[-1]
            case "image":
                yield f"[image: {plain(child.content)}]", Tone.MUTED
            case _:
                yield plain(child.content), tones[-1]


def _flow(
    spans: Sequence[Span], total: int, first: Sequence[Span] = (), rest: Sequence[Span] = ()
) -> list[Line]:
    """Wrap spans at blanks into lines, each beginning with its indent."""
    lines: list[Line] = []
    current: list[Span] = list(first)
    used = sum(width(text) for text, _ in first)
    indent = sum(width(text) for text, _ in rest)
    fresh, gap = True, None

    def turn() -> None:
        nonlocal current, used, fresh, gap
        lines.append(tuple(current))
        current, used, fresh, gap = list(rest), indent, True, None

    for word, tone in _words(spans):
        if word == "\n":
            turn()
            continue
        if word == " ":
            gap = tone
            continue
        if not fresh and used + (gap is not None) + width(word) > total:
            turn()
        if gap is not None and not fresh:
            current.append((" ", gap))
            used += 1
        for piece in filter(None, broken(word, max(1, total - indent))):
            if used + width(piece) > total and not fresh:
                turn()
            current.append((piece, tone))
            used += width(piece)
            fresh, gap = False, None
    lines.append(tuple(current))
    return lines


def _words(spans: Sequence[Span]) -> Iterator[Span]:
    for text, tone in spans:
        if text == "\n":
            yield text, tone
            continue
        word = ""
        for character in text:
            if character == " ":
                if word:
                    yield word, tone
                yield " ", tone
                word = ""
            else:
                word += character
        if word:
            yield word, tone
