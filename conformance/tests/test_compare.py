"""The comparison is judged: every kind of difference is found, in its order, and no verdict is dropped."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from conformance.compare import Foreign, compare, different_bits, same_bits, told_apart
from conformance.loading import Expected

INF, NAN = math.inf, math.nan


def expected(values, budget=0.1, dtype="float32", is_lse=False):
    values = np.asarray(values)
    budget = None if budget is None else np.broadcast_to(budget, values.shape)
    return Expected(dtype, values.shape, values, budget, is_lse)


def got(values, dtype="float32"):
    return np.asarray(values).astype(dtype)


def test_a_verdict_has_no_truth_value():
    verdict = compare(expected([1.0]), got([1.0]))
    with pytest.raises(TypeError, match="read its `ok`"):
        bool(verdict)


def test_the_ratio_is_the_worst_error_in_units_of_its_own_budget():
    verdict = compare(expected([1.0, 2.0], [0.5, 1.0], "float64"), got([1.25, 2.25], "float64"))
    assert (verdict.ok, verdict.what, verdict.ratio, verdict.index) == (True, "equal", 0.5, (0,))


def test_an_error_of_exactly_the_budget_passes():
    assert compare(expected([1.0], 0.25), got([1.25])).ok


def test_the_first_differing_element_is_named_and_the_worst_one_measured():
    verdict = compare(expected([[0.0, 0.0], [0.0, 0.0]], 0.5), got([[0.0, 1.0], [8.0, 0.0]]))
    assert (verdict.ok, verdict.what, verdict.ratio, verdict.index) == (False, "values", 16.0, (0, 1))
    assert (verdict.expected, verdict.got, verdict.budget) == (0.0, 1.0, 0.5)
    assert verdict.message.startswith(
        "2 of 4 elements differ, the worst by 16 budgets, first at (0, 1): expected 0, got 1"
    )


def test_no_error_over_no_budget_is_zero():
    assert compare(expected([0.0, 3.0], 0.0), got([-0.0, 3.0])).ratio == 0.0


def test_any_error_over_no_budget_is_infinite():
    verdict = compare(expected([0.0], 0.0), got([1e-30]))
    assert (verdict.ok, verdict.ratio) == (False, INF)


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_an_expected_nan_accepts_whatever_is_not_finite(value):
    verdict = compare(expected([NAN, 1.0]), got([value, 1.0]))
    assert (verdict.ok, verdict.ratio) == (True, 0.0)


@pytest.mark.parametrize(("value", "ok"), [(NAN, True), (INF, True), (-INF, False), (0.0, False)])
def test_the_lse_of_a_row_of_nan_is_not_that_of_an_empty_row(value, ok):
    assert compare(expected([NAN, -INF], is_lse=True), got([value, -INF])).ok == ok


@pytest.mark.parametrize(
    ("due", "came"),
    [(NAN, 0.0), (1.0, NAN), (1.0, INF), (-INF, INF), (-INF, NAN), (INF, 3e38), (-INF, -3e38)],
)
def test_another_non_finite_pattern_differs(due, came):
    verdict = compare(expected([1.0, due]), got([9.0, came]))
    assert (verdict.ok, verdict.what, verdict.ratio, verdict.index) == (False, "non-finite", INF, (1,))


def test_an_expected_infinity_is_met_exactly():
    assert compare(expected([-INF, INF]), got([-INF, INF])).ok


@pytest.mark.parametrize("came", [[1.0], np.float32(1.0), None, "1"])
def test_what_is_no_array_is_of_another_kind(came):
    assert compare(expected([1.0]), came).what == "kind"


def test_an_array_of_another_framework_is_of_another_kind():
    verdict = compare(expected([1.0]), Foreign("Tensor"))
    assert (verdict.ok, verdict.what) == (False, "kind")
    assert verdict.message.startswith("got a Tensor, ")


def test_the_dtype_comes_before_the_shape_and_the_values():
    verdict = compare(expected([1.0]), got([5.0, 6.0], "float64"))
    assert (verdict.what, verdict.message) == ("dtype", "the dtype is float64, expected float32")


@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (1,), (2, 2), ()])
def test_the_shape_is_never_broadcast(shape):
    assert compare(expected([1.0, 1.0]), np.ones(shape, "float32")).what == "shape"


def test_bfloat16_is_compared_as_it_is():
    one = np.ones(2, ml_dtypes.bfloat16)
    assert compare(expected([1.0, 1.0], 0.0, "bfloat16"), one).ok
    assert compare(expected([1.0, 1.0], 0.0, "float32"), one).what == "dtype"


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_any_integer_dtype_serves_as_an_index(dtype):
    assert compare(expected([1, 2], None, "integer"), got([1, 2], dtype)).ok
    verdict = compare(expected([1, 2], None, "integer"), got([1, 3], dtype))
    assert (verdict.ok, verdict.index, verdict.expected, verdict.got) == (False, (1,), 2, 3)


@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_only_an_integer_dtype_serves_as_an_index(dtype):
    assert compare(expected([1, 1], None, "integer"), got([1, 1], dtype)).what == "dtype"


def test_booleans_are_exact():
    due = expected([True, False], None, "bool")
    assert compare(due, got([True, False], "bool")).ok
    assert compare(due, got([True, True], "bool")).what == "values"
    assert compare(due, got([1, 0], "int64")).what == "dtype"


def test_text_is_exact_and_the_first_character_is_named():
    due = Expected("text", (), "#..\n##.")
    assert compare(due, "#..\n##.").ok
    assert compare(due, "#..\n###").index == (6,)
    assert compare(due, "#..\n##.\n").index == (7,)
    assert compare(due, np.array("#..\n##.")).what == "kind"


def test_nothing_to_compare_is_equal():
    verdict = compare(expected(np.zeros((0, 3))), np.zeros((0, 3), "float32"))
    assert (verdict.ok, verdict.ratio, verdict.index) == (True, 0.0, None)


def test_a_single_number_is_compared():
    assert compare(expected(2.0), got(3.0)).index == ()


@pytest.mark.parametrize(
    ("one", "other", "written"),
    [
        (1.0, 1.0 + 1e-12, ("1", "1.000000000001")),
        (0.999991467, 0.9999914671, ("0.999991467", "0.9999914671")),
        (1.0, np.nextafter(1.0, 2.0), ("1", "1.0000000000000002")),
        (1 / 3, 1 / 3, ("0.333333333", "0.333333333")),
        (1.0, NAN, ("1", "nan")),
        (NAN, NAN, ("nan", "nan")),
        (1.0, 2.0, ("1", "2")),
    ],
)
def test_two_numbers_are_written_so_that_their_difference_is_seen(one, other, written):
    assert told_apart(one, other) == written


def test_a_small_difference_is_seen_in_the_message():
    assert (
        "expected 1, got 1.000000000001, budget 1e-15"
        in compare(expected([1.0], 1e-15, "float64"), got([1.0 + 1e-12], "float64")).message
    )


@pytest.mark.parametrize("budget", [NAN, -1.0])
def test_a_broken_budget_is_no_verdict(budget):
    with pytest.raises(ValueError, match="error budget"):
        compare(expected([1.0], budget), got([1.0]))


def test_bits_tell_zeros_apart_and_nan_from_nothing():
    assert same_bits(got([NAN, 1.0]), got([-NAN, 1.0]))
    assert not same_bits(got([0.0]), got([-0.0]))
    assert not same_bits(got([1.0]), got([1.0], "float64"))
    assert not same_bits(got([1.0]), got([[1.0]]))
    assert same_bits("a", "a")
    assert not same_bits("a", got([1.0]))
    assert different_bits(got([1.0, 2.0, NAN]), got([1.0, 3.0, 4.0])).tolist() == [False, True, True]


def test_bits_of_a_transposed_array_are_read_in_its_order():
    array = np.arange(6, dtype="float32").reshape(2, 3)
    assert same_bits(array.T, np.ascontiguousarray(array.T))
