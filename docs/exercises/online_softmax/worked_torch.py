"""Online softmax: joining two halves."""

import torch


def merge(out0, lse0, out1, lse1):
    """Give out and lse over all keys, from those over the first and those over the other keys."""
    top = torch.maximum(lse0, lse1)  # (*B, T)
    top = torch.where(top == -torch.inf, 0, top)
    share0, share1 = torch.exp(lse0 - top), torch.exp(lse1 - top)
    total = share0 + share1
    divisor = torch.where(total == 0, 1, total)
    out = weighed(share0 / divisor, out0) + weighed(share1 / divisor, out1)
    return out, top + torch.log(total)


def weighed(share, out):
    """share (*B, T) times out (*B, T, Dv), and 0 where the share is 0, whatever stands in out."""
    share = share[..., None]
    return torch.where(share == 0, 0, share * out)
