"""Row 12: nothing a recording holds can act on a reviewer's terminal."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions.recording.asciicast import Version, export
from sessions.recording.escapes import Sanitiser
from sessions.recording.player import Player
from sessions.recording.terminal import Terminal
from tests.sessions.recording_support import write_recording

pytestmark = pytest.mark.failures

HOSTILE = {
    "title": b"\x1b]0;pwned\x07",
    "icon": b"\x1b]1;pwned\x1b\\",
    "link": b"\x1b]8;;http://evil.example/\x1b\\click\x1b]8;;\x1b\\",
    "clipboard": b"\x1b]52;c;cm0gLXJmIC8K\x07",
    "clipboard query": b"\x1b]52;c;?\x1b\\",
    "notification": b"\x1b]9;pwned\x07\x1b]777;notify;a;b\x07",
    "colours": b"\x1b]4;1;#000000\x07\x1b]10;#000000\x07\x1b]11;?\x07\x1b]104\x07",
    "inline file": b"\x1b]1337;File=name=eA==;inline=0:AAAA\x07",
    "settings string": b'\x1bP$q"p\x1b\\',
    "termcap query": b"\x1bP+q544e\x1b\\",
    "sixel": b"\x1bPq#0;2;0;0;0~~\x1b\\",
    "tmux passthrough": b"\x1bPtmux;\x1b\x1b]52;c;cHduZWQ=\x07\x1b\\",
    "application": b"\x1b_Gf=24;AAAA\x1b\\",
    "privacy": b"\x1b^pwned\x1b\\",
    "start of string": b"\x1bXpwned\x1b\\",
    "attributes": b"\x1b[c\x1b[>c\x1b[=c\x1bZ",
    "position": b"\x1b[6n\x1b[?6n\x1b[5n",
    "mode query": b"\x1b[?2026$p\x1b[4$p",
    "window": b"\x1b[21t\x1b[14t\x1b[3;0;0t\x1b[8;1;1t",
    "print": b"\x1b[5i\x1b[4i",
    "keyboard": b"\x1b[>4;2m\x1b[>1u\x1b[?1h\x1b[?66h",
    "mouse": b"\x1b[?1000h\x1b[?1003h\x1b[?1006h\x1b[?1004h\x1b[?2004h",
    "version": b"\x1b[>q",
    "checksum": b"\x1b[1;1;1;1;1;1*y",
    "answerback": b"\x05",
    "eight-bit": "\u009d52;c;cHduZWQ=\u009c\u009b6n\u0090q\u009c".encode(),
    "raw eight-bit": b"\x9d52;c;cHduZWQ=\x9c\x9b6n",
    "status": b"\x1b]633;A\x07\x1b]133;A\x07",
    "nested": b"\x1b]0;\x1b]52;c;QQ==\x07",
    "interrupted": b"\x1b[3\x1b]52;c;QQ==\x07m",
    "cut by cancel": b"\x1b]52;c;QQ==\x18\x1b]52;c;QQ==\x1a",
    "bidi": "\u202egnp.exe\u2066".encode(),
}
"""By name; each is meant to reach a reviewer's clipboard, title, links, keys, settings or input."""

_ALLOWED = re.compile(
    "[^\x00-\x1f\x7f-\x9f]|[\x08-\x0f]|\x1b\\[[0-9:;]*[@A-HIJKLMPSTXZ`abdefgrsum]|\x1b\\[4[hl]|\x1b\\[!p"
    "|\x1b\\[\\?(?:(?:1|5|6|7|25|47|1047|1048|1049);?)+[hl]|\x1b[78DEHMc=>]|\x1b[()][0AB]"
)


def assert_harmless(text: str) -> None:
    left = _ALLOWED.sub("", text)
    assert left == "", f"{left!r} came through"
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_sequence_reaches_the_screen_or_an_export(tmp_path: Path, name: str) -> None:
    write_recording(tmp_path / "1", [b"before " + HOSTILE[name][:3], HOSTILE[name][3:] + b" after"])
    screen = Player(tmp_path / "1").screen_at(1 << 62)
    for line in screen.lines:
        for span in line:
            assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs") for char in span.text)
    # Bytes that are no UTF-8 begin nothing: what follows them is inert text, as in xterm.
    assert "cHduZWQ" not in screen.text() or name == "raw eight-bit"
    assert "after" in screen.text()
    for version in Version:
        export(tmp_path / "1", tmp_path / "out.cast", version)
        events = [json.loads(line) for line in (tmp_path / "out.cast").read_text().splitlines()[1:]]
        output = "".join(event[2] for event in events if event[1] == "o")
        assert_harmless(output)
        assert "52;c" not in output or name == "raw eight-bit"
        assert "pwned" not in output


PIECES = st.one_of(
    st.sampled_from(list(HOSTILE.values())), st.binary(max_size=12), st.just(b"\x1b"), st.just(b"\x1b[")
)


@given(st.lists(PIECES, max_size=20))
@settings(max_examples=300, deadline=None)
def test_no_mixture_of_them_cut_anywhere_does_either(pieces: list[bytes]) -> None:
    sanitiser = Sanitiser()
    shown = "".join(sanitiser.pass_through(piece) for piece in pieces) + sanitiser.rest()
    assert_harmless(shown)
    terminal = Terminal(10, 40)
    for piece in pieces:
        terminal.feed(piece)
    assert not re.search(
        "[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", terminal.screen().text().replace("\n", "")
    )


@given(st.lists(PIECES, max_size=20))
@settings(max_examples=150, deadline=None)
def test_what_is_drawn_is_the_same_with_and_without_the_filter(pieces: list[bytes]) -> None:
    whole, filtered, sanitiser = Terminal(10, 40), Terminal(10, 40), Sanitiser()
    for piece in pieces:
        whole.feed(piece)
        filtered.feed(sanitiser.pass_through(piece).encode("utf-8", "replace"))
    assert filtered.screen().text() == whole.screen().text()
