"""PyTorch's transforms on impl_torch: autograd, forward mode, vmap, compile, and any device."""

from __future__ import annotations

import numpy as np
import pytest

import impl_numpy

torch = pytest.importorskip("torch", reason="torch is not installed")
impl_torch = pytest.importorskip("impl_torch")

H, T, S = 4, 5, 7
TILE = (3, 4)

# The first use of forward mode compiles formulas of torch with a function that torch itself deprecates.
forward_mode = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
# Within compile torch makes an instance of an autograd function, against its own advice.
compiles = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


def dense(*arrays, **options):
    """`out` and `lse` by the definition."""
    steps = impl_torch.attention_steps(*arrays, **options)
    return steps.out, steps.lse


def tiled(*arrays, **options):
    """`out` and `lse` over tiles."""
    return impl_torch.flash_attention(*arrays, block_size=TILE, **options)


both = pytest.mark.parametrize("attend", [dense, tiled])


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def qkv():
    return normal(2, H, T, 3), normal(2, 2, S, 3, seed=1), normal(2, 2, S, 6, seed=2)


def holes():
    """A mask with an empty row, and with a key that no query of its sequence sees."""
    mask = normal(2, 1, T, S, seed=3) > -0.5
    mask[0, 0, 1] = False
    mask[1, :, :, 2] = False
    return mask


def variables():
    """q, k, v, a bias and the sinks, all with a gradient."""
    return [x.requires_grad_() for x in (*qkv(), normal(H, T, S, seed=4), normal(H, seed=5))]


def everything(attend):
    """A function of these variables, with a mask and a softcap; the lse of the empty row is left out."""

    def function(q, k, v, bias, sinks):
        out, lse = attend(q, k, v, holes(), bias=bias, sinks=sinks, softcap=1.3, enable_gqa=True)
        return out, torch.where(lse == -torch.inf, 0, lse)

    return function


def same(left, right):
    return all(torch.allclose(a, b, equal_nan=True) for a, b in zip(left, right, strict=True))


# --- the same numbers as NumPy ---------------------------------------------------------------------------

MASKS = {
    "none": lambda package, array: None,
    "array": lambda package, array: array(holes().numpy()),
    "window": lambda package, array: package.window(2, 1) | package.prefix(2) & ~package.dilated(3),
    "padding": lambda package, array: package.padding(array(np.array([[3], [0]]))) & package.chunked(4),
    "segments": lambda package, array: package.segments(array(np.arange(T) // 2), array(np.arange(S) // 3)),
}
BIASES = {
    "none": None,
    "whole": normal(2, H, T, S, seed=6),
    "keys": normal(S, seed=7),
    "queries": normal(T, 1, seed=8),
    "holes": torch.where(normal(H, T, S, seed=9) > 0, 0.3, -torch.inf),
}
OPTIONS = {
    "plain": ({}, None),
    "all": ({"is_causal": True, "softcap": 1.5, "scale": -0.3}, normal(H, seed=5)),
    "unscaled": ({"is_causal": True, "scale": 0}, torch.tensor(0.4).double()),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("mask", MASKS)
def test_numbers_and_gradients_are_those_of_numpy(mask, bias, options):
    options, sinks = OPTIONS[options]
    arrays = {"q": qkv()[0], "k": qkv()[1], "v": qkv()[2], "bias": BIASES[bias], "sinks": sinks}
    arrays = {name: x for name, x in arrays.items() if x is not None}
    d_out = normal(2, H, T, 6, seed=10)
    theirs = {name: x.numpy() for name, x in arrays.items()} | options
    theirs |= {"mask": MASKS[mask](impl_numpy, np.asarray), "enable_gqa": True}
    steps = impl_numpy.attention_steps(**theirs)
    gradients = impl_numpy.attention_vjp(d_out=d_out.numpy(), **theirs)
    gradients = [torch.as_tensor(x) for x in gradients if x is not None]

    arrays = {name: x.clone().requires_grad_() for name, x in arrays.items()}
    ours = arrays | options | {"mask": MASKS[mask](impl_torch, torch.as_tensor), "enable_gqa": True}
    assert same([x for x in impl_torch.attention_vjp(d_out=d_out, **ours) if x is not None], gradients)
    for attend in (dense, tiled):
        out, lse = attend(**ours)
        assert same((out, lse), map(torch.as_tensor, (steps.out, steps.lse)))
        inputs = [arrays[name] for name in ("q", "k", "v", "bias") if name in arrays]
        assert same(torch.autograd.grad((out * d_out).sum(), inputs), gradients)


# --- derivatives -----------------------------------------------------------------------------------------


@both
def test_first_and_second_derivatives_are_those_of_differences(attend):
    assert torch.autograd.gradcheck(everything(attend), variables(), fast_mode=True)
    assert torch.autograd.gradgradcheck(everything(attend), variables(), fast_mode=True)


@both
def test_a_scale_and_a_softcap_that_are_tensors_have_gradients(attend):
    numbers = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.7, 1.1)]

    def function(scale, softcap):
        return attend(*qkv(), scale=scale, softcap=softcap, enable_gqa=True)

    assert torch.autograd.gradcheck(function, numbers, fast_mode=True)


def test_merge_has_derivatives():
    parts = [normal(3, 4, 2), normal(3, 4), normal(3, 4, 2, seed=1), normal(3, 4, seed=1)]
    nothing = torch.zeros_like(parts[0]), torch.full_like(parts[1], -torch.inf)

    def function(*parts):
        return impl_torch.merge([parts[:2], parts[2:], nothing])

    assert torch.autograd.gradgradcheck(function, [x.requires_grad_() for x in parts], fast_mode=True)


@pytest.mark.parametrize("top_k", [None, 2])
def test_retrieve_has_derivatives(top_k):
    arrays = [x.requires_grad_() for x in (normal(2, T, 3), normal(2, S, 3, seed=1), normal(2, S, 6, seed=2))]
    mask = holes()[:, 0]

    def function(*arrays):
        return impl_torch.retrieve(*arrays, mask=mask, top_k=top_k)[:2]

    assert torch.autograd.gradgradcheck(function, arrays, fast_mode=True)


@forward_mode
def test_forward_mode_agrees_with_reverse_mode():
    inputs, function = tuple(variables()), everything(dense)
    ones = tuple(torch.ones_like(x) for x in inputs)
    _, (d_out, d_lse) = torch.func.jvp(function, inputs, ones)
    gradients = torch.autograd.grad(sum(x.sum() for x in function(*inputs)), inputs)
    assert torch.allclose(d_out.sum() + d_lse.sum(), sum(x.sum() for x in gradients))
    assert torch.autograd.gradcheck(function, inputs, fast_mode=True, check_forward_ad=True)


@forward_mode
def test_the_hessian_is_symmetric_and_that_of_two_passes_back():
    q, *rest = (x.detach() for x in variables())

    def loss(q):
        return everything(dense)(q, *rest)[0].sin().sum()

    rows = torch.func.hessian(loss)(q).reshape(q.numel(), q.numel())
    assert torch.allclose(rows, rows.T)
    assert torch.allclose(rows, torch.autograd.functional.hessian(loss, q).reshape(rows.shape))


# --- vmap ------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("where", ["batched", "shared", "inside", "rule-inside", "rule"])
def test_vmap_gives_the_batch(attend, where):
    q, k, v = qkv()
    lengths = torch.tensor([[2], [6]])
    mask, axis, of = {
        "batched": (holes(), 0, lambda mask: mask),
        "shared": (holes()[0], None, lambda mask: mask),
        "inside": (None, None, lambda _: torch.ones(T, S).tril()),
        "rule-inside": (lengths, 0, lambda lengths: impl_torch.padding(lengths) & impl_torch.causal(1)),
        "rule": (impl_torch.padding(lengths) & impl_torch.causal(1), 0, lambda rule: rule),
    }[where]

    def attended(q, k, v, mask):
        return attend(q, k, v, of(mask), enable_gqa=True)

    found = torch.func.vmap(attended, in_dims=(0, 0, 0, axis))(q, k, v, mask)
    assert same(found, attended(q, k, v, mask))


@both
def test_vmap_and_grad_go_together(attend):
    q, k, v, bias, _ = variables()
    rule = impl_torch.padding(torch.tensor([[2], [6]])) & impl_torch.causal(1)
    axes = (0, 0, 0, None, 0)

    def loss(q, k, v, bias, rule):
        return attend(q, k, v, rule, bias=bias, enable_gqa=True)[0].sin().sum()

    expected = torch.autograd.grad(loss(q, k, v, bias, rule), (q, k, v, bias))
    outside = torch.func.vmap(loss, in_dims=axes)(q, k, v, bias, rule).sum()
    assert same(torch.autograd.grad(outside, (q, k, v, bias)), expected)
    assert same(torch.func.vmap(torch.func.grad(loss, (0, 1, 2)), in_dims=axes)(q, k, v, bias, rule), expected[:3])


def test_vmap_over_retrieval_and_merge():
    query, keys, mask = normal(2, T, 3), normal(2, S, 3, seed=1), holes()[:, 0]
    for function in (
        lambda query, keys, mask: impl_torch.retrieve(query, keys, mask=mask),
        lambda query, keys, mask: impl_torch.retrieve(query, keys, mask=mask, top_k=3),
        lambda query, keys, mask: impl_torch.search(query, keys, 3, mask=mask, metric="cosine"),
        lambda query, keys, mask: impl_torch.merge([dense(query, keys, keys, m) for m in (mask, ~mask)]),
    ):
        assert same(torch.func.vmap(function)(query, keys, mask), function(query, keys, mask))


@both
def test_under_vmap_a_mask_of_floats_is_refused_and_one_of_integers_counts_its_ones(attend):
    q, k, v = qkv()
    vmapped = torch.func.vmap(lambda q, k, v, mask: attend(q, k, v, mask, enable_gqa=True))
    with pytest.raises(TypeError, match="under tracing its values cannot be seen"):
        vmapped(q, k, v, holes().double())
    assert same(vmapped(q, k, v, holes().int()), vmapped(q, k, v, holes()))


# --- compile ---------------------------------------------------------------------------------------------


def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager")


@compiles
@both
def test_compile_takes_one_graph_forward_and_backward(attend):
    inputs = variables()
    rule = impl_torch.padding(torch.tensor([[2], [6]])) | impl_torch.local(3)

    def function(q, k, v, bias, sinks, rule):
        mask = rule & impl_torch.segments(torch.arange(T) // 4, torch.arange(S) // 4)
        return attend(q, k, v, mask, bias=bias, sinks=sinks, is_causal=True, softcap=1.3, enable_gqa=True)

    found, expected = (f(*inputs, rule) for f in (compiled(function), function))
    assert same(found, expected)
    assert same(*(torch.autograd.grad(out.sin().sum() + lse.sum(), inputs) for out, lse in (found, expected)))


def test_compile_takes_a_scale_and_lengths_that_vary():
    function = compiled(lambda q, k, scale: impl_torch.attention(q, k, k, scale=scale))
    for length, scale in ((3, 0.5), (4, 0.7), (6, -2.0), (6, 1)):
        arrays = normal(2, length, 3), normal(2, length + 1, 3, seed=1), scale
        assert same(function(*arrays), impl_torch.attention(arrays[0], arrays[1], arrays[1], scale=scale))


OTHERS = {
    "retrieve": lambda query, keys: impl_torch.retrieve(query, keys, mask=impl_torch.causal()),
    "retrieve the best": lambda query, keys: impl_torch.retrieve(query, keys, top_k=3),
    "search": lambda query, keys: impl_torch.search(query, keys, 3, metric="euclidean"),
    "recall": lambda query, keys: impl_torch.recall(query, keys[0], beta=2.0),
    "merge": lambda query, keys: impl_torch.merge([dense(query, keys, keys), dense(query, -keys, keys)]),
    "gradient": lambda query, keys: impl_torch.attention_vjp(query, keys, keys, query, is_causal=True)[:3],
}


@pytest.mark.parametrize("name", OTHERS)
def test_compile_takes_the_other_functions_in_one_graph(name):
    arrays = normal(2, T, 3), normal(2, S, 3, seed=1)
    assert same(compiled(OTHERS[name])(*arrays), OTHERS[name](*arrays))
