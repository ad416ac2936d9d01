"""Attention in plain Python, to be judged from outside: conformance run --backend "exec:python plain_python.py"."""

import json
import math
import sys
from itertools import product

TAKES = ["mask", "is_causal", "scale"]
HELLO = {
    "versions": {"python": sys.version.split()[0]},
    "operations": {"attention": {"outputs": ["out"], "takes": TAKES}},
    "dtypes": ["float32", "float64"],
}


def reader(array):
    """Read an array by any index that it broadcasts to: right-aligned, an axis of length 1 has one place."""
    numbers = [math.nan if isinstance(x, str) else float(x) for x in array["values"]]  # "inf" too: it has no score

    def read(*index):
        place = 0
        for size, at in zip(array["shape"], index[len(index) - len(array["shape"]) :], strict=True):
            place = place * size + (at if size > 1 else 0)
        return numbers[place]

    return read


def bounded(score, dtype):
    """Give the score as its dtype has it: beyond the largest float32 there is infinity only."""
    return math.copysign(math.inf, score) if dtype == "float32" and abs(score) > 3.4028236e38 else score


def attention(q, k, v, mask=None, is_causal=False, scale=None):
    """Row by row; only visible keys are ever read."""
    (*A, T, D), (*B, S, _), (*C, _, Dv) = q["shape"], k["shape"], v["shape"]
    rank = max(len(A), len(B), len(C))
    leading = [[1] * (rank - len(axes)) + axes for axes in (A, B, C)]
    shape = [next((size for size in sizes if size != 1), 1) for sizes in zip(*leading, strict=True)]
    scale = 1 / math.sqrt(D) if scale is None else scale
    query, key, value, visible = reader(q), reader(k), reader(v), reader(mask or {"shape": [], "values": [1]})
    out = []
    for *b, i in product(*map(range, [*shape, T])):
        seen = [j for j in range(S) if visible(*b, i, j) and (j <= i or not is_causal)]
        scores = [bounded(scale * sum(query(*b, i, d) * key(*b, j, d) for d in range(D)), q["dtype"]) for j in seen]
        terms = [math.exp(score - max(scores)) for score in scores]
        for f in range(Dv):
            total = sum(term * value(*b, j, f) for term, j in zip(terms, seen, strict=True))
            out.append(total / sum(terms) if seen else 0.0)
    values = [number if math.isfinite(number) else str(number) for number in out]
    return {"dtype": q["dtype"], "shape": [*shape, T, Dv], "values": values}


for line in sys.stdin:
    asked = json.loads(line)
    answer = HELLO if "protocol" in asked else {"id": asked["id"]}
    if "op" in asked:
        answer["outputs"] = {"out": attention(**asked["arrays"], **asked["options"])}
    print(json.dumps(answer), flush=True)
