"""Reports name the condition that failing cases meet and passing cases do not.

The tested code is in `dmlconf/diagnosis/shared_properties.py`, `dmlconf/diagnosis/groups.py`,
`dmlconf/diagnosis/common_conditions.py`, `dmlconf/diagnosis/search.py`,
`dmlconf/diagnosis/atoms.py`, `dmlconf/diagnosis/desc_atoms.py` and
`dmlconf/reports/runs/shared_properties.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from dmlconf.cases.facts import facts_of, names, names_of
from dmlconf.cases.loading.loader import valid_case
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import operator
from dmlconf.diagnosis.atoms import TableBuilder, round_number
from dmlconf.diagnosis.desc_atoms import atom_table
from dmlconf.diagnosis.search import explain
from dmlconf.diagnosis.shared_properties import SharedProperty, shared_properties
from dmlconf.expressions import Expression
from dmlconf.reports.runs.shared_properties import shared_lines, shown_failures
from dmlconf.verdicts.verdict import Reason, ReasonKind, Status, Verdict
from tests.bundled import bundled
from tests.reports import logs

WRONG = Reason(ReasonKind.WRONG_VALUES, "1 of 12 elements of OutputTensor differs")

Fails = Callable[[Mapping[str, Any]], bool]
"""Whether a case with these facts fails."""


def convolutions(fails: Fails, operator: str = "CONVOLUTION") -> list[Verdict]:
    """Return verdicts of 96 cases with combinations of five facts; `fails` says which fail."""
    verdicts = []
    for number in range(96):
        facts = {
            "InputTensor": f"{('FLOAT32', 'FLOAT16')[number % 2]} 1x{4 + number % 5}x9",
            "GroupCount": (1, 2, 4)[number // 2 % 3],
            "Direction": ("FORWARD", "BACKWARD")[number // 6 % 2],
            "Bias": bool(number // 12 % 2),
            "Strides": [1, 1 + number // 24 % 4],
        }
        status, reason = (Status.FAILED, WRONG) if fails(facts) else (Status.PASSED, None)
        case = f"{operator.lower()}/{number}"
        more = {"facts": facts, "figures": logs.figures(0.0), "tags": ()}
        verdicts.append(logs.verdict(case, status, reason, operator, **more))
    return verdicts


def filled(values: Iterable[int], fails: Callable[[int], bool]) -> list[Verdict]:
    """Return verdicts of FILL_VALUE_CONSTANT with these values; `fails` says which fail."""
    verdicts = []
    for at, value in enumerate(values):
        facts = {"OutputTensor": "INT64 4", "ValueDataType": "INT64", "Value": value}
        status, reason = (Status.FAILED, WRONG) if fails(value) else (Status.PASSED, None)
        more = {"facts": facts, "figures": logs.figures(0.0), "tags": ()}
        case = f"fill_value_constant/{at}"
        verdicts.append(logs.verdict(case, status, reason, "FILL_VALUE_CONSTANT", **more))
    return verdicts


def only_group(*verdicts: Verdict) -> SharedProperty:
    (shared,) = shared_properties(logs.run_log(*verdicts))
    return shared


def has_bias(facts: Mapping[str, Any]) -> bool:
    return bool(facts["Bias"])


def is_float16(facts: Mapping[str, Any]) -> bool:
    return str(facts["InputTensor"]).startswith("FLOAT16")


@pytest.mark.parametrize(
    ("fails", "text"),
    [
        (lambda f: f["GroupCount"] > 1, "GroupCount > 1"),
        (is_float16, "DataType == FLOAT16"),
        (has_bias, "Bias"),
        (lambda f: not f["Bias"], "not Bias"),
        (lambda f: max(f["Strides"]) > 2, "max(Strides) > 2"),
        (
            lambda f: f["Direction"] == "BACKWARD" and f["GroupCount"] == 2,
            "Direction == BACKWARD and GroupCount == 2",
        ),
    ],
)
def test_the_condition_that_failures_share_is_named(fails: Fails, text: str) -> None:
    shared = only_group(*convolutions(fails))
    assert shared.condition is not None
    assert set(shared.condition.text.split(" and ")) == set(text.split(" and "))
    assert shared.condition.exact


def test_report_counts_failures_and_passes_of_the_condition() -> None:
    verdicts = convolutions(lambda f: f["GroupCount"] > 1)
    failing = [index for index, each in enumerate(verdicts) if each.status is Status.FAILED]
    assert len(failing) == 64
    for index in failing[::20]:  # Four of them pass.
        verdicts[index] = verdicts[index].judged(status=Status.PASSED, reason=None)
    log = logs.run_log(*verdicts)
    (sentence,) = [line.sentence for line in shared_lines(log)]
    assert "60 failures (wrong values), all where GroupCount > 1" in sentence
    assert sentence.endswith(", and 4 cases pass there")


def test_a_group_of_two_failures_gets_no_condition() -> None:
    verdicts = convolutions(lambda f: f["GroupCount"] > 1)
    failing = [index for index, each in enumerate(verdicts) if each.status is Status.FAILED]
    for index in failing[2:]:
        verdicts[index] = verdicts[index].judged(status=Status.PASSED, reason=None)
    lines = shared_lines(logs.run_log(*verdicts))
    assert [line.sentence for line in lines] == ["CONVOLUTION: 2 failures (wrong values)"]
    assert "--where" not in lines[0].command


def test_failures_of_two_causes_are_two_groups() -> None:
    verdicts = convolutions(lambda f: f["Bias"] or f["GroupCount"] == 4)
    parts = [s for s in shared_properties(logs.run_log(*verdicts)) if s.condition]
    texts = sorted(s.condition.text for s in parts if s.condition)
    assert len(texts) == 2
    assert "Bias" in texts[0]
    assert "GroupCount" in texts[1]
    # A group does not count failures of the other cause.
    assert [s.condition.of for s in parts if s.condition] == [len(s.failures) for s in parts]


def test_if_nearly_all_cases_fail_no_condition_is_named() -> None:
    verdicts = convolutions(lambda facts: True) * 10
    of_one_group = [at for at, each in enumerate(verdicts) if each.facts["GroupCount"] == 1]
    for at in of_one_group[::8]:
        verdicts[at] = verdicts[at].judged(status=Status.PASSED, reason=None)
    (line,) = shared_lines(logs.run_log(*verdicts))
    assert line.sentence.endswith("920 failures (wrong values): every case that ran fails but 40")


def test_several_operators_share_a_condition() -> None:
    shared = only_group(
        *convolutions(is_float16),
        *convolutions(is_float16, "GEMM"),
        *convolutions(is_float16, "REDUCE"),
    )
    assert shared.operators == ("CONVOLUTION", "GEMM", "REDUCE")
    assert shared.condition is not None
    assert shared.condition.text == "DataType == FLOAT16"


def test_passes_count_once_for_all_groups() -> None:
    def nearly_all_of_float16(facts: Mapping[str, Any]) -> bool:
        rare = facts["Bias"] and facts["GroupCount"] == 4 and facts["Direction"] == "BACKWARD"
        return is_float16(facts) and not (rare and facts["Strides"] == [1, 2])

    zeros = Reason(ReasonKind.ALL_ZEROS, "OutputTensor is all zeros")
    products = [
        each.judged(reason=zeros)
        if each.reason
        and sum(map(int, each.case.partition("/")[2])) % 2  # No fact tells these failures apart.
        else each
        for each in convolutions(nearly_all_of_float16, "GEMM")
    ]
    passes = sum(is_float16(each.facts) and each.reason is None for each in products)
    assert passes == 1
    shared = only_group(*products, *convolutions(is_float16))
    assert shared.condition is not None
    assert (shared.condition.text, shared.condition.passes) == ("DataType == FLOAT16", passes)
    assert shared.compared == 48 + 48 + passes  # 48 cases of each operator are of FLOAT32.


def test_crashes_and_wrong_values_are_two_groups() -> None:
    crash = Reason(ReasonKind.CRASH, "the process died")
    crashes = [
        each.judged(status=Status.BROKEN, reason=crash, figures={}) if each.reason else each
        for each in convolutions(has_bias, "GEMM")
    ]
    groups = shared_properties(logs.run_log(*convolutions(has_bias), *crashes))
    assert {group.operators for group in groups} == {("CONVOLUTION",), ("GEMM",)}


def test_rejections_that_passed_do_not_count_against_a_condition() -> None:
    rejected = [
        each.judged(figures={}, status=Status.PASSED, reason=None).of_case(
            case=f"{each.case}/rejected"
        )
        for each in convolutions(has_bias)
    ]
    shared = only_group(*convolutions(has_bias), *rejected)
    assert shared.condition is not None
    assert (shared.condition.text, shared.condition.passes) == ("Bias", 0)


def test_logs_without_facts_give_groups_without_conditions() -> None:
    verdicts = [each.of_case(facts={}) for each in convolutions(has_bias)]
    assert only_group(*verdicts).condition is None


def test_failures_without_facts_are_their_own_group() -> None:
    verdicts = convolutions(has_bias)
    more = {"figures": logs.figures(0.0), "tags": ()}
    for name in ("a", "b", "c"):
        case = f"convolution/unknown/{name}"
        verdicts.append(logs.verdict(case, Status.FAILED, WRONG, "CONVOLUTION", **more))
    parts = shared_properties(logs.run_log(*verdicts))
    found = {len(part.failures): part.condition and part.condition.text for part in parts}
    assert found == {48: "Bias", 3: None}


LARGE = [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 3, 2**63 - 1, -(2**53) - 1, -(2**63), 0, 10**400]
"""Integers of which FLOAT64 rounds five, and of which it cannot hold one."""


@pytest.mark.parametrize("number", [2**53, 2**53 + 1, 2**63 - 2])
def test_a_condition_tells_large_integers_from_their_neighbours(number: int) -> None:
    values = [number, number + 1] * 8
    verdicts = filled(values, lambda value: value == number)
    shared = only_group(*verdicts)
    assert shared.condition is not None
    assert shared.condition.exact
    holds = Expression(shared.condition.text).holds
    assert [holds({"Value": value}) for value in values] == [value == number for value in values]


def test_each_atom_of_large_integers_holds_where_its_expression_is_true() -> None:
    verdicts = filled([*LARGE, *LARGE], lambda value: False)
    table = atom_table(verdicts, [np.array([2, 3]), np.array([4, 8])])
    assert any(text.startswith("Value > ") for text in table.index)
    every = [names(operator("FILL_VALUE_CONSTANT"), each.facts, ()) for each in verdicts]
    for text, row in table.index.items():
        holds = Expression(text).holds
        assert [holds(each) for each in every] == table.holds[row].tolist(), text


def test_every_failure_is_in_exactly_one_group() -> None:
    verdicts = convolutions(lambda f: f["Bias"] or f["GroupCount"] == 4)
    groups = shared_properties(logs.run_log(*verdicts))
    cases = [each.case for group in groups for each in group.failures]
    assert sorted(cases) == sorted(v.case for v in verdicts if v.status is Status.FAILED)


def test_shown_failures_alternate_between_operators() -> None:
    verdicts = [*convolutions(has_bias), *convolutions(has_bias, "GEMM")]
    shown = shown_failures(logs.run_log(*verdicts), 4)
    operators = [each.verdict.operator for each in shown]
    assert operators[:2] == operators[2:]
    assert set(operators[:2]) == {"CONVOLUTION", "GEMM"}


def test_no_failure_is_shown_if_none_is_asked_for() -> None:
    assert shown_failures(logs.run_log(*convolutions(has_bias)), 0) == []


def test_crashes_that_differ_in_a_number_are_listed_once() -> None:
    verdicts = [
        each.judged(status=Status.BROKEN, reason=Reason(ReasonKind.CRASH, f"died at {at:#x}"))
        for at, each in enumerate(convolutions(has_bias))
    ]
    (shown,) = shown_failures(logs.run_log(*verdicts), 20)
    assert shown.others == len(verdicts) - 1


@pytest.mark.parametrize(("passes", "named"), [(1, True), (2, False)])
def test_shorter_condition_is_named_if_few_passes_meet_it(passes: int, named: bool) -> None:
    failing, cases = np.arange(10), np.arange(50)
    builder = TableBuilder(50, [failing])
    builder.add("A", 5, cases < 10 + passes)
    builder.add("B", 6, (cases < 10) | (cases >= 30))
    explanation = explain(builder.table(), failing, np.arange(10, 50))
    assert explanation is not None
    assert explanation.text == "A and B"
    assert (explanation.simpler is not None) is named


@pytest.mark.parametrize(
    ("low", "high", "number"),
    [(0, 3, 0), (1, 2, 1), (3, 9, 8), (1000, 1030, 1024), (-3, -1, -2), (5, 6, 5)],
)
def test_whole_bound_has_the_largest_power_of_2(low: float, high: float, number: float) -> None:
    assert round_number(low, high, whole=True) == number


@pytest.mark.parametrize(
    ("low", "high", "number"),
    [(-0.5, 0.5, 0), (0.9, 1.5, 1), (2.1, 9.3, 6), (1.21, 1.29, 1.25), (-0.39, -0.31, -0.35)],
)
def test_other_bound_is_the_middle_in_few_digits(low: float, high: float, number: float) -> None:
    assert round_number(low, high, whole=False) == number


def test_bound_of_over_five_digits_is_the_lower_number() -> None:
    assert round_number(1.23456781, 1.23456789, whole=False) == 1.23456781


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "beginning"),
    [
        ("argmax", "argmax/invalid"),
        ("diagonal_matrix", "diagonal_matrix/boundary/numbers"),
        ("diagonal_matrix1", "diagonal_matrix1/combinations"),
        ("resample3", "resample3/matrix/antialiased-axes"),
        ("graphs/wiring.yaml", "graphs/wiring"),
    ],
)
def test_each_atom_holds_where_its_expression_is_true(folder: str, beginning: str) -> None:
    plan = [each for each in bundled(folder).plan() if each.identifier.startswith(beginning)]
    cases = [valid_case(each) for each in plan[:: max(1, len(plan) // 40)]]
    facts = [facts_of(case) for case in cases]
    verdicts = [
        logs.verdict(case.identifier, operator=case.operator_name, facts=each, tags=case.tags)
        for case, each in zip(cases, facts, strict=True)
    ]
    table = atom_table(verdicts, [])
    every = [names_of(case) for case in cases]
    assert table.index
    for text, row in table.index.items():
        holds = Expression(text).holds
        assert [holds(names) for names in every] == table.holds[row].tolist(), text


def test_graph_input_without_a_valid_name_has_no_atoms() -> None:
    facts: list[Mapping[str, Any]] = [{"x": "FLOAT32 2", "as": "FLOAT32 2"}, {"x-": "FLOAT16 3"}]
    verdicts = [
        logs.verdict(f"graphs/{at}", operator=GRAPHS, facts=each) for at, each in enumerate(facts)
    ]
    texts = atom_table(verdicts, []).index.keys()
    assert "x is not None" in texts
    assert not [text for text in texts if text.startswith(("as", "x-"))]


def test_numbers_beyond_int64_have_remainders_and_nan_has_none() -> None:
    builder = TableBuilder(3, [])
    builder.numbers("Products", bits=8, values=np.array([2.0**80, 3.0, np.nan]), divisors=(2,))
    table = builder.table()
    assert table.holds[table.index["Products % 2 == 0"]].tolist() == [True, False, False]
    assert table.holds[table.index["Products % 2 != 0"]].tolist() == [False, True, False]


def test_a_condition_that_no_failure_meets_is_not_named() -> None:
    """Of 1,004 cases, two fail: one with only `X` and one with only `Y`."""
    both = [(True, True)] * 1_000
    verdicts = []
    for at, (x, y) in enumerate([(True, False), (False, True)] * 2 + both):
        status, reason = (Status.FAILED, WRONG) if at < 2 else (Status.PASSED, None)
        more = {"facts": {"X": x, "Y": y}, "figures": logs.figures(0.0), "tags": ()}
        verdicts.append(logs.verdict(f"gemm/{at}", status, reason, "GEMM", **more))
    groups = shared_properties(logs.run_log(*verdicts))
    assert sum(len(group.failures) for group in groups) == 2
    for group in groups:
        assert group.condition is None or group.condition.failures > 0


def group_of_failures(*cases: tuple[str, str, list[str]]) -> SharedProperty:
    verdicts = [
        logs.verdict(
            f"gemm/{name}", Status.FAILED, WRONG, "GEMM", facts={"T": tensors}, tags=(tag,)
        )
        for name, tag, tensors in cases
    ]
    return only_group(*verdicts)


def test_the_simplest_failure_has_the_fewest_elements() -> None:
    pair, one = ["FLOAT32 1x4", "FLOAT32 4x1"], ["FLOAT32 1x7"]
    assert (
        group_of_failures(("pair", "matrix", pair), ("one", "matrix", one)).simplest.case
        == "gemm/one"
    )


def test_invalid_case_is_simplest_only_without_valid_ones() -> None:
    few, many = ["FLOAT32 1x2"], ["FLOAT32 9x9"]
    both = group_of_failures(("refused", "invalid", few), ("run", "matrix", many))
    assert both.simplest.case == "gemm/run"
    assert group_of_failures(("refused", "invalid", few)).simplest.case == "gemm/refused"


@pytest.mark.whole
def test_failures_of_88_operators_with_one_condition_are_one_group() -> None:
    """Of 176 operators, cases of every other one fail if they have a bias."""
    verdicts = []
    for at in range(176):
        for each in convolutions(has_bias if at % 2 else lambda f: False, f"OPERATOR_{at}"):
            verdicts += [each.of_case(case=f"{each.case}/{copy}") for copy in range(3)]
    shared = only_group(*verdicts)
    assert len(shared.operators) == 88
    assert len(shared.failures) == 88 * 48 * 3  # 48 cases have a bias, each in three copies.
    assert shared.condition is not None
    assert shared.condition.text == "Bias"
