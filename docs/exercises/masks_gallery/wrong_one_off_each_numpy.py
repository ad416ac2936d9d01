"""Lacks values: each mask is off by one, or counts from another place."""


def causal(i, j):
    """The query sees its own position and what was before."""
    return j < i


def local(i, j, width):
    """The query sees `width` keys, an odd number, itself in the middle."""
    return abs(i - j) <= width


def prefix_lm(i, j, length):
    """Every query sees the first `length` keys; the others are seen as in a causal mask."""
    return (j <= length) | (j <= i)


def dilated(i, j, step):
    """The query sees every `step`-th key before and after it, counted from itself."""
    return j % step == 0


def chunked(i, j, size):
    """Positions are cut into chunks of `size`; the query sees its own chunk."""
    return (i + 1) // size == (j + 1) // size


def documents(i, j, ids):
    """Position p belongs to the document ids[p]; the query sees its own document."""
    return abs(ids[i] - ids[j]) <= 1
