"""Online softmax: joining two halves."""

import torch


def merge(
    out0: torch.Tensor, lse0: torch.Tensor, out1: torch.Tensor, lse1: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Give out and lse over all keys, from those over the first and those over the other keys.

    out0, out1 (*B, T, Dv), lse0, lse1 (*B, T), float32; lse is the log of the softmax denominator, and -inf where a
    query sees no key.
    """
    raise NotImplementedError
