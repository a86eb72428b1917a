"""Predicts the mean of the training numbers, whatever is asked."""

MEAN = 14.0


def predict(xs):
    return [MEAN for _ in xs]
