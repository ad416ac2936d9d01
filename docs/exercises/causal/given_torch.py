"""Three causal attentions that leak, each on inputs of its own kind."""

import torch


def lower_right(q, k, v):
    """The triangle ends at the last query and the last key."""
    i, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])
    visible = j - j.max() <= i - i.max()
    return torch.softmax(torch.where(visible, scores(q, k), -torch.inf), dim=-1) @ v


def low_fill(q, k, v):
    """Hidden scores are -10,000."""
    return torch.softmax(torch.where(triangle(q, k), scores(q, k), -1e4), dim=-1) @ v


def zero_times(q, k, v):
    """Hidden weights are exactly 0, and multiplied with the hidden values."""
    return torch.softmax(torch.where(triangle(q, k), scores(q, k), -torch.inf), dim=-1) @ v


def triangle(q, k):
    """True where key <= query, (T, S)."""
    i, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])
    return j <= i


def scores(q, k):
    """Scaled scores (*B, T, S)."""
    return q @ k.mT / q.shape[-1] ** 0.5
