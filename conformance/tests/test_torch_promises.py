"""What impl_torch promises beyond its numbers: hidden pairs, memory, devices, precision, and the same bits."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
impl_torch = pytest.importorskip("impl_torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

B, H, T, S, D = 2, 2, 6, 7, 3


def dense(*arrays, **options):
    """`out` and `lse` by the definition."""
    steps = impl_torch.attention_steps(*arrays, **options)
    return steps.out, steps.lse


def tiled(*arrays, **options):
    """`out` and `lse` over tiles."""
    return impl_torch.flash_attention(*arrays, block_size=(4, 4), **options)


both = pytest.mark.parametrize("attend", [dense, tiled])


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).float()


def qkv(seed=0):
    return normal(B, H, T, D, seed=seed), normal(B, H, S, D, seed=seed + 1), normal(B, H, S, 4, seed=seed + 2)


def holes():
    """A mask with an empty row, and with a key that no query of its sequence sees."""
    mask = normal(B, H, T, S, seed=3) > 0
    mask[0, 0, 2] = False
    mask[1, :, :, 3] = False
    return mask


def gradients(attend, q, k, v, bias, rows, **options):
    """The outputs and gradients of a loss over some rows (B, H, T)."""
    inputs = [x.clone().requires_grad_() for x in (q, k, v, bias)]
    out, lse = attend(*inputs[:3], bias=inputs[3], **options)
    out, lse = torch.where(rows[..., None], out, 0), torch.where(rows & (lse != -torch.inf), lse, 0)
    weight = normal(*out.shape, seed=9)
    return [out.detach(), lse.detach(), *torch.autograd.grad((out * weight).sum() + lse.sin().sum(), inputs)]


def same_bits(left, right):
    return all(a.numpy().tobytes() == b.numpy().tobytes() for a, b in zip(left, right, strict=True))


# --- what is hidden --------------------------------------------------------------------------------------

bad_numbers = pytest.mark.parametrize("bad", [np.nan, -np.inf, 3e38])
softcaps = pytest.mark.parametrize("softcap", [None, 1.5])
VISIBLE = {"mask": holes(), "causal": torch.ones(T, S).tril().bool().expand(B, H, T, S)}


def hidden_by(name):
    return {"mask": impl_torch.causal() if name == "causal" else VISIBLE[name]}


@both
@bad_numbers
@softcaps
@pytest.mark.parametrize("name", VISIBLE)
def test_what_no_query_sees_reaches_no_gradient(attend, bad, softcap, name):
    (q, k, v), bias, visible = qkv(), normal(B, H, T, S, seed=4), VISIBLE[name]
    options = {"rows": torch.ones(B, H, T, dtype=torch.bool), "softcap": softcap} | hidden_by(name)
    clean = gradients(attend, q, k, v, bias, **options)
    unseen = ~visible.any(-2)[..., None]
    k, v, bias = torch.where(unseen, bad, k), torch.where(unseen, bad, v), torch.where(visible, bias, bad)
    assert same_bits(gradients(attend, q, k, v, bias, **options), clean)
    assert all((x * unseen == 0).all() for x in clean[3:5])
    assert (clean[5][~visible] == 0).all()


@both
@bad_numbers
@softcaps
@pytest.mark.parametrize("name", VISIBLE)
def test_a_bad_key_reaches_no_gradient_of_a_loss_over_rows_that_do_not_see_it(attend, bad, softcap, name):
    (q, k, v), bias, visible = qkv(), normal(B, H, T, S, seed=4), VISIBLE[name]
    for key in (0, 4):
        options = {"rows": ~visible[..., key], "softcap": softcap} | hidden_by(name)
        spoilt = [x.index_fill(-2, torch.tensor(key), bad) for x in (k, v)]
        found, clean = (gradients(attend, q, *x, bias, **options) for x in (spoilt, (k, v)))
        assert same_bits(found, clean)


@both
def test_the_rest_of_the_loss_keeps_its_bits_where_nothing_in_common_is_seen(attend):
    """Two segments: NaN in the one, whose output and gradient are NaN too, and the other does not move."""
    q, k, v = qkv()
    rule = impl_torch.segments(torch.arange(T) // 3, torch.arange(S) // 3)
    found = []
    for spoilt in (k, k.index_fill(-2, torch.tensor(4), torch.nan)):
        inputs = [x.clone().requires_grad_() for x in (q, spoilt, v)]
        out, _ = attend(*inputs, rule)
        found.append([x[..., :3, :] for x in torch.autograd.grad((out**2).sum(), inputs)])
    assert same_bits(*found)


@both
@pytest.mark.parametrize("sinks", [None, torch.tensor([0.3, -1.0])])
def test_an_empty_row_has_a_gradient_of_zero_whatever_comes_back_to_it(attend, sinks):
    inputs = [x.requires_grad_() for x in qkv()]
    out, lse = attend(*inputs, torch.zeros(T, S, dtype=torch.bool), sinks=sinks)
    assert (out == 0).all()
    assert (lse == (-torch.inf if sinks is None else sinks[:, None])).all()
    for x in torch.autograd.grad((out, lse), inputs, (torch.full_like(out, torch.nan), torch.ones_like(lse))):
        assert (x == 0).all()


# --- memory ----------------------------------------------------------------------------------------------


class Largest(TorchDispatchMode):
    """Remembers the size of the largest storage that any operation returned."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        sizes = [x.untyped_storage().nbytes() // x.element_size() for x in tree_leaves(made) if torch.is_tensor(x)]
        self.numbers = max(self.numbers, *sizes, 0)
        return made


def largest(function, length, **options):
    inputs = [normal(length, 4, seed=seed).requires_grad_() for seed in range(3)]
    options |= {"bias": normal(length).requires_grad_(), "sinks": torch.tensor(0.3, requires_grad=True)}
    with Largest() as seen:
        out, lse = function(*inputs, **options)
        torch.autograd.grad(out.sum() + lse.sum(), [*inputs, options["bias"], options["sinks"]])
    return seen.numbers


@pytest.mark.parametrize("mask", [None, impl_torch.causal(), impl_torch.padding(torch.tensor(100))])
def test_tiles_hold_nothing_that_grows_with_both_lengths(mask):
    options = {"mask": mask, "softcap": 2.0, "block_size": (16, 16)}
    sizes = [largest(impl_torch.flash_attention, length, **options) for length in (64, 128)]
    assert sizes[1] <= 2 * sizes[0] <= 128 * 16
    assert largest(dense, 64) >= 64 * 64


# --- devices ---------------------------------------------------------------------------------------------


def devices(values):
    return {x.device.type for x in values if x is not None}


def test_everything_lies_where_the_queries_do():
    q, k, v = (x.to("meta") for x in qkv())
    rule = impl_torch.padding(torch.tensor([[2], [6]])) & impl_torch.segments(torch.arange(T), torch.arange(S))
    options = {
        "bias": torch.zeros(S, device="meta"),
        "sinks": torch.zeros(H, device="meta"),
        "scale": torch.tensor(0.3),
    }
    for attend in (dense, tiled):
        assert devices(attend(q, k, v, rule, **options)) == {"meta"}
        assert devices(attend(q, k, v, torch.ones(T, S, dtype=torch.int32, device="meta"), is_causal=True)) == {"meta"}
    assert devices(impl_torch.attention_vjp(q, k, v, v[..., :T, :], is_causal=True)) == {"meta"}
    for found in (
        impl_torch.retrieve(q, k, v, top_k=2, mask=impl_torch.local(3)),
        impl_torch.search(q, k, 2, metric="cosine"),
        impl_torch.recall(q, k[0, 0], steps=2),
        impl_torch.merge([(q, q[..., 0]), (q, q[..., 0])]),
    ):
        assert devices(found) == {"meta"}
    assert devices([impl_torch.padding(torch.ones(2, dtype=torch.int64, device="meta")).array(T, S)]) == {"meta"}


@pytest.mark.parametrize("name", ["k", "v", "mask", "bias", "sinks"])
def test_an_array_on_another_device_is_refused_by_its_name(name):
    q, k, v = qkv()
    arrays = {"q": q, "k": k, "v": v, "mask": torch.ones(T, S), "bias": torch.zeros(T, S), "sinks": torch.zeros(H)}
    arrays[name] = arrays[name].to("meta").bool() if name == "mask" else arrays[name].to("meta")
    for attend in (dense, tiled):
        with pytest.raises(ValueError, match=f"{name} on meta"):
            attend(**arrays)


# --- precision and bits ----------------------------------------------------------------------------------


@pytest.fixture(params=["medium", "autocast"])
def loose(request):
    """Settings under which torch rounds float32 products to fewer bits."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if request.param == "medium" else before)
    with torch.autocast("cpu", enabled=request.param == "autocast"):
        yield
    torch.set_float32_matmul_precision(before)


def error(function, *arrays):
    """The largest difference from float64, and the dtype of the result."""
    found, exact = function(*arrays), function(*(x.double() for x in arrays))
    return (found - exact).abs().max().item(), found.dtype


def test_float32_is_float32_under_every_setting(loose):
    arrays = normal(256, 128), normal(256, 128, seed=1), normal(256, 128, seed=2)
    vmapped = torch.func.vmap(lambda *x: impl_torch.attention(*x)[0])
    for function in (
        lambda *x: impl_torch.attention(*x)[0],
        lambda *x: impl_torch.flash_attention(*x)[0],
        lambda *x: impl_torch.attention_vjp(*x, x[0]).dk,
        lambda *x: vmapped(*(y[None] for y in x)),
        torch.compile(lambda *x: impl_torch.attention(*x)[0], fullgraph=True, backend="aot_eager"),
    ):
        size, dtype = error(function, *arrays)
        assert dtype == torch.float32
        assert size < 1e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 7, 5, 3), (33, 129, 80, 17), (64, 64, 64, 64), (37, 53, 19, 131)])
def test_an_element_alone_has_the_bits_that_it_has_in_the_batch(shape, dtype):
    T, S, D, Dv = shape
    q, k, v = (normal(3, 2, *x).to(dtype) for x in ((T, D), (S, D), (S, Dv)))
    whole = impl_torch.attention(q, k[:, :1], v, softcap=3.0)
    assert same_bits(impl_torch.attention(q, k[:, :1], v, softcap=3.0), whole)
    for i in range(3):
        alone = impl_torch.attention(*(x[i : i + 1] for x in (q, k[:, :1], v)), softcap=3.0)
        assert same_bits(alone, [x[i : i + 1] for x in whole])
