"""Each constraint that a desc breaks is explained at the right field, with the values.

The tested code is in `dmlconf/catalogue/explanations.py`, `dmlconf/cases/model.py`,
`dmlconf/cases/loading/loader.py` (`valid_case`) and `dmlconf/graphs/wiring.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.explanations import explanations
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.resources import cases_directory
from tests.bundled import bundled

GATHER = """\
operator: GATHER
cases:
  - name: case
    desc:
      InputTensor: {{DataType: FLOAT32, Sizes: [1, 4], values: [[1, 2, 3, 4]]}}
      IndicesTensor: {{DataType: {indices}, Sizes: [1, 2], values: [[1, 0]]}}
      OutputTensor: {{DataType: {output}, Sizes: {sizes}}}
      Axis: {axis}
      IndexDimensions: 1
"""


def errors(path: Path, text: str) -> list[str]:
    """Return the problems of a file, each as its line and the text after "breaks"."""
    file = path / "f.yaml"
    file.write_text(text)
    with pytest.raises(InvalidFilesError) as caught:
        valid_case(next(iter(load_suite([file]).plan())))
    problems = caught.value.problems
    return [f"{problem.line}: {problem.message.partition(' breaks ')[2]}" for problem in problems]


def errors_of_gather(
    path: Path,
    *,
    indices: str = "UINT32",
    output: str = "FLOAT32",
    sizes: str = "[1, 2]",
    axis: int = 1,
) -> list[str]:
    text = GATHER.format(indices=indices, output=output, sizes=sizes, axis=axis)
    return errors(path, text)


def test_an_equation_names_both_values_at_its_first_field(tmp_path: Path) -> None:
    (error,) = errors_of_gather(tmp_path, sizes="[1, 3]")
    expected = "output-sizes, but expects no rejection: OutputTensor.Sizes is [1, 3], not [1, 2]"
    assert error == f"7: {expected}"


def test_an_equation_of_two_fields_names_both(tmp_path: Path) -> None:
    (error,) = errors_of_gather(tmp_path, output="FLOAT16")
    assert error.endswith("InputTensor.DataType is FLOAT32, but OutputTensor.DataType is FLOAT16")


def test_an_inequality_shows_its_expression_and_values(tmp_path: Path) -> None:
    error, *_ = errors_of_gather(tmp_path, axis=2)
    assert error.startswith("8: axis-in-range,")
    assert error.endswith(
        "`Axis < InputTensor.DimensionCount` does not hold: Axis is 2, InputTensor.DimensionCount "
        "is 2"
    )


def test_an_unlisted_data_type_shows_the_listed_ones(tmp_path: Path) -> None:
    (error,) = errors_of_gather(tmp_path, indices="FLOAT32")
    assert error.startswith("6: supported-data-type,")
    assert "IndicesTensor is FLOAT32; the documentation lists INT64, INT32, UINT64, UINT32" in error


def test_each_broken_constraint_has_its_own_line(tmp_path: Path) -> None:
    found = errors_of_gather(tmp_path, output="FLOAT16", axis=3)
    assert [error.split(",")[0] for error in found] == [
        "5: same-data-type",
        "8: axis-in-range",
        "7: output-sizes",
    ]


def test_only_the_missing_fields_of_a_desc_are_reported(tmp_path: Path) -> None:
    (error,) = errors(tmp_path, "operator: GATHER\ncases:\n  - name: case\n    desc: {Axis: 0}\n")
    missing = "InputTensor, IndicesTensor, OutputTensor, IndexDimensions are missing"
    assert error == f"4: required-field, but expects no rejection: {missing}"


EXPLANATIONS = [
    (
        "activation_relu/invalid/input-size-of-0",
        "sizes-not-zero",
        "InputTensor",
        "`all(size > 0 for size in InputTensor.Sizes)` does not hold: InputTensor.Sizes is [0, 3]",
    ),
    (
        "element_wise_identity/invalid/output-stride-of-0",
        "output-strides-do-not-overlap",
        "OutputTensor",
        "`not OutputTensor.OverlappingStrides` does not hold: OutputTensor.OverlappingStrides is "
        "true",
    ),
    (
        "unfold/invalid/columns-of-four-dimensions",
        "supported-dimension-count",
        "OutputTensor",
        "OutputTensor has 4 dimensions; the documentation lists 3",
    ),
    (
        "reduce/invalid/unknown-function",
        "supported-dimension-count",
        "InputTensor",
        "InputTensor has 2 dimensions, and no support table applies to these attributes",
    ),
    (
        "tile/invalid/unsupported-output-data-type",
        "supported-data-type",
        "OutputTensor",
        "OutputTensor is INT4; the documentation lists FLOAT32, FLOAT16, INT64, INT32, INT16, "
        "INT8, UINT64, UINT32, UINT16, UINT8; DirectML accepts FLOAT64 as well",
    ),
    (
        "tile/invalid/one-repeat-too-few",
        "one-repeat-per-dimension",
        "Repeats",
        "RepeatsCount is 1, but InputTensor.DimensionCount is 2",
    ),
    (
        "convolution/invalid/output-of-5-dimensions",
        "batch-sizes",
        "InputTensor",
        "InputTensor.Sizes[0] is 2, but OutputTensor.Sizes[0] is 1",
    ),
    (
        "gru/invalid/two-inputs-at-once",
        "one-leading-size",
        "InputTensor",
        "InputTensor.Sizes[0] is 2, not 1",
    ),
    (
        "gru/invalid/sequence-one-too-long",
        "output-sequence-sizes",
        "OutputSequenceTensor",
        "OutputSequenceTensor.Sizes is [4, 1, 2, 3], not [3, 1, 2, 3]",
    ),
    (
        "gru/invalid/bias-of-one-half",
        "bias-sizes",
        "BiasTensor",
        "BiasTensor.Sizes is [1, 1, 1, 9], but (1, 1, DirectionCount, 6 * HiddenSize) is "
        "[1, 1, 1, 18]",
    ),
    (
        "adam_optimizer/invalid/first-moment-of-another-rank",
        "same-sizes",
        "",
        "`same(tensor.Sizes for tensor in Tensors)` does not hold: [[2, 3], [1, 2, 3], [2, 3], "
        "[2, 3], [2, 3], [2, 3], [2, 3]]",
    ),
    (
        "reduce/invalid/place-as-a-floating-point-number",
        "index-type",
        "Function",
        "`(Function in ('ARGMIN', 'ARGMAX')) <= (OutputTensor.DataType in ('INT64', 'INT32', "
        "'UINT64', 'UINT32'))` does not hold: Function is ARGMAX, OutputTensor.DataType is FLOAT32",
    ),
    (
        "top_k/invalid/axis-beyond-last-dimension",
        "k-in-range",
        "K",
        "`0 < K <= InputTensor.Sizes[Axis]` does not hold: K is 3",
    ),
]
"""Identifier of an invalid case, constraint, field, and the explanation at the field."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("identifier", "constraint", "field", "text"),
    EXPLANATIONS,
    ids=[each[1] for each in EXPLANATIONS],
)
def test_bundled_invalid_cases_have_these_explanations(
    identifier: str, constraint: str, field: str, text: str
) -> None:
    suite = bundled(identifier.partition("/")[0])
    case = build(next(each for each in suite.plan() if each.identifier == identifier))
    assert isinstance(case, Case)
    (each,) = [
        each
        for each in explanations(case.operator, case.desc)
        if each.constraint == constraint and each.field == field
    ]
    assert each.text == text


def test_a_constraint_broken_in_a_graph_is_explained(tmp_path: Path) -> None:
    text = """\
graph: a tile
cases:
  - name: case
    inputs: {x: {DataType: FLOAT32, Sizes: [2, 3], values: [[1, 2, 3], [4, 5, 6]]}}
    nodes:
      turned:
        operator: TILE
        desc:
          InputTensor: x
          OutputTensor: {DataType: FLOAT32, Sizes: [2, 3]}
          Repeats: [2, 1]
    outputs: {y: turned}
"""
    (error,) = errors(tmp_path, text)
    assert error == "10: output-sizes of TILE: OutputTensor.Sizes is [2, 3], not [4, 3]"
    (error,) = errors(tmp_path, text.replace("          Repeats: [2, 1]\n", ""))
    assert error.endswith("required-field of TILE: Repeats is missing")


def rejected() -> Iterator[tuple[Case, str]]:
    """Yield the first case that must be rejected for each constraint of each operator."""
    seen = set()
    for planned in load_suite([cases_directory()]).plan():
        if "invalid" not in planned.template.tags or planned.template.operator_name == "GRAPHS":
            continue
        case = build(planned)
        assert isinstance(case.expectation, ExpectedRejection)
        constraint = case.expectation.constraint
        key = case.operator_name, constraint
        if constraint and key not in seen and not isinstance(case, GraphCase):
            seen.add(key)
            yield case, constraint


@pytest.mark.whole
def test_every_constraint_of_bundled_invalid_cases_is_explained() -> None:
    count = 0
    for case, constraint in rejected():
        count += 1
        broken = explanations(case.operator, case.desc)
        explained = [each for each in broken if each.constraint == constraint]
        assert explained, (case.identifier, constraint)
        for each in explained:
            assert each.text, case.identifier
            field = each.field.partition("[")[0]
            assert field in {"", *(known.name for known in case.entry.fields)}, case.identifier
    assert count > 500
