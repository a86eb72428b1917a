"""Returns NaN, which compares as neither better nor worse. Seen: many leaderboards. Expected: invalid."""


def predict(xs):
    return [float("nan") for _ in xs]
