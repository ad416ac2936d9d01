"""A gallery of masks: True where the query at i may attend to the key at j.

i and j are integer arrays (T, S): i[t, s] = t and j[t, s] = s.
"""

import torch


def causal(i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    """The query sees its own position and what was before."""
    raise NotImplementedError


def local(i: torch.Tensor, j: torch.Tensor, width: int) -> torch.Tensor:
    """The query sees `width` keys, an odd number, itself in the middle."""
    raise NotImplementedError


def prefix_lm(i: torch.Tensor, j: torch.Tensor, length: int) -> torch.Tensor:
    """Every query sees the first `length` keys, and the others as if causal."""
    raise NotImplementedError


def dilated(i: torch.Tensor, j: torch.Tensor, step: int) -> torch.Tensor:
    """The query sees every `step`-th key before and after it, counted from itself."""
    raise NotImplementedError


def chunked(i: torch.Tensor, j: torch.Tensor, size: int) -> torch.Tensor:
    """Positions are cut into chunks of `size`; the query sees its own chunk."""
    raise NotImplementedError


def documents(i: torch.Tensor, j: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Position p belongs to the document ids[p]; the query sees its own document."""
    raise NotImplementedError
