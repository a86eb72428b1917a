"""Takes a terminal's output apart: text, controls and escape sequences, from bytes cut anywhere."""

from __future__ import annotations

import codecs
import re

# One token at a time. Device strings (OSC, DCS, SOS, PM, APC) are recognised by their first two characters and
# then skipped up to their end, however long they are.
_TOKEN = re.compile(
    r"([^\x00-\x1f\x7f-\x9f]+)"  # 1 text
    r"|(?:\x1b\[|\x9b)([<-?]*)([0-9:;]*)([ -/]*)([@-~])"  # 2 private, 3 parameters, 4 intermediate, 5 final
    r"|([\x00-\x1a\x1c-\x1f\x7f-\x8f\x91-\x97\x99\x9a\x9c]+)"  # 6 controls
    r"|(\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])"  # 7 a device string begins
    r"|((?:\x1b[ -/]*|(?:\x1b\[|\x9b)[0-?]*[ -/]*)\Z)"  # 8 cut short
    r"|\x1b([ -/]*)([0-Z\\`-~])"  # 9 intermediate, 10 final
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*|\x1b"  # malformed: dropped, and what follows is read anew
)
_STRING_END = re.compile(r"[\x07\x18\x1a\x9c]|\x1b\\|\x1b(?=[^\\])")
_LONGEST_PARTIAL = 256


class Parser:
    """Calls `text`, `controls`, `csi` and `esc` for what it finds; subclasses say what those mean."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._in_string = False

    def feed(self, data: bytes) -> None:
        """Read more output; sequences and characters may be cut between calls."""
        found = self._pending + self._decoder.decode(data)
        self._pending = ""
        position = 0
        end = len(found)
        match = _TOKEN.match
        text, csi = self.text, self.csi
        while position < end:
            if self._in_string:
                position = self._skip_string(found, position)
                continue
            token = match(found, position)
            assert token is not None
            position = token.end()
            group = token.lastindex
            if group == 1:
                text(token[1])
            elif group == 5:
                csi(token[2], token[3], token[4], token[5])
            elif group == 6:
                self.controls(token[6])
            elif group == 10:
                self.esc(token[9], token[10])
            elif group == 7:
                self._in_string = True
            elif group == 8 and end - token.start() <= _LONGEST_PARTIAL:
                self._pending = token[8]

    def _skip_string(self, found: str, position: int) -> int:
        stop = _STRING_END.search(found, position)
        if stop is None:
            if found.endswith("\x1b"):
                self._pending = "\x1b"
            return len(found)
        self._in_string = False
        # An escape other than ST ends the string and begins something new.
        return stop.start() if stop[0] == "\x1b" else stop.end()

    def parser_state(self) -> tuple[bytes, int, str, bool]:
        """Return what is half read, for `restore_parser`."""
        buffered, flag = self._decoder.getstate()
        return buffered, flag, self._pending, self._in_string

    def restore_parser(self, state: tuple[bytes, int, str, bool]) -> None:
        buffered, flag, self._pending, self._in_string = state
        self._decoder.setstate((buffered, flag))

    def text(self, text: str) -> None:
        raise NotImplementedError

    def controls(self, controls: str) -> None:
        raise NotImplementedError

    def csi(self, private: str, parameters: str, intermediate: str, final: str) -> None:
        raise NotImplementedError

    def esc(self, intermediate: str, final: str) -> None:
        raise NotImplementedError


def numbers(parameters: str, default: int = 0) -> list[int]:
    """Return a sequence's parameters; absent ones are `default`, absurd ones are capped."""
    if not parameters:
        return [default]
    return [min(int(p), 99_999) if p.isdecimal() and len(p) < 9 else default for p in parameters.split(";")]


class Sanitiser(Parser):
    """Lets through what draws, and nothing that touches clipboard, title, links, keys, mouse or the device.

    A list of what is allowed, not of what is forbidden: an unknown sequence is dropped.
    """

    _CSI = frozenset("@ABCDEFGHIJKLMPSTXZ`abdefgrsu")
    _MODES = frozenset((1, 5, 6, 7, 25, 47, 1047, 1048, 1049))
    _ESC = frozenset("78DEHMc=>")
    _CONTROLS = re.compile(r"[^\x08-\x0f]")

    def __init__(self) -> None:
        super().__init__()
        self._out: list[str] = []

    def pass_through(self, data: bytes) -> str:
        """Return what of `data` may be shown, together with what earlier calls held back."""
        self._out.clear()
        self.feed(data)
        return "".join(self._out)

    def rest(self) -> str:
        """Return what a character cut off at the end stands for; half a sequence stands for nothing."""
        return "" if self._in_string else self._decoder.decode(b"", final=True)

    def text(self, text: str) -> None:
        self._out.append(without_bidi(text))

    def controls(self, controls: str) -> None:
        self._out.append(self._CONTROLS.sub("", controls))

    def csi(self, private: str, parameters: str, intermediate: str, final: str) -> None:
        if private == "?" and not intermediate and final in "hl":
            kept = ";".join(str(n) for n in numbers(parameters) if n in self._MODES)
            if kept:
                self._out.append(f"\x1b[?{kept}{final}")
        elif private or intermediate:
            if (private, intermediate, final) == ("", "!", "p"):
                self._out.append("\x1b[!p")
        elif final in self._CSI or final == "m" or (final in "hl" and parameters == "4"):
            self._out.append(f"\x1b[{parameters}{final}")

    def esc(self, intermediate: str, final: str) -> None:
        if (not intermediate and final in self._ESC) or (intermediate in ("(", ")") and final in "0AB"):
            self._out.append(f"\x1b{intermediate}{final}")


_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def without_bidi(text: str) -> str:
    """Drop characters that reorder what a reader sees."""
    return text if text.isascii() else _BIDI.sub("", text)
