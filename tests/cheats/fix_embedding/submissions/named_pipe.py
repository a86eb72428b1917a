"""A named pipe: the scorer waits for ever, or is fed bytes to order. Seen: blocking opens. Expected: invalid."""

import os


def make(material):
    os.mkfifo(material.target)
