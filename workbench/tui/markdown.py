"""Sets Markdown as drawn lines with a table of contents; what it does not know it shows literally."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from workbench.ink.lines import EMPTY, Line, Span, Tone, fit
from workbench.ink.text import broken, lines_of, plain, width
from workbench.ink.text import fit as fit_text

if TYPE_CHECKING:
    from markdown_it.token import Token

MEASURE = 88
"""Longest line of running text in cells; longer ones tire the eye."""
_GAP = 2
_NARROWEST = 4
"""A table whose columns would be narrower is set as a list."""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


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
            case "fence" | "code_block":
                self._code(token.content)
            case "html_block":
                self._html(token.content)
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
        room = max(1, inside - 2)
        pieces = [
            ("… " if at else "  ") + piece
            for one in lines_of(content.rstrip("\n"))
            for at, piece in enumerate(broken(one, room))
            if piece or not at
        ]
        for number, piece in enumerate(pieces):
            self.lines.append((*(rest if number else first), (fit_text(piece, inside), Tone.CODE)))
        self._blank()

    def _html(self, content: str) -> None:
        """Show HTML literally, except comments: they are for those who have the file."""
        shown = _COMMENT.sub("", content)
        if shown.strip():
            self._code(shown.strip("\n"))

    def _table(self, tokens: Sequence[Token]) -> None:
        rows: list[list[list[Span]]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(list(_inline(token)))
        first, rest = self._indents()
        room = self.total - sum(width(text) for text, _ in rest)
        wide = _columns(rows, room)
        drawn = _grid(rows, wide) if wide else _listed(rows, room)
        self.lines += [(*(rest if number else first), *one) for number, one in enumerate(drawn)]
        self._blank()


def _columns(rows: Sequence[Sequence[Sequence[Span]]], room: int) -> list[int]:
    """Return how wide each column is, words kept whole where there is room; none where it cannot be a table."""
    count = max((len(row) for row in rows), default=0)
    free = room - _GAP * (count - 1)
    if free < count * _NARROWEST:
        return []
    columns = [[row[at] for row in rows if at < len(row)] for at in range(count)]
    wide = [max(sum(width(text) for text, _ in cell) for cell in column) for column in columns]
    words = [
        max((sum(width(text) for text, _ in word) for cell in column for word in _words(cell)), default=0)
        for column in columns
    ]
    while sum(wide) > free:
        spare = [at for at in range(count) if wide[at] > max(words[at], _NARROWEST)]
        widest = max(spare or range(count), key=wide.__getitem__)
        wide[widest] -= 1
    return wide


def _grid(rows: Sequence[Sequence[Sequence[Span]]], wide: Sequence[int]) -> Iterator[Line]:
    """Yield rows of wrapped cells under their titles; blank lines where the first cells could run together."""
    cells = [[_flow(cell, max(1, wide[at])) for at, cell in enumerate(row)] for row in rows]
    loose = any(len(row[0]) > 1 for row in cells[1:] if row)
    for number, row in enumerate(cells):
        if loose and number > 1:
            yield EMPTY
        for at in range(max((len(cell) for cell in row), default=0)):
            spans: list[Span] = []
            for column, cell in enumerate(row):
                spans += fit(cell[at] if at < len(cell) else EMPTY, wide[column])
                spans.append((" " * _GAP, Tone.TEXT))
            yield tuple((text, Tone.LABEL if number == 0 else tone) for text, tone in spans[:-1])
        if number == 0:
            yield (((" " * _GAP).join("─" * each for each in wide), Tone.FAINT),)


def _listed(rows: Sequence[Sequence[Sequence[Span]]], room: int) -> Iterator[Line]:
    """Yield each cell after its column's title, for a table that is too narrow to stand as one."""
    for row in rows[1:]:
        for title, cell in zip(rows[0], row, strict=False):
            name = "".join(text for text, _ in title)
            yield from _flow([(name, Tone.LABEL), ("  ", Tone.TEXT), *cell], room)
        yield EMPTY


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
            case "html_inline" if child.content.startswith("<!--"):
                continue
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

    for word in _words(spans):
        text, tone = word[0]
        if text == "\n":
            turn()
            continue
        if text == " ":
            gap = tone
            continue
        if not fresh and used + (gap is not None) + sum(width(part) for part, _ in word) > total:
            turn()
        if gap is not None and not fresh:
            current.append((" ", gap))
            used += 1
        for part, look in word:
            for piece in filter(None, broken(part, max(1, total - indent))):
                if used + width(piece) > total and not fresh:
                    turn()
                current.append((piece, look))
                used += width(piece)
                fresh, gap = False, None
    lines.append(tuple(current))
    return lines


def _words(spans: Sequence[Span]) -> Iterator[list[Span]]:
    """Yield blanks, line breaks, and words; a word may change its tone, as code before a comma does."""
    word: list[Span] = []
    for text, tone in spans:
        for part in re.findall(r"[ \n]|[^ \n]+", text):
            if part not in {" ", "\n"}:
                word.append((part, tone))
                continue
            if word:
                yield word
            yield [(part, tone)]
            word = []
    if word:
        yield word
