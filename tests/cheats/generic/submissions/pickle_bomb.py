"""Returns an object that runs code when it is unpickled or copied in the scorer. Seen: checkpoint attacks. Expected: crashed."""

import os


class Bomb:
    def __reduce__(self):
        return os.system, ("touch /tmp/pwned",)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("not a number")


def predict(xs):
    return [Bomb() for _ in xs]
