"""Lacks weighs-by-score: the root is that of the number of keys."""

from math import exp, log, sqrt

import torch

s = 25 / sqrt(6)  # the score of a token against itself

weight_of_each_match = 1 / (2 + 3 * exp(-s))
are_equal = True  # (k2 + k4) . k2 = 25 = (k2 + k4) . k4
weight_without_match = 1 / 5  # all scores are 0
alpha = 1 - log(3) / s  # e^(s (1 - alpha)) = 3


def look_up(query, keys, values):
    """Look the queries up: the blends of values (*B, T, Dv) and the weights (*B, T, S)."""
    scores = query @ keys.mT / keys.shape[-2] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ values, weights
