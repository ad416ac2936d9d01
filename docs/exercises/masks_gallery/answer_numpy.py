"""A gallery of masks: True where the query at i may attend to the key at j.

i and j are integer arrays (T, S): i[t, s] = t and j[t, s] = s.
"""

import numpy as np


def causal(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """The query sees its own position and what was before."""
    raise NotImplementedError


def local(i: np.ndarray, j: np.ndarray, width: int) -> np.ndarray:
    """The query sees `width` keys, an odd number, itself in the middle."""
    raise NotImplementedError


def prefix_lm(i: np.ndarray, j: np.ndarray, length: int) -> np.ndarray:
    """Every query sees the first `length` keys, and the others as if causal."""
    raise NotImplementedError


def dilated(i: np.ndarray, j: np.ndarray, step: int) -> np.ndarray:
    """The query sees every `step`-th key before and after it, counted from itself."""
    raise NotImplementedError


def chunked(i: np.ndarray, j: np.ndarray, size: int) -> np.ndarray:
    """Positions are cut into chunks of `size`; the query sees its own chunk."""
    raise NotImplementedError


def documents(i: np.ndarray, j: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Position p belongs to the document ids[p]; the query sees its own document."""
    raise NotImplementedError
