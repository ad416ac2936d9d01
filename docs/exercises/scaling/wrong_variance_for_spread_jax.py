"""Lacks prediction: the variance is given for the standard deviation, and a trend that is none."""

from math import exp, sqrt

std_unscaled = 128  # 128 products, each of variance 1
std_scaled = sqrt(128)

random_unscaled = "sharper"  # the spread of the scores grows from 2.8 to 11.3
random_scaled = "the same"  # it is 1

token_unscaled = "unchanged"  # q . k is 25 or 0, whatever D is
token_scaled = "flatter"  # 25 / sqrt(8) = 8.8 becomes 25 / sqrt(128) = 2.2

s = 25 / sqrt(128)
token_weight = exp(s) / (exp(s) + 4)
