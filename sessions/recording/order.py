"""What a recorder is told to do, on its command line."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import msgspec

from sessions.recording.flood import Limits
from sessions.recording.writer import Rotation


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a recorder is to do."""

    folder: Path
    number: int
    socket: Path
    cwd: Path
    argv: list[str]
    environment: dict[str, str]
    command: str
    """What the record calls the program."""
    size: tuple[int, int] = (24, 80)
    record_input: bool = False
    participant: int | None = None
    """User id that owns the terminal and the socket, where the participant is another user."""
    limits: Limits = Limits()
    rotation: Rotation = Rotation()


def order_of(arguments: list[str]) -> Order:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sessions.recording.recorder", description="Records a shell; see the module."
    )
    parser.add_argument("--record", type=Path, required=True, help="folder of this recording")
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--cwd", type=Path, required=True)
    parser.add_argument("--argv-json", help="the program, already wrapped for isolation; default $SHELL")
    parser.add_argument("--environment-on-stdin", action="store_true", help="as JSON; default this process's")
    parser.add_argument("--rows", type=int, default=24)
    parser.add_argument("--cols", type=int, default=80)
    parser.add_argument("--record-input", action="store_true")
    parser.add_argument("--participant", type=int, help="user id that owns the terminal and the socket")
    parser.add_argument("--limits-json", help="a sessions.recording.flood.Limits")
    parser.add_argument("--rotation-json", help="a sessions.recording.writer.Rotation")
    parser.add_argument("--command", help="what the record calls the program; default its words")
    found = parser.parse_args(arguments)
    argv = json.loads(found.argv_json) if found.argv_json else [os.environ.get("SHELL", "/bin/sh")]
    return Order(
        found.record,
        found.number,
        found.socket,
        found.cwd,
        argv,
        json.load(sys.stdin) if found.environment_on_stdin else dict(os.environ),
        found.command or " ".join(argv),
        (found.rows, found.cols),
        found.record_input,
        found.participant,
        msgspec.json.decode(found.limits_json, type=Limits) if found.limits_json else Limits(),
        msgspec.json.decode(found.rotation_json, type=Rotation) if found.rotation_json else Rotation(),
    )
