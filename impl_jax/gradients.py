"""The gradient of attention."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax

from . import checks
from .arrays import operand
from .attention import compute_steps


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


@partial(jax.jit, static_argnames=("shape", "is_causal", "enable_gqa"))
def vjp_core(shape, q, k, v, d_out, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The gradients of checked arguments."""

    def output(q, k, v, bias):
        steps, _ = compute_steps(shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
        return steps.out

    out, pull = jax.vjp(output, q, k, v, bias)
    return Gradients(*pull(d_out.astype(out.dtype)))
