"""The gradient of attention.

It is derived by hand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import checks
from .arrays import operand, product
from .attention import blend, compute_steps, default_scale, prepare


class Gradients(NamedTuple):
    """The gradients of sum(out * d_out), each with the shape and dtype of its input; dbias is None without a bias."""

    dq: Any
    dk: Any
    dv: Any
    dbias: Any


def attention_vjp(
    q,
    k,
    v,
    d_out,
    mask=None,
    *,
    bias=None,
    is_causal=False,
    scale=None,
    softcap=None,
    sinks=None,
    enable_gqa=False,
):
    """Pull d_out, the gradient of the output, back to q, k, v and the bias.

    d_out (*B, [H,] T, Dv) in the inputs' dtype; the rest as in `attention`. Returns Gradients(dq, dk, dv, dbias).
    What is hidden takes no part: an empty row, and a key that no query sees, have gradients of exactly 0.
    Raises what `attention` raises, and the same for d_out.

    With S the scores, P the weights and dX the gradient of X, at the visible pairs:

        out = P v                          dv = P^T d_out              dP = d_out v^T
        P_ij = exp(S_ij) / sum_l exp(S_il)   dS_ij = P_ij (dP_ij - sum_l P_il dP_il)
        biased = capped + bias             dbias = dS                  dcapped = dS
        capped = c tanh(scores / c)        dscores = dcapped (1 - (capped / c)^2)
        scores = scale q k^T               dq = scale dscores k        dk = scale dscores^T q

    A sink only makes the weights smaller: it has no value, so it adds nothing to sum_l P_il dP_il.
    Where an input was broadcast, its gradient is the sum over the copies.
    Source: Dao et al. 2022, "FlashAttention", appendix B.2, equations for dV, dP, dS, dQ, dK.
    """
    shape = checks.attention(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    checks.output_gradient(d_out, v, shape)
    scale, softcap = operand(scale), operand(softcap)
    return vjp_core(shape, q, k, v, d_out, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)


@np.errstate(all="ignore")
def vjp_core(shape, q, k, v, d_out, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The gradients of checked arguments."""
    steps, visible = compute_steps(shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    wide_q, wide_k, wide_v, *_ = prepare(shape, q, k, v, bias, sinks, enable_gqa)
    d_out = d_out.astype(wide_q.dtype)
    groups = shape[-3] // k.shape[-3] if enable_gqa and k.shape[-3] else 1

    dv = blend(steps.weights.mT, d_out, visible.mT)
    d_weights = np.where(visible, product(d_out, wide_v.mT), 0)
    mean = (steps.weights * d_weights).sum(axis=-1, keepdims=True)
    d_biased = np.where(visible, steps.weights * (d_weights - mean), 0).astype(wide_q.dtype)
    slope = 1 if softcap is None else np.where(visible, 1 - (steps.capped / softcap) ** 2, 0)
    d_scores = d_biased * default_scale(scale, q) * slope
    dq = blend(d_scores, wide_k, visible)
    dk = blend(d_scores.mT, wide_q, visible.mT)

    def summed(gradient, x, groups=1):
        """A gradient of the broadcast x, summed over the copies, in the shape and dtype of x (B1, B5)."""
        if groups != 1:
            *lead, _, T, D = gradient.shape
            gradient = gradient.reshape(*lead, x.shape[-3], groups, T, D).sum(axis=-3)
        gradient = gradient.sum(axis=tuple(range(gradient.ndim - x.ndim)))
        copied = tuple(i for i, size in enumerate(x.shape) if size == 1 and gradient.shape[i] != 1)
        return np.asarray(gradient.sum(axis=copied, keepdims=True), x.dtype)  # a sum over every axis is no array

    dbias = None if bias is None else summed(d_biased, bias)
    return Gradients(summed(dq, q), summed(dk, k, groups), summed(dv, v, groups), dbias)
