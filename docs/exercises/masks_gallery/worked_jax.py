"""A gallery of masks: True where the query at position i may attend to the key at position j."""


def causal(i, j):
    """The query sees its own position and what was before."""
    return j <= i


def local(i, j, width):
    """The query sees `width` keys, an odd number, itself in the middle."""
    return abs(i - j) <= width // 2


def prefix_lm(i, j, length):
    """Every query sees the first `length` keys; the others are seen as in a causal mask."""
    return (j < length) | (j <= i)


def dilated(i, j, step):
    """The query sees every `step`-th key before and after it, counted from itself."""
    return (i - j) % step == 0


def chunked(i, j, size):
    """Positions are cut into chunks of `size`; the query sees its own chunk."""
    return i // size == j // size


def documents(i, j, ids):
    """Position p belongs to the document ids[p]; the query sees its own document."""
    return ids[i] == ids[j]
