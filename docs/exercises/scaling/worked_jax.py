"""Scaling and saturation: predict before you run."""

from math import exp, sqrt

std_unscaled = sqrt(128)  # 128 products, each of variance 1
std_scaled = 1.0

random_unscaled = "sharper"  # the spread of the scores grows from 2.8 to 11.3
random_scaled = "unchanged"  # it is 1

token_unscaled = "unchanged"  # q . k is 25 or 0, whatever D is
token_scaled = "flatter"  # 25 / sqrt(8) = 8.8 becomes 25 / sqrt(128) = 2.2

s = 25 / sqrt(128)
token_weight = exp(s) / (exp(s) + 4)
