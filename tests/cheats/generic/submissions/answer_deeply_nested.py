"""Sends JSON nested a hundred thousand deep to blow the scorer's stack. Seen: JSON parsers. Expected: invalid."""

import gc
import json

from environments.worker.messages import _HEAD, _MAGIC, Channel


def predict(xs):
    deep = b'{"kind": "answer", "body": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b', "blobs": []}'
    for thing in gc.get_objects():
        if isinstance(thing, Channel):
            thing._send_all(_HEAD.pack(_MAGIC, thing._nonce, len(deep), 0) + deep, None)
    return [14.0 for _ in xs]
