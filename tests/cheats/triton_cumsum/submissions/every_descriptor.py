"""Writes a forged answer to every descriptor. Seen: pygpubench. Expected: invalid or crashed."""

import json
import os
import struct

import numpy as np

header = json.dumps({"kind": "answer", "body": {"seconds": 1e-9}, "blobs": []}).encode()
frame = struct.pack("!4s16sIQ", b"RBW1", bytes(16), len(header), 0) + header


def prefix_sum(x):
    for number in range(3, 64):
        try:
            os.write(number, frame)
        except OSError:
            continue
    return np.zeros_like(x)
