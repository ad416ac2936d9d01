"""The shapes and masks that the quiz asks for, read off arrays."""

import importlib

import numpy as np

from conformance.grading.learner import ARRAYS


def values(framework: str) -> dict:
    """Give what is to be predicted."""
    package, arrays = importlib.import_module(f"impl_{framework}"), ARRAYS[framework]()

    def attend(*shapes):
        """Out, weights and lse, as NumPy arrays."""
        given = [arrays.from_numpy(np.ones(shape, np.float32)) for shape in shapes]
        (out, weights), (_, lse) = package.attention(*given), package.flash_attention(*given)
        return [arrays.to_numpy(x) for x in (out, weights, lse)]

    out, weights, lse = attend((2, 3, 4, 5), (2, 3, 7, 5), (2, 3, 7, 6))
    shared, *_ = attend((2, 3, 4, 5), (7, 5), (7, 6))
    keys_seen = np.ones((2, 7), bool)[:, None, None, :]
    return {
        "out_shape": out.shape,
        "weights_shape": weights.shape,
        "lse_shape": lse.shape,
        "sums_to_1": next(axis for axis in (-1, -2, -3, -4) if np.allclose(weights.sum(axis), 1)),
        "shared_keys_out_shape": shared.shape,
        "padding_mask_shape": keys_seen.shape,
        "visible_pairs": int(arrays.to_numpy(package.causal().array(4, 7)).sum()),
        "last_row_of_window": tuple(arrays.to_numpy(package.window(1, 0).array(4, 4))[-1].tolist()),
    }
