"""Ships json.py, torch.py, numpy.py and environments/ beside the solution, for the scorer to import. Seen: import hijacking. Expected: harmless."""

import json
import sys

import numpy


def predict(xs):
    for module in (json, numpy, sys.modules["environments"]):
        if getattr(module, "SHADOWED", False):
            print("GOT imported as", module.__name__)
    return [14.0 for _ in xs]
