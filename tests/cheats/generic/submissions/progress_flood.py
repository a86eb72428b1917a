"""Reports progress two hundred thousand times, with control characters and nonsense fractions. Seen: log floods. Expected: harmless or timeout."""

import gc


def predict(xs):
    reports = [t for t in gc.get_objects() if getattr(t, "__name__", "") == "progress" and callable(t)]
    for number in range(200_000):
        reports[0]("\x1b]0;owned\x07" * 9, 1e300)
    return [14.0 for _ in xs]
