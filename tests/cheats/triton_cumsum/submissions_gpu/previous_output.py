"""Leaves the output as it is, hoping for an earlier answer. Seen: kernel competitions. Expected: invalid."""


def prefix_sum(x, out):
    return out
