"""The facts of a first lesson on attention, and its three exercises with the answers as measured.

The lesson: self-made attention agrees with PyTorch's; a query equal to a token's key retrieves that token;
a causal mask gives the future a weight of exactly 0. The exercises ask for a blend of two tokens, for the
effect of the scale in 128 dimensions, and for a local window beside a convolution.
"""

from __future__ import annotations

import importlib
from math import exp, sqrt

import numpy as np
import pytest

from conformance.adapter import find

B, T, D = 2, 5, 8
VOCABULARY = 5 * np.eye(6, dtype=np.float32)  # six tokens, orthogonal, of length 5
SEQUENCE = VOCABULARY[None, :5]
S = 25 / sqrt(6)  # the scaled score of a token against itself


@pytest.fixture
def package(framework):
    return importlib.import_module(f"impl_{framework}")


@pytest.fixture
def attend(framework, package):
    """`attention` of one implementation, on NumPy arrays: returns out and weights."""
    backend = find(framework)

    def attend(*arrays, **options):
        own = {name: backend.from_numpy(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
        return tuple(map(backend.to_numpy, package.attention(*map(backend.from_numpy, arrays), **own)))

    return attend


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def qkv():
    return normal(3, B, T, D)


# --- the lesson ------------------------------------------------------------------------------------------


def test_each_row_of_weights_sums_to_1(attend):
    _, weights = attend(*qkv())
    np.testing.assert_allclose(weights.sum(-1), np.ones((B, T)), atol=1e-6)


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_difference_from_pytorch_is_rounding(attend, is_causal):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        q, k, v = (torch.randn(B, T, D) for _ in range(3))
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    out, _ = attend(q.numpy(), k.numpy(), v.numpy(), is_causal=is_causal)
    assert out.shape == (B, T, D)
    assert np.abs(out - theirs.numpy()).max() < 1e-6


def test_the_query_of_token_2_retrieves_token_2(attend):
    out, weights = attend(VOCABULARY[None, None, 2], SEQUENCE, SEQUENCE)
    assert weights[0, 0].round(3).tolist() == [0, 0, 1, 0, 0]
    assert out[0, 0].argmax() == 2


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float32])
def test_every_row_gives_the_future_a_weight_of_exactly_0(attend, dtype):
    _, weights = attend(*qkv(), mask=np.tril(np.ones((T, T))).astype(dtype))
    assert (weights[:, np.triu(np.ones((T, T), bool), 1)] == 0).all()
    np.testing.assert_array_equal(weights, attend(*qkv(), is_causal=True)[1])


# --- exercise 1: a query that is a blend of two tokens ---------------------------------------------------


def test_a_blend_of_two_tokens_splits_the_weight_evenly(attend):
    _, weights = attend(VOCABULARY[None, None, 2] + VOCABULARY[4], SEQUENCE, SEQUENCE)
    assert weights[0, 0, 2] == weights[0, 0, 4]
    assert weights[0, 0, 2] == pytest.approx(1 / (2 + 3 * exp(-S)), rel=1e-6)
    assert weights[0, 0, 2] == pytest.approx(0.4999723, abs=1e-7)


@pytest.mark.parametrize(("alpha", "shares"), [(0.9, (0.735, 0.265)), (0.5, (0.9938, 0.0060))])
def test_an_uneven_blend_splits_it_in_the_ratio_of_the_exponentials(attend, alpha, shares):
    query = VOCABULARY[2] + np.float32(alpha) * VOCABULARY[4]
    _, weights = attend(query[None, None], SEQUENCE, SEQUENCE)
    assert weights[0, 0, 2] / weights[0, 0, 4] == pytest.approx(exp(S * (1 - alpha)), rel=1e-5)
    assert weights[0, 0, [2, 4]] == pytest.approx(shares, abs=5e-4)


def test_a_token_that_is_not_there_is_looked_up_all_the_same(framework, package, attend):
    query = VOCABULARY[None, None, 5]
    _, weights = attend(query, SEQUENCE, SEQUENCE)
    np.testing.assert_allclose(weights[0, 0], np.full(5, 0.2), rtol=1e-6)
    backend = find(framework)
    found = package.retrieve(backend.from_numpy(query), backend.from_numpy(SEQUENCE))
    assert backend.to_numpy(found.index).item() == 0


# --- exercise 2: more dimensions, with and without the scale ----------------------------------------------


@pytest.mark.parametrize("dimensions", [8, 128])
def test_one_hot_tokens_do_not_get_sharper_with_more_dimensions(attend, dimensions):
    """Their scores are 25 in any number of dimensions, so the scale makes the match flatter, not sharper."""
    tokens = 5 * np.eye(5, dimensions, dtype=np.float32)[None]
    _, unscaled = attend(tokens[:, 2:3], tokens, tokens, scale=1.0)
    _, scaled = attend(tokens[:, 2:3], tokens, tokens)
    assert unscaled[0, 0, [0, 1, 3, 4]] == pytest.approx([exp(-25)] * 4, rel=1e-5)
    assert scaled[0, 0, 2] == pytest.approx(1 / (1 + 4 * exp(-25 / sqrt(dimensions))), rel=1e-6)
    assert scaled[0, 0, 2] == pytest.approx({8: 0.99942, 128: 0.69496}[dimensions], abs=1e-5)


@pytest.mark.parametrize(
    ("dimensions", "scale", "peak"),
    [(8, 1.0, 0.714), (128, 1.0, 0.927), (8, None, 0.452), (128, None, 0.459)],
)
def test_random_vectors_get_sharper_and_the_scale_restores_them(attend, dimensions, scale, peak):
    """The mean of the largest of five weights, over 4,000 seeded draws of independent normal vectors."""
    q, keys = normal(4000, 1, dimensions, seed=1), normal(4000, 5, dimensions, seed=2)
    _, weights = attend(q, keys, keys, scale=scale)
    assert weights.max(-1).mean() == pytest.approx(peak, abs=0.015)


# --- exercise 3: a window of three keys beside a convolution ----------------------------------------------


def test_a_window_of_width_3_lets_13_of_25_pairs_through(framework, package, attend):
    allowed = find(framework).to_numpy(package.local(3).array(T, T))
    assert allowed.sum() == 13
    assert allowed.sum(-1).tolist() == [2, 3, 3, 3, 2]
    out, weights = attend(*qkv(), mask=package.local(3))
    assert (weights[:, ~allowed] == 0).all()
    np.testing.assert_array_equal(out, attend(*qkv(), mask=allowed)[0])


def test_with_equal_scores_the_window_is_an_average_that_shrinks_at_the_edges(package, attend):
    q, k, v = qkv()
    out, _ = attend(0 * q, k, v, mask=package.local(3))
    averages = [v[:, max(0, t - 1) : t + 2].mean(axis=1) for t in range(T)]
    np.testing.assert_allclose(out, np.stack(averages, axis=1), atol=1e-6)


def test_with_fixed_scores_the_window_is_a_convolution_inside(package, attend):
    q, k, v = qkv()
    kernel = np.array([0.2, 0.5, 0.3], np.float32)
    at = np.clip(np.arange(T)[None] - np.arange(T)[:, None] + 1, 0, 2)
    out, _ = attend(0 * q, k, v, mask=package.local(3), bias=np.log(kernel[at]))
    convolved = sum(kernel[i] * v[:, i : T - 2 + i] for i in range(3))
    np.testing.assert_allclose(out[:, 1:-1], convolved, atol=1e-6)
    assert np.abs(out[:, 0] - (kernel[1] * v[:, 0] + kernel[2] * v[:, 1])).max() > 0.1


def test_its_weights_depend_on_the_content_as_no_kernel_does(package, attend):
    _, weights = attend(*qkv(), mask=package.local(3))
    assert np.ptp(weights[0].diagonal()) > 0.3


def test_it_is_not_additive(package, attend):
    x, y = normal(B, T, D, seed=3), normal(B, T, D, seed=4)
    of_x, of_y, of_sum = (attend(z, z, z, mask=package.local(3))[0] for z in (x, y, x + y))
    assert np.abs(of_sum - of_x - of_y).max() > 0.5


def test_three_layers_see_seven_positions(package, attend):
    def layers(x):
        for _ in range(3):
            x, _ = attend(x, x, x, mask=package.local(3))
        return x

    x = normal(1, 12, D)
    changed = x.copy()
    changed[0, 6] *= 3
    reached = (layers(x) != layers(changed)).any(axis=(0, 2))
    assert np.flatnonzero(reached).tolist() == [3, 4, 5, 6, 7, 8, 9]
