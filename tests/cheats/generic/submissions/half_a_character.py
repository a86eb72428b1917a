"""Puts half of a surrogate pair into every text it sends, which nobody can write down. Seen: report encoders. Expected: crashed."""


class Half(Exception):
    pass


Half.__name__ = "\ud800"


def predict(xs):
    raise Half("\ud800")
