"""Returns the input as its result. Seen: kernel competitions. Expected: invalid."""


def prefix_sum(x):
    return x
