"""Does not return. Seen: an honest mistake. Expected: timeout."""


def prefix_sum(x):
    while True:
        pass
