"""What the scale does to random vectors and to one-hot tokens, measured with attention itself."""

import importlib

import numpy as np

from conformance.grading.learner import ARRAYS

DRAWS = 2000


def values(framework: str) -> dict:
    """Give what is to be predicted."""
    attention, arrays = importlib.import_module(f"impl_{framework}").attention, ARRAYS[framework]()

    def peak(q, k, scale):
        """The mean over all queries of the largest weight."""
        _, weights = attention(*map(arrays.from_numpy, (q, k, k)), scale=scale)
        return float(arrays.to_numpy(weights).max(axis=-1).mean())

    random, token = {D: drawn(D) for D in (8, 128)}, {D: tokens(D) for D in (8, 128)}
    products = (random[128][0] * random[128][1]).sum(axis=-1)
    return {
        "std_unscaled": float(products.std()),
        "std_scaled": float((products / 128**0.5).std()),
        "random_unscaled": trend(*(peak(*random[D], 1.0) for D in random)),
        "random_scaled": trend(*(peak(*random[D], None) for D in random)),
        "token_unscaled": trend(*(peak(*token[D], 1.0) for D in token)),
        "token_scaled": trend(*(peak(*token[D], None) for D in token)),
        "token_weight": peak(*token[128], None),
    }


def drawn(D: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent queries (DRAWS, 1, D) and keys (DRAWS, 5, D) from N(0, 1)."""
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal((DRAWS, n, D)).astype(np.float32) for n in (1, 5))


def tokens(D: int) -> tuple[np.ndarray, np.ndarray]:
    """Five one-hot tokens of length 5 (5, D) as keys, and token 2 (1, D) as the query."""
    keys = 5 * np.eye(5, D, dtype=np.float32)
    return keys[2:3], keys


def trend(before: float, after: float) -> str:
    """What the peak of the weights has become; a hundredth up or down is the noise of the draws."""
    if abs(after - before) < 0.02:
        return "unchanged"
    return "sharper" if after > before else "flatter"
