"""A failing case is reduced to few elements, and each case that is tried on the way is valid.

The tested code is in `dmlconf/diagnosis/reduction/reduce.py`,
`dmlconf/diagnosis/reduction/passes.py`, `dmlconf/diagnosis/reduction/data.py`,
`dmlconf/diagnosis/reduction/repair.py` and `dmlconf/cases/writing/export.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.cases.facts import names_of
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.cases.writing.export import export_case
from dmlconf.catalogue.constraints import violations
from dmlconf.diagnosis.reduction.cost import cost, element_count
from dmlconf.diagnosis.reduction.number_ref import NumberRef, number_at, with_number
from dmlconf.diagnosis.reduction.reduce import reduce_case, with_own_data
from dmlconf.diagnosis.reduction.repair import repaired
from dmlconf.expressions import Expression, ExpressionError
from tests.bundled import bundled

CONDITIONS = [
    ("convolution/matrix/attributes", "GroupCount > 1 and Direction == BACKWARD", 16),
    ("gemm/", "FLOAT16 in DataTypes and TransB == TRANSPOSE", 4),
    ("gather/", "NEGATIVE_INDEX in Data and Axis > 0", 8),
    ("element_wise_multiply/", "not Packed and FLOAT16 in DataTypes", 8),
    ("join/", "len(InputTensors) > 2", 8),
    ("lstm/", "Direction == BIDIRECTIONAL", 24),
    ("element_wise_exp/combinations/pairs-4", "OutputElements % 4 == 0", 8),
    ("reduce/", "len(Axes) > 1", 4),
]
"""Beginning of a case's identifier, condition of its failure, most elements once reduced."""


def case_that_meets(beginning: str, condition: str) -> Case:
    operator = beginning.partition("/")[0]
    expression = Expression(condition)
    for planned in bundled(operator).plan():
        if planned.identifier.startswith(beginning) and "invalid" not in planned.template.tags:
            case = valid_case(planned)
            if meets(case, expression):
                return with_own_data(case)
    raise AssertionError(f"no case of {beginning} meets {condition}")


def meets(case: Case, condition: Expression) -> bool:
    """Return whether a case meets a condition; one without a value is not met."""
    try:
        return bool(condition.evaluate(names_of(case)))
    except ExpressionError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize(("beginning", "condition", "elements"), CONDITIONS)
def test_reduced_case_is_small_and_candidates_are_valid(
    beginning: str, condition: str, elements: int
) -> None:
    case, expression = case_that_meets(beginning, condition), Expression(condition)
    tried: list[Case] = []

    def fails(candidate: Case) -> bool:
        tried.append(candidate)
        return meets(candidate, expression)

    reduced = reduce_case(case, fails)
    assert reduced.complete
    assert reduced.trials == len(tried) > 0
    assert meets(reduced.case, expression)
    assert element_count(reduced.case) <= elements < element_count(case)
    for candidate in tried:
        assert not violations(candidate.operator, candidate.desc)
        shapes = {name: array.shape for name, array in candidate.inputs().items()}
        given = {name: getattr(data, "shape", None) for name, data in candidate.data.items()}
        assert shapes == given


@pytest.mark.slow
def test_each_reduced_case_is_smaller_than_the_previous_one() -> None:
    smaller: list[Case] = []
    case = case_that_meets("gemm/", "Products > 8")
    reduce_case(case, lambda c: meets(c, Expression("Products > 8")), on_smaller=smaller.append)
    assert len(smaller) > 2
    assert all(cost(b) < cost(a) for a, b in zip([case, *smaller], smaller, strict=False))


def test_data_become_zeros_except_for_a_needed_nan() -> None:
    case = case_that_meets("element_wise_max/", "NAN in Data")
    reduced = reduce_case(case, lambda c: "NAN" in names_of(c)["Data"]).case
    values = np.concatenate([array.ravel() for array in reduced.inputs().values()])
    assert np.isnan(values).sum() == 1
    assert not np.any(values[~np.isnan(values)])


def test_invalid_case_keeps_breaking_the_same_constraints() -> None:
    suite = bundled("gemm")
    plan = [p for p in suite.plan() if "invalid" in p.template.tags]
    case = with_own_data(valid_case(plan[0]))
    reduced = reduce_case(case, lambda c: True).case
    assert reduced.violations() == case.violations() != ()
    assert cost(reduced) < cost(case)


def test_nodes_that_the_failure_does_not_need_are_removed() -> None:
    suite = bundled("graphs/attention.yaml")
    case = with_own_data(valid_case(next(iter(suite.plan()))))
    assert isinstance(case, GraphCase)
    first = case.graph.operator_nodes[0].operator_name

    def fails(candidate: Case) -> bool:
        return isinstance(candidate, GraphCase) and first in candidate.graph.operators

    reduced = reduce_case(case, fails).case
    assert isinstance(reduced, GraphCase)
    assert [node.operator_name for node in reduced.graph.operator_nodes] == [first]
    assert not reduced.violations()


def test_an_interrupted_reduction_returns_a_smaller_case() -> None:
    case = case_that_meets("gemm/", "Products > 8")
    calls = 0

    def fails(candidate: Case) -> bool:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return True

    reduced = reduce_case(case, fails)
    assert not reduced.complete
    assert cost(reduced.case) < cost(case)


def test_a_reduction_whose_time_is_over_tries_no_case() -> None:
    case = case_that_meets("gemm/", "Products > 8")
    assert reduce_case(case, lambda c: True, stopped=lambda: True).trials == 0


def test_exported_reduced_case_loads_with_the_same_inputs(
    tmp_path: Path,
) -> None:
    case = case_that_meets("gather/", "NEGATIVE_INDEX in Data and Axis > 0")
    reduced = reduce_case(case, lambda c: "NEGATIVE_INDEX" in names_of(c)["Data"]).case
    path = tmp_path / "reduced.yaml"
    export_case(path, reduced, None, reduced.inputs(), listed=64, note="Reduced.")
    assert not path.with_suffix("").exists()  # The folder of arrays.
    [planned] = load_suite([path]).plan()
    read: dict[str, Any] = valid_case(planned).inputs()
    assert {name: array.tolist() for name, array in read.items()} == {
        name: array.tolist() for name, array in reduced.inputs().items()
    }


def test_repair_changes_the_size_that_a_constraint_compares() -> None:
    case = case_that_meets("scatter_elements/", "Rank > 1")
    axis, rank = case.desc["Axis"], case.desc["InputTensor"].DimensionCount
    ref = NumberRef("InputTensor", None, next(at for at in range(rank) if at != axis))
    size = number_at(case.desc, ref)
    desc = with_number(case.desc, ref, size + 1)
    assert "indices-sizes" in violations(case.operator, desc, documented=True)
    valid = repaired(case.operator, desc, frozenset({ref}))
    assert valid is not None
    assert number_at(valid, NumberRef("IndicesTensor", None, ref.dimension)) == size + 1
    assert number_at(valid, ref) == size + 1


def test_a_repair_makes_no_offset_negative() -> None:
    case = case_that_meets("slice/", "Rank == 4 and min(Offsets) == 0")
    at = case.desc["Offsets"].index(0)
    # The window becomes 99 elements longer, and reaches beyond the input.
    sizes = tuple(
        size + 99 * (dimension == at) for dimension, size in enumerate(case.desc["Sizes"])
    )
    output = NumberRef("OutputTensor", None, at)
    desc = {**with_number(case.desc, output, sizes[at]), "Sizes": sizes}
    fixed = frozenset(
        {NumberRef("Sizes"), NumberRef("Strides"), output, NumberRef("InputTensor", None, at)}
    )
    assert "window-within-input" in violations(case.operator, desc, documented=True)
    assert repaired(case.operator, desc, fixed) is None
    # The input grows if it may change.
    valid = repaired(case.operator, desc, fixed - {NumberRef("InputTensor", None, at)})
    assert valid is not None
    assert valid["Offsets"] == case.desc["Offsets"]
    assert valid["InputTensor"].Sizes[at] == sizes[at]
