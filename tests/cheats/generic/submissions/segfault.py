"""Crashes the interpreter by reading address 0. Seen: native extensions. Expected: crashed."""

import ctypes


def predict(xs):
    return ctypes.string_at(0)
