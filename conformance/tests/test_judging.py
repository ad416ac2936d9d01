"""Judging is judged: every kind of outcome of one check on one backend."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.facts import Given
from conformance.judging import judge
from conformance.loading import Expected
from conformance.tests.backends import Doubling, check

INVALID = {"verdict": "invalid", "raises": "ValueError", "expect": {}}


class Faulty(Doubling):
    """Doubling, by a function that a test gives."""

    def __init__(self, double, explains=True):
        self.double, self.explains = double, explains


def outcome(double, *, explains=True, **changes):
    return judge(check([1.0, 2.0], **changes), Faulty(double, explains))


def raises(error):
    def double(x):
        raise error

    return double


def test_a_right_answer_passes_with_its_numbers():
    result = outcome(lambda x: 2 * x)
    assert (result.backend, result.check, result.outcome, result.reason) == ("doubling", "doubled", "pass", "")
    assert result.worst.ratio == 0.0
    assert result.outputs["x"].tolist() == [2.0, 4.0]
    assert result.ms > 0


def test_a_wrong_answer_differs_and_the_output_is_named():
    result = outcome(lambda x: 2 * x + 1)
    assert (result.outcome, result.worst.what) == ("differs", "values")
    assert result.reason.startswith("x: 2 of 2 elements differ")


def test_an_array_of_another_kind_differs():
    result = outcome(lambda x: (2 * x).tolist())
    assert (result.outcome, result.worst.what, result.outputs) == ("differs", "kind", {})


def test_a_missing_output_differs():
    backend = Doubling()
    backend.call = lambda op, arrays, options: {}
    assert judge(check([1.0]), backend).reason == "x: it is missing from what the call returned"


def test_an_exception_in_a_valid_case_is_an_error_in_one_line():
    result = outcome(raises(RuntimeError("\nno kernel\nmore")))
    assert (result.outcome, result.reason, result.worst) == ("error", "RuntimeError: no kernel", None)


def test_what_the_backend_refuses_is_unsupported():
    result = judge(check([1.0], dtype="float16"), Doubling())
    assert (result.outcome, result.reason) == ("unsupported", "it has no float16")


def test_outputs_that_the_backend_does_not_return_are_unsupported():
    backend = Doubling()
    backend.outputs = lambda op: ("weights",)
    assert judge(check([1.0]), backend).outcome == "unsupported"


def in_place(x):
    x *= 2
    return x.copy()


def test_a_modified_argument_differs_by_its_name():
    result = outcome(in_place)
    assert (result.outcome, result.worst.what) == ("differs", "modified")
    assert result.reason == "the call modified its argument x"


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[:], lambda x: np.broadcast_to(x[..., :], x.shape)])
def test_an_output_that_lies_in_an_argument_differs_though_its_numbers_are_right(view):
    due = Expected("float32", (2,), np.array([1.0, 2.0]), np.zeros(2))
    backend = Faulty(view)
    backend.shares_memory = np.shares_memory
    result = judge(check([1.0, 2.0], expect={"x": due}), backend)
    assert (result.outcome, result.worst.what) == ("differs", "shared")
    assert result.reason == "x: it shares memory with the argument x"
    assert judge(check([1.0, 2.0], expect={"x": due}), Faulty(lambda x: x.copy())).outcome == "pass"


def test_an_argument_that_comes_back_is_noticed_without_the_adapter_s_help():
    due = Expected("float32", (2,), np.array([1.0, 2.0]), np.zeros(2))
    assert judge(check([1.0, 2.0], expect={"x": due}), Faulty(lambda x: x)).worst.what == "shared"


def test_an_output_that_the_next_call_overwrites_differs():
    space, added = np.zeros(2, "float32"), iter([0, 1])
    result = outcome(lambda x: np.add(2 * x, next(added), out=space), laws=("repeat",))
    assert (result.outcome, result.worst.what) == ("differs", "overwritten")
    assert result.reason == "the next call changed what this one had returned: x"


def test_the_law_kept_asks_for_a_call_of_other_values_and_compares_nothing_else():
    given = []
    arrays = {name: np.ones((1, 2), "float16") for name in "qkv"} | {"bias": np.ones(2, "float16")}
    backend = Doubling()
    backend.outputs = lambda op: ("out",)
    backend.call = lambda op, arrays, options: given.append(arrays) or {"out": arrays["q"] + arrays["k"]}
    due = Expected("float16", (1, 2), np.full((1, 2), 2.0), np.zeros((1, 2)))
    assert judge(check([1.0], arrays=arrays, expect={"out": due}, laws=("kept",)), backend).outcome == "pass"
    assert [x["v"].tolist() for x in given] == [[[1, 1]], [[2, 2]]]
    assert [x["bias"].tolist() for x in given] == [[1, 1], [1, 1]]


@pytest.mark.parametrize("law", ["repeat", "unmoved"])
def test_a_law_that_holds_passes(law):
    assert outcome(lambda x: 2 * x, laws=(law,), instead={"x": np.float32([1.0, 2.0])}).outcome == "pass"


def test_the_law_repeat_finds_another_bit():
    calls = iter([0.0, 1e-6])
    result = outcome(lambda x: 2 * x + np.float32(next(calls)), laws=("repeat",))
    assert (result.outcome, result.worst.what, result.worst.index) == ("differs", "repeat", (0,))
    assert result.reason.startswith("x: other bits when the call is repeated, first at (0,): 2.0 became 2.00000")


def test_the_law_unmoved_finds_a_hidden_number_that_counts():
    result = outcome(lambda x: 2 * x, laws=("unmoved",), instead={"x": np.float32([1.0, 2.00001])})
    assert (result.outcome, result.worst.what, result.worst.index) == ("differs", "unmoved", (1,))


@pytest.mark.parametrize(("fault", "outcome"), [(False, "pass"), (True, "differs")])
def test_the_law_alone_cuts_what_has_the_leading_axis(fault, outcome):
    q, lengths = np.ones((2, 3, 2), "float32"), np.float32([1, 2])
    arrays = {"q": q, "sinks": np.zeros(2, "float32"), "lengths": lengths}
    expected = Expected("float32", q.shape, np.float64(q + lengths[:, None, None]), np.ones(q.shape))
    options = {"mask": {"rule": "padding", "lengths": "lengths"}}
    shapes = []

    def call(op, arrays, options):
        shapes.append([array.shape for array in arrays.values()])
        error = np.float32(0.1 if fault and len(arrays["q"]) == 1 else 0)
        return {"out": arrays["q"] + arrays["lengths"][:, None, None] + error}

    backend = Doubling()
    backend.outputs, backend.call = (lambda op: ("out",)), call
    case = check([1.0], arrays=arrays, expect={"out": expected}, laws=("alone",), options=options)
    assert judge(case, backend).outcome == outcome
    assert shapes[:2] == [[(2, 3, 2), (2,), (2,)], [(1, 3, 2), (2,), (1,)]]


def test_an_invalid_call_passes_when_it_raises_its_kind():
    result = outcome(raises(ValueError("D must be 4, got 5")), **INVALID, says=("D", "got 5"))
    assert (result.outcome, result.reason) == ("pass", "ValueError: D must be 4, got 5")


@pytest.mark.parametrize("error", [TypeError("x"), RuntimeError("x"), type("Both", (ValueError, TypeError), {})("x")])
def test_another_kind_of_error_differs(error):
    result = outcome(raises(error), **INVALID)
    assert result.outcome == "differs"
    assert result.reason.startswith(f"expected ValueError, raised {type(error).__name__}")


def test_an_invalid_call_that_returns_differs():
    assert outcome(lambda x: x, **INVALID).reason == "nothing was raised, expected ValueError"


def test_words_are_due_only_from_a_backend_that_explains():
    error = raises(ValueError("wrong"))
    assert outcome(error, **INVALID, says=("enable_gqa",)).reason.startswith("the message lacks 'enable_gqa'")
    assert outcome(error, **INVALID, says=("enable_gqa",), explains=False).outcome == "pass"


def test_a_wrong_argument_is_passed_as_it_is():
    result = outcome(lambda x: x, **INVALID, arrays={"x": Given([1, 2])})
    assert (result.outcome, result.outputs) == ("differs", {})


@pytest.mark.parametrize("double", [lambda x: x, raises(RuntimeError("no"))])
def test_what_the_contract_leaves_open_is_only_shown(double):
    assert outcome(double, verdict="either", expect={}).outcome == "either"
