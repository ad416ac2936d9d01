"""Variants of backends are judged: each has to prove that its special path ran, and says so where it did not."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from conformance import adapter
from conformance.adapters import tracing
from conformance.judging import judge
from conformance.loading import checks, load_cases

CHECKS = {check.name: check for case in load_cases() for check in checks(case)}
ACCELERATOR = ("torch:accelerator", "torch:accelerator-flash")
VARIANTS = [name for name in adapter.BUILT_IN if ":" in name and name not in ACCELERATOR]
SQUARE = "equal-sizes-do-not-hide-a-swap"  # which the fused kernel of PyTorch can run
SOME = ("plain-float32", "plain-bfloat16", "padding-shares", "empty-row-float32", "no-keys", SQUARE)
NO_PROOF = {
    "numpy:readonly": "the argument q is not read-only",
    "torch:compile": "the compiled graph did not run",
    "torch-sdpa:math": "MATH did not run, but FLASH_ATTENTION",
    "torch-sdpa:flash": "FLASH_ATTENTION did not run, but MATH",
    "jax:jit": "jax.jit traced nothing",
    "jax:eager": "jax.disable_jit had no effect",
    "flash": "flash_attention did not run: there is no lse",
}


def found(name):
    pytest.importorskip(name.partition(":")[0].partition("-")[0])
    return adapter.find(name)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_answers_and_never_differs(name):
    backend = found(name)
    assert backend.name == name and backend.info()["versions"]
    outcomes = [judge(CHECKS[check], backend).outcome for check in SOME]
    assert "pass" in outcomes and not {*outcomes} - {"pass", "unsupported"}


@pytest.mark.parametrize("name", ["numpy:readonly", "numpy:flash"])
def test_the_quick_ones_pass_all_cases(name):
    backend = adapter.find(name)
    results = [judge(check, backend) for check in CHECKS.values()]
    assert [result for result in results if result.outcome in ("differs", "error")] == []
    assert [result.outcome for result in results].count("pass") > 450


@pytest.mark.parametrize("name", [name for name in VARIANTS if name.endswith(":flash") and "sdpa" not in name])
def test_flash_is_judged_by_its_lse(name):
    backend = found(name)
    assert set(judge(CHECKS["plain-float32"], backend).outputs) == {"out", "lse"}
    assert judge(CHECKS["plain-float32@flash_attention"], backend).outcome == "unsupported"


def without_proof(name, monkeypatch):
    """Give the variant with its special path broken, as a mistake in it or in a library would do."""
    backend = found(name)
    if name == "numpy:readonly":
        backend.from_numpy = np.array
    elif name == "torch:compile":
        backend._compiled = backend._plain
    elif name.startswith("torch-sdpa"):
        kernels = pytest.importorskip("torch").nn.attention.SDPBackend
        other = {kernels.MATH: kernels.FLASH_ATTENTION, kernels.FLASH_ATTENTION: kernels.MATH}
        from conformance.adapters import torch_sdpa_variants as module

        right = module.sdpa_kernel
        monkeypatch.setattr(module, "sdpa_kernel", lambda kernel: right(other[kernel]))
    elif name == "jax:jit":
        monkeypatch.setattr("conformance.adapters.jax_variants.jax.jit", lambda function: function)
    elif name == "jax:eager":
        from contextlib import nullcontext

        monkeypatch.setattr("conformance.adapters.jax_variants.jax.disable_jit", nullcontext)
    else:
        backend.package = SimpleNamespace(flash_attention=lambda **options: (options["q"],))
    return backend


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "jax:optimised"])
def test_a_path_that_did_not_run_is_an_error(name, monkeypatch):
    backend = without_proof(name, monkeypatch)
    result = judge(CHECKS[SQUARE], backend)
    assert result.outcome == "error"
    assert result.reason == NO_PROOF.get(name, NO_PROOF["flash"])


def test_writing_into_a_read_only_argument_raises_where_it_happens():
    backend = adapter.find("numpy:readonly")

    def writes(q, k, v):
        q += 1

    backend.package = SimpleNamespace(attention=writes)
    assert "read-only" in judge(CHECKS["plain-float32"], backend).reason


def test_a_call_that_the_kernel_cannot_run_is_unsupported_with_its_reason():
    reason = judge(CHECKS["plain-float32"], found("torch-sdpa:flash")).reason
    assert reason.startswith("FLASH_ATTENTION cannot run it: All fused kernels requires query")


@pytest.mark.parametrize(("mask", "hides"), [([0.0, 1.0], "D1"), ([0, 2], "D1"), ([0, 1], None), ([True], None)])
def test_masks_whose_values_count_are_not_asked_while_traced(mask, hides):
    reason = tracing.hidden_value({"mask": np.array(mask)})
    assert reason is None if hides is None else hides in reason


def test_the_words_of_a_refusal_reach_through_jit():
    assert judge(CHECKS["refuses-attention-scale-nan"], found("jax:jit")).outcome == "pass"


@pytest.mark.parametrize("name", ACCELERATOR)
def test_an_accelerator_is_one_and_gives_the_outputs(name, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.accelerator.is_available():
        with pytest.raises(LookupError, match="finds no accelerator"):
            adapter.find(name)
    # The meta device has no numbers, so the CPU stands for an accelerator that works.
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: torch.device("cpu"))
    backend = adapter.find(name)
    assert {judge(CHECKS[check], backend).outcome for check in SOME} == {"pass"}
    backend._device = torch.device("meta")
    backend.from_numpy = adapter.find("torch").from_numpy  # a mistake: what it is given stays on the CPU
    assert "lies on cpu, the arguments on meta" in judge(CHECKS["plain-float32"], backend).reason
