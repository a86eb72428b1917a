"""Raises an exception whose own text raises again while it is being reported. Seen: error handlers. Expected: crashed."""


class Teeth(BaseException):
    def __str__(self):
        raise self

    __repr__ = __str__


def predict(xs):
    raise Teeth
