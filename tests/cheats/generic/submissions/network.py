"""Connects out, resolves names, and tries the host's own ports and sockets. Seen: answers fetched from the hub. Expected: harmless."""

import contextlib
import json
import socket
from pathlib import Path

TARGETS = json.loads((Path(__file__).parent / "targets.json").read_text())


def predict(xs):
    for address in (("1.1.1.1", 53), ("127.0.0.1", TARGETS["port"]), ("169.254.169.254", 80)):
        with contextlib.suppress(OSError):
            socket.create_connection(address, timeout=0.3)
            print("GOT through to", address)
    with contextlib.suppress(OSError):
        print("GOT a name:", socket.getaddrinfo("example.org", 443))
    for name in (TARGETS["socket"], TARGETS["abstract_socket"].replace("@", "\0")):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as end:
            end.settimeout(0.3)
            end.connect(name)
            print("GOT through to", repr(name))
    return [14.0 for _ in xs]
