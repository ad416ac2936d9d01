"""Attention as a soft dictionary."""

import numpy as np

# Six tokens are orthogonal and have length 5; the first five are the keys, 0 to 4.
# Numbers count within 0.001.

# The query is token 2 + token 4: what weight has key 2?
weight_of_each_match = ...

# Are the weights of keys 2 and 4 then equal, to the last bit? True or False
are_equal = ...

# The query is token 5, which is not among the keys: what weight has each key?
weight_without_match = ...

# The query is token 2 + alpha * token 4: which alpha gives keys 2 and 4 weights of 3 to 1?
alpha = ...


def look_up(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Look the queries up: give blends of values (*B, T, Dv) and weights (*B, T, S).

    The weights are softmax(query keys^T / sqrt(D)).
    query (*B, T, D), keys (*B, S, D), values (*B, S, Dv), float32.
    """
    raise NotImplementedError
