"""The case files: written from the facts, read back to the bit, and refused with a reason when they are broken."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from conformance import contract, encoding, loading, making, policing
from conformance.facts import FLOATS, Fact, Given, array, plain, state
from conformance.loading import Expected, checks, digest, load_cases, load_flags

FACT = state("a-fact", "One is one.", "C1", "scale-missing", plain())
CASES = load_cases()


@pytest.fixture(scope="module")
def stated():
    """All facts, by topic."""
    return making.stated_facts()


@pytest.fixture
def folder(tmp_path):
    """A folder with one file of three cases, of which the second needs an npz file."""
    facts = [
        FACT,
        replace(FACT, id="a-long-fact", arrays={name: np.tile(a, (3, 1, 1)) for name, a in plain().items()}),
        replace(FACT, id="a-refusal", raises="ValueError", says=("scale",), options={"scale": float("nan")}),
    ]
    store = {}
    content = {"format": 1, "about": "…", "cases": [making.record(fact, store) for fact in facts]}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "topic.npz").write_bytes(encoding.write_npz(store))
    (tmp_path / "topic.json").write_text(making.layout(content), encoding="utf-8")
    return tmp_path


def test_the_facts_are_in_order(stated):
    assert policing.faults(stated, load_flags()) == []


def test_the_files_are_what_the_facts_give(stated):
    files = {name: content for stem, some in stated.items() for name, content in making.make(stem, some).items()}
    assert making.compare(files) == 0


def test_the_files_are_small_enough_to_be_read():
    paths = [path for path in loading.CASES.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in paths) < 3_500_000


def test_every_fact_is_a_case(stated):
    assert [case.id for case in CASES] == [fact.id for some in stated.values() for fact in some]


def test_a_case_has_the_arrays_of_its_fact(stated):
    facts = {fact.id: fact for some in stated.values() for fact in some}
    for case in CASES:
        for arrays, given in ((case.arrays, facts[case.id].arrays), (case.instead, facts[case.id].instead)):
            assert list(arrays) == list(given)
            for name, value in arrays.items():
                assert value == given[name] if isinstance(value, Given) else same(value, given[name])


def same(one, other):
    """Whether two arrays have the same dtype, shape and bits."""
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@pytest.mark.parametrize("dtype", [*FLOATS, "bool", "int8", "uint8", "int64", "complex64"])
@pytest.mark.parametrize("copies", [0, 1, 30])
def test_an_array_is_read_back_to_the_bit(dtype, copies):
    numbers = [0, 1, 1] if dtype == "bool" else [0, 1, 127]
    given = array(np.tile(numbers, copies), dtype).reshape(copies, 3)
    store = {}
    record = json.loads(json.dumps(encoding.encode(given, store)))
    assert same(encoding.decode(record, store.__getitem__), given)
    assert bool(store) == (given.size * (2 if dtype == "complex64" else 1) > encoding.LONGEST_LIST)


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_numbers_are_read_back(dtype):
    given = array([np.nan, np.inf, -np.inf, -0.0, 1 / 3, 6e-8], dtype)
    record = json.loads(json.dumps(encoding.encode(given, {}), allow_nan=False))
    assert same(encoding.decode(record, {}.__getitem__), given)


def test_an_npz_file_has_the_same_bytes_again():
    arrays = {"b": np.arange(3), "a": np.eye(2)}
    assert encoding.write_npz(arrays) == encoding.write_npz(dict(reversed(arrays.items())))


def test_a_stored_array_that_was_changed_is_refused():
    store = {}
    record = encoding.encode(np.arange(100.0), store)
    store = {name: stored + 1 for name, stored in store.items()}
    with pytest.raises(ValueError, match="has the SHA-256"):
        encoding.decode(record, store.__getitem__)


def test_good_files_are_read(folder):
    short, long, refusal = load_cases(folder)
    assert (short.id, short.file, short.dtype, short.verdict) == ("a-fact", "topic", "float32", "valid")
    assert long.expect["out"].shape == (3, 4, 6)
    assert (refusal.raises, refusal.says, refusal.expect) == ("ValueError", ("scale",), {})
    assert np.isnan(refusal.options["scale"])


BROKEN = {
    "unknown clause 'Z9'": {"clauses": ["Z9"]},
    "unknown operation 'paint'": {"op": "paint"},
    "unknown law 'gravity'": {"laws": ["gravity"]},
    "unknown verdict 'perhaps'": {"verdict": "perhaps"},
    "unknown output of attention 'colour'": {"expect": {"colour": {"dtype": "text", "lines": []}}},
    "out of place in a case that is valid: raises": {"raises": "ValueError"},
    "out of place in a case that is valid: instead": {"laws": ["unmoved"]},
    "the id has to be in lower case": {"id": "A fact"},
    "2 numbers for the shape \\(3,\\), which takes 3": {
        "arrays": {"q": {"dtype": "float32", "shape": [3], "values": [1, 2]}}
    },
    "holds no array 0123": {"arrays": {"q": {"dtype": "float32", "shape": [3], "values": {"sha256": "0123"}}}},
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_broken_case_is_refused_with_file_case_and_reason(folder, reason):
    path = folder / "topic.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["cases"][0] |= BROKEN[reason]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=f"^topic.json: case .*: .*{reason}"):
        load_cases(folder)


def test_a_missing_key_another_format_and_an_id_used_twice_are_refused(folder):
    path = folder / "topic.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    first = content["cases"][0]
    broken = {
        "missing, unknown or out of place in a case that is valid: flags": {
            "cases": [{key: value for key, value in first.items() if key != "flags"}]
        },
        "format 2": {"format": 2},
        "more than once: a-fact": {"cases": [first, first]},
    }
    for reason, change in broken.items():
        path.write_text(json.dumps(content | change), encoding="utf-8")
        with pytest.raises(ValueError, match=reason):
            load_cases(folder)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"id": "Not kebab"}, "lower case"),
        ({"fact": "It should be one."}, "what should be"),
        ({"fact": "One is one"}, "full stop"),
        ({"clauses": ()}, "cites a clause"),
        ({"clauses": ("Z9",)}, "no clause Z9"),
        ({"flags": ()}, "carries a flag"),
        ({"laws": ("gravity",)}, "no law gravity"),
        ({"laws": ("unmoved",)}, "go together"),
        ({"flags": ("scale-missing", "scale-missing")}, "given twice"),
        ({"flags": ("made-up",)}, "made-up is used and not explained"),
    ],
)
def test_policing_finds_the_fault(change, fault):
    found = policing.faults({"topic": [replace(FACT, **change)]}, {"scale-missing": {"bug": "…", "effect": "…"}})
    assert [line for line in found if fault in line]


def test_policing_finds_what_is_wrong_with_all_facts_together():
    entry = {"bug": "…", "effect": "…"}
    found = policing.faults({"topic": [FACT, FACT]}, {"unused": entry, "scale-missing": {"bug": "…"}})
    for fault in (
        "the id is used 2 times",
        "unused is explained and not used",
        "not in alphabetical order",
        "scale-missing has to have a bug, an effect",
        "clause C2 is cited by no fact",
    ):
        assert [line for line in found if fault in line], fault
    assert not [line for line in found if "clause A3" in line]


@pytest.mark.parametrize("paper", [[[0.5, 0.4999]], [[0.5], [0.5]], [[np.nan, 0.5]]])
def test_a_value_on_paper_that_the_oracle_does_not_share_is_refused(paper):
    arrays = {"q": array([[0]]), "k": array([[1], [2]]), "v": array([[1, 0], [0, 1]])}
    assert making.record(replace(FACT, arrays=arrays, paper={"out": [[0.5, 0.5]]}), {})
    with pytest.raises(ValueError, match="on paper, the oracle has"):
        making.record(replace(FACT, arrays=arrays, paper={"out": paper}), {})


def test_shortened_values_stay_well_within_budgets_that_do_not_shrink():
    values, budget = np.array([1 / 3, 0.1, 0.0]), np.array([1.2341e-8, 0.0, 5e-46])
    short = making.shortened(Expected("float32", (3,), values, budget))
    assert np.array_equal(short.values, [0.3333333333, 0.1, 0.0])
    assert np.array_equal(short.budget, [1.24e-8, 0.0, 5e-46])
    assert np.array_equal(making.shortened(Expected("float64", (3,), values, budget)).values, values)


def test_a_stale_and_a_superfluous_file_are_named(tmp_path, capsys):
    (tmp_path / "flags.json").write_text("{}")
    (tmp_path / "old.json").write_text("{}")
    (tmp_path / "new.json").write_text("{}")
    assert making.compare({"new.json": b"{ }"}, tmp_path) == 1
    assert "old.json is missing or has no facts" in (said := capsys.readouterr().err)
    assert "new.json differs" in said
    making.write({"new.json": b"{ }"}, tmp_path)
    assert making.compare({"new.json": b"{ }"}, tmp_path) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flags.json", "new.json"]


def test_an_attention_case_is_run_by_three_calls():
    case = next(case for case in CASES if case.id == "plain-float32")
    assert [(check.name, check.op, check.options) for check in checks(case)] == [
        ("plain-float32", "attention", {}),
        ("plain-float32@flash_attention", "flash_attention", {}),
        ("plain-float32@flash_attention-3x5", "flash_attention", {"block_size": [3, 5]}),
    ]
    assert {check.outputs for check in checks(case)} == {("out", "weights", "lse")}


def test_one_tile_and_a_refusal_are_not_run_again_with_small_tiles():
    names = {check.name for case in CASES for check in checks(case)}
    assert "scale-zero@flash_attention" in names
    assert "scale-zero@flash_attention-3x5" not in names
    refused = [case for case in CASES if case.verdict == "invalid"]
    assert not [check for case in refused for check in checks(case) if "3x5" in check.name]


def test_every_check_has_a_name_of_its_own():
    names = Counter(check.name for case in CASES for check in checks(case))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_valid_case_judges_each_of_its_outputs():
    for case in (case for case in CASES if case.verdict == "valid"):
        judged = {name for check in checks(case) for name in contract.OPERATIONS[check.op].outputs} & {*case.expect}
        assert judged == set(case.expect), case.id


def test_the_digest_tells_cases_apart():
    case = next(case for case in CASES if case.id == "plain-float32")
    other = replace(case, arrays=case.arrays | {"q": np.nextafter(case.arrays["q"], np.float32(9))})
    budget = replace(case.expect["out"], budget=2 * case.expect["out"].budget)
    wider = replace(case, expect=case.expect | {"out": budget})
    assert len({digest([case]), digest([other]), digest([wider]), digest([])}) == 4
    assert digest([case]) == digest([replace(case)])


def test_every_operation_has_a_valid_and_every_error_kind_an_invalid_case():
    assert {case.op for case in CASES if case.verdict == "valid"} >= contract.OPERATIONS.keys() - {"flash_attention"}
    assert {case.raises for case in CASES if case.verdict == "invalid"} == set(contract.ERRORS)


def test_a_fact_is_frozen():
    assert isinstance(FACT, Fact)
    with pytest.raises(AttributeError):
        FACT.id = "another"
