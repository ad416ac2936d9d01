"""Plain functions as backends: what is asked of them, what is not, and why."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest

from conformance import adapter
from conformance.adapters.function import Function
from conformance.judging import judge
from conformance.loading import checks, load_cases
from conformance.tests import kernels

CHECKS = {check.name: check for case in load_cases() for check in checks(case)}
VALID = {name: check for name, check in CHECKS.items() if check.op == "attention" and not check.case.raises}
SOFTCAP = next(name for name, check in VALID.items() if {*check.options} == {"softcap"})
REFUSED = "refuses-attention-scale-nan"
HERE = "conformance.tests.kernels"


def result(function, name, **settings):
    return judge(CHECKS[name], Function("f", function, **settings))


def outcomes(function, **settings):
    backend = Function("f", function, **settings)
    return Counter(judge(check, backend).outcome for check in CHECKS.values() if check.op == "attention")


@pytest.mark.parametrize("name", ["attention", "everything", "with_lse", "needs_all", "four_axes", "own_rules"])
def test_a_right_function_is_never_wrong(name):
    found = outcomes(getattr(kernels, name))
    assert found["pass"] > 100
    assert not found["differs"] and not found["error"]


def test_a_function_with_every_option_and_error_passes_everything():
    assert outcomes(kernels.everything, errors=True).keys() == {"pass", "either"}


def test_a_wrong_function_differs():
    assert outcomes(kernels.upside_down)["differs"] > 10
    assert result(kernels.upside_down, "plain-float32").outcome == "pass"


def test_a_function_that_always_raises_is_an_error_and_not_unsupported():
    assert result(kernels.raises, "plain-float32").reason == "RuntimeError: no kernel"


def test_an_option_without_a_parameter_is_unsupported_by_its_name():
    assert result(kernels.attention, SOFTCAP).reason == "the function has no parameter softcap"


def test_a_default_needs_no_parameter():
    assert CHECKS["padding-behind"].options == {"is_causal": False}
    assert result(kernels.attention, "padding-behind").outcome == "pass"


def test_errors_are_judged_only_when_asked():
    assert result(kernels.everything, REFUSED).reason == "errors are not judged; --errors judges them"
    assert result(kernels.everything, REFUSED, errors=True).outcome == "pass"
    assert result(kernels.everything, "plain-float32", errors=True).outcome == "pass"


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        ("attention", ("out", "weights")),
        ("with_lse", ("out", "lse")),
        ("tiled", ("out",)),
        ("named_outputs", ("out", "extra")),
        ("four_axes", ("out",)),
    ],
)
def test_what_is_returned_is_told_by_its_shape(name, outputs):
    assert Function("f", getattr(kernels, name)).outputs("attention") == outputs


def test_an_output_that_no_shape_tells_has_to_be_named():
    with pytest.raises(LookupError, match=r'attention.outputs = \("out", "lse"\)'):
        Function("f", kernels.odd_outputs)


def test_the_lse_of_a_function_is_judged():
    off = lambda q, k, v: (kernels.with_lse(q, k, v)[0], kernels.with_lse(q, k, v)[1] + 1)  # noqa: E731
    assert result(off, "plain-float32").reason.startswith("lse: 4 of 4 elements differ")


def test_tiles_are_asked_where_there_is_a_parameter():
    name = "batch-and-heads-float32@flash_attention"
    assert result(kernels.tiled, f"{name}-3x5").outcome == "pass"
    assert result(kernels.tiled, name).reason == "a function is judged as attention, once"
    assert result(kernels.attention, f"{name}-3x5").reason == "the function has no parameter block_size"


def test_a_dtype_is_unsupported_with_the_words_of_the_refusal():
    assert result(kernels.float32_only, "plain-float16").reason == (
        "the function refuses float16: TypeError: float32 only, not float16"
    )
    assert result(kernels.float32_only, "plain-float32").outcome == "pass"


def test_missing_axes_are_added_and_taken_away():
    assert result(kernels.four_axes, "plain-float32").outcome == "pass"
    assert result(lambda q, k, v: kernels.four_axes(q[None], k[None], v[None])[0], "plain-float32").outcome == "pass"


def test_more_axes_than_it_takes_are_unsupported():
    check = next(name for name, check in CHECKS.items() if check.case.arrays.get("q", np.ones(1)).ndim == 6)
    assert result(kernels.four_axes, check).reason == "the function takes 4 axes at most"


@pytest.mark.parametrize("kind", ["torch", "jax"])
def test_a_function_may_take_arrays_of_another_kind(kind):
    package = pytest.importorskip(f"impl_{kind}")
    backend = Function("f", package.attention, arrays=kind)
    assert judge(CHECKS["plain-float32"], backend).outcome == "pass"
    assert {kind, "python"} <= set(backend.info()["versions"])
    assert backend.info()["function"].startswith("attention(q")
    as_numpy = Function("f", lambda q, k, v: np.asarray(package.attention(q, k, v)[0]), arrays=kind)
    assert judge(CHECKS["plain-float32"], as_numpy).reason.startswith("out: got a ndarray, which is not an array of")


def test_a_file_is_found_and_its_neighbours_can_be_imported(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "neighbour_of_a_kernel.py").write_text("from conformance.tests.kernels import attention\n")
    file = tmp_path / "someones_kernel.py"
    file.write_text("from neighbour_of_a_kernel import *\n")
    assert adapter.find(f"{file}:attention").outputs("attention") == ("out", "weights")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("nowhere/kernel.py:attention", "there is no file nowhere/kernel.py"),
        ("no_such_module:attention", "no_such_module cannot be imported: ModuleNotFoundError: No module named"),
        (f"{HERE}:atention", "has no object 'atention'; it has attention"),
        (f"{HERE}:np", "it is a module, which cannot be called"),
        (f"{HERE}:queries", r"\(query, key, value\) has no q, k, v; it has to be like attention\(q, k, v"),
        (f"{HERE}:wants_more", "its parameter window needs a default"),
        (f"{HERE}:makes_nothing", "called to make a backend, and gave a int"),
        (f"{HERE}:attention,arrays=cupy", "arrays=cupy is none of numpy, torch, jax"),
        (f"{HERE}:attention,colour=red", "unknown setting colour; known are arrays"),
        ("conformance.tests.backends:Doubling,errors", "errors is for plain functions, and this is a backend"),
    ],
)
def test_what_cannot_be_loaded_says_what_to_do(spec, said):
    with pytest.raises(LookupError, match=said):
        adapter.find(spec)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def attention(q, k, v:", "SyntaxError: '\\('|SyntaxError: invalid|SyntaxError: "),
        ("import a_library_that_is_not_there", "ModuleNotFoundError: No module named 'a_library"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("{}['key']", "KeyError: 'key'"),
    ],
)
def test_a_file_that_cannot_be_imported_says_why(text, said, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "broken_kernel.py"
    file.write_text(text)
    with pytest.raises(LookupError, match=f"broken_kernel.py cannot be imported: {said}"):
        adapter.find(f"{file}:attention")
