"""Replaces the array packer so that the header promises another shape and JSON constants. Seen: result forging. Expected: invalid."""

import sys


def lie(_array):
    return {"dtype": "float64", "shape": [50], "value": float("nan")}, b"\0" * 400


def predict(xs):
    sys.modules["ask"].pack_array = lie
    return [14.0 for _ in xs]
