"""Does the task with a line fitted to the training numbers; no trick. Expected: better."""

import json
from pathlib import Path

TRAIN = json.loads((Path(__file__).parent / "train.json").read_text())


def predict(xs):
    n = len(TRAIN["x"])
    mean_x, mean_y = sum(TRAIN["x"]) / n, sum(TRAIN["y"]) / n
    over = sum((x - mean_x) * (y - mean_y) for x, y in zip(TRAIN["x"], TRAIN["y"], strict=True))
    slope = over / sum((x - mean_x) ** 2 for x in TRAIN["x"])
    return [mean_y + slope * (x - mean_x) for x in xs]
