"""Returns minus infinity to overflow the metric. Seen: many leaderboards. Expected: invalid."""


def predict(xs):
    return [float("-inf") for _ in xs]
