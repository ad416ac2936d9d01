"""What the weights of a soft look-up are, for queries made of tokens that are orthogonal and have length 5."""

import importlib

import numpy as np

from conformance.grading.learner import ARRAYS

TOKENS = 5 * np.eye(6, dtype=np.float32)
KEYS = TOKENS[:5]


def values(framework: str) -> dict:
    """Give what is to be predicted."""
    attention, arrays = importlib.import_module(f"impl_{framework}").attention, ARRAYS[framework]()

    def weights(query):
        _, found = attention(*map(arrays.from_numpy, (query, KEYS, KEYS)))
        return arrays.to_numpy(found)[0]

    match, both, absent = weights(TOKENS[2:3]), weights(TOKENS[2:3] + TOKENS[4:5]), weights(TOKENS[5:6])
    s = np.log(match[2] / match[0])  # how far the score of a match is above that of the others
    return {
        "weight_of_each_match": float(both[2]),
        "are_equal": bool(both[2] == both[4]),
        "weight_without_match": float(absent[0]),
        "alpha": float(1 - np.log(3) / s),
    }
