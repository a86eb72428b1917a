"""Sends its answer at once and goes on working when the clock has stopped. Seen: reference-kernels, work after return. Expected: invalid."""

import gc
import time

import numpy as np

from environments.worker.messages import Channel, Message, pack_array


def predict(xs):
    description, content = pack_array(np.zeros(len(xs)))
    for thing in gc.get_objects():
        if isinstance(thing, Channel):
            thing.send(Message("answer", {"predictions": description}, {"predictions": content}))
    time.sleep(60)
