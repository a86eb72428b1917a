"""A pickle that runs code when loaded, under the expected name. Seen: checkpoints on public hubs. Expected: invalid."""

import pickle


class Payload:
    def __reduce__(self):
        return print, ("GOT CODE TO RUN",)


def make(material):
    material.target.write_bytes(pickle.dumps(Payload()))
