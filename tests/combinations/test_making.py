"""`python -m tests.combinations` makes valid cases with pairs of values that no case has yet.

A pair is two values of different parameters of an operator, such as `dimensions = 5` and
`in place = true`.

The tested code is in `tests/combinations/`: `search.py` chooses cases, `drafts.py` changes them,
`starts.py`, `windows.py`, `recurrent.py`, `attention.py`, `scatter.py`, `moves.py`, `shapes.py`,
`sizes.py` and `tensors.py` give them sizes that fit, `data.py` their data, `noticing.py` says
whether they fail with wrong outputs, and `writing.py` writes them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.loader import operator
from dmlconf.catalogue.model import Operator
from dmlconf.coverage.combinations.measure import measure_combinations
from dmlconf.coverage.combinations.parameters import parameters_of, values_of
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.fills import fill
from tests.bundled import bundled
from tests.cli.process import printed_by
from tests.combinations.data import fill_of
from tests.combinations.drafts import Draft, Pool, case_of, changes, starting_drafts
from tests.combinations.noticing import notices, notices_gross_mistakes
from tests.combinations.search import covering
from tests.combinations.windows import with_other_windows
from tests.combinations.writing import case_entries

ADD = """operator: ELEMENT_WISE_ADD
cases:
  - desc:
      ATensor: {Sizes: [2, 3], DataType: FLOAT32, fill: sequence}
      BTensor: {Sizes: [2, 3], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [2, 3], DataType: FLOAT32}
"""

POOLING = """operator: AVERAGE_POOLING1
cases:
  - desc:
      InputTensor: {Sizes: [1, 2, 5, 5], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [1, 2, 4, 4], DataType: FLOAT32}
      Strides: [1, 1]
      WindowSize: [2, 2]
      StartPadding: [0, 0]
      EndPadding: [0, 0]
      Dilations: [1, 1]
      IncludePadding: false
"""


def test_descs_with_other_windows_have_fitting_outputs(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(POOLING, encoding="utf-8")
    [case] = [valid_case(each) for each in load_suite([path]).plan()]
    parameters = parameters_of(case.operator)
    for change in (
        {"window": "as large as the input", "padding": "uneven"},
        {"strides": "different", "last size": "tile + 1"},
        {"padding": "even", "last size": "tile"},
        {"dimensions": "5", "dilations": "the same"},
    ):
        made = case
        for name, value in change.items():
            descs = with_other_windows(case.operator, made.desc, name, value)
            made = replace(case, desc=next(descs))
            assert not made.documented_violations()
        names = [each.name for each in parameters]
        values = zip(names, values_of(made, parameters), strict=True)
        assert change.items() <= set(values)


def two_entries(path: Path) -> str:
    """Return the entries of two cases that cover pairs that a file lacks."""
    entry = operator("ELEMENT_WISE_ADD")
    cases = [valid_case(each) for each in load_suite([path]).plan()]
    coverage = measure_combinations([entry], cases)[entry.name]
    made, failed = covering(coverage, *starting_drafts(entry, cases), most=2)
    assert failed == []
    return case_entries(entry, made, 1)


@pytest.mark.slow
def test_made_cases_cover_missing_pairs(tmp_path: Path) -> None:
    entry = operator("ELEMENT_WISE_ADD")
    path = tmp_path / "few.yaml"
    path.write_text(ADD, encoding="utf-8")
    cases = [valid_case(each) for each in load_suite([path]).plan()]
    before = measure_combinations([entry], cases)[entry.name]
    path.write_text(ADD + two_entries(path), encoding="utf-8")
    plan = list(load_suite([path]).plan())
    assert len(plan) == 1 + 2
    after = measure_combinations([entry], map(valid_case, plan))[entry.name]
    # Each case covers many pairs, not only the one for which it was made.
    assert len(after.missing) < len(before.missing) - 2 * 20
    assert before.missing[0] not in after.missing


@pytest.mark.slow
def test_made_cases_are_the_same_in_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash seed of a process changes the order of sets of text."""
    path = tmp_path / "few.yaml"
    path.write_text(ADD, encoding="utf-8")
    script = (
        "from pathlib import Path; from tests.combinations.test_making import two_entries; "
        f"print(two_entries(Path({str(path)!r})), end='')"
    )
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        assert printed_by(script, Path(__file__).parents[2]) == two_entries(path)


SIN = """operator: ELEMENT_WISE_SIN
cases:
  - matrix: {Value: [-.inf, -2.5]}
    desc:
      InputTensor: {Sizes: [4], DataType: FLOAT32, fill: {constant: {value: =Value}}}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
"""


def test_wide_rule_lets_a_case_notice_only_gross_mistakes(tmp_path: Path) -> None:
    """The sine of infinity is NaN; that of -2.5 may be off by 0.0008, more than 1,000 ULP."""
    path = tmp_path / "one.yaml"
    path.write_text(SIN, encoding="utf-8")
    infinite, finite = (valid_case(each) for each in load_suite([path]).plan())
    assert notices(infinite)
    assert not notices(finite)
    assert notices_gross_mistakes(finite)


ACOSH = """operator: ELEMENT_WISE_ACOSH
cases:
  - matrix: {Value: [2, 1, -1.0e+6]}
    desc:
      InputTensor: {Sizes: [4], DataType: FLOAT32, fill: {constant: {value: =Value}}}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
"""


def test_gross_mistakes_show_unless_every_result_is_permitted(tmp_path: Path) -> None:
    """Any ACOSH of -1e6 is permitted.

    It is log(x + sqrt(x^2 - 1)), and rounding may make the sum 0 or positive.
    """
    path = tmp_path / "one.yaml"
    path.write_text(ACOSH, encoding="utf-8")
    cases = map(valid_case, load_suite([path]).plan())
    assert [notices_gross_mistakes(each) for each in cases] == [True, True, False]


RNN_OF_INFINITE_INPUTS = """operator: RNN
cases:
  - desc:
      InputTensor: {Sizes: [1, 2, 3, 5], DataType: FLOAT32, fill: {constant: {value: -.inf}}}
      WeightTensor: {Sizes: [1, 1, 4, 5], DataType: FLOAT32, fill: {integers: {low: -4, high: 4}}}
      RecurrenceTensor: {Sizes: [1, 1, 4, 4], DataType: FLOAT32, fill: sequence}
      OutputSequenceTensor: {Sizes: [2, 1, 3, 4], DataType: FLOAT32}
      Direction: FORWARD
      ActivationDescs: [{operator: ACTIVATION_TANH}]
"""


def test_recurrent_layers_of_infinite_inputs_get_positive_weights(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(RNN_OF_INFINITE_INPUTS, encoding="utf-8")
    [case] = [valid_case(each) for each in load_suite([path]).plan()]
    assert case.with_inputs().inputs()["WeightTensor"].min() < 0
    [draft, *_], _ = starting_drafts(case.operator, [case])
    assert case_of(case.operator, draft).with_inputs().inputs()["WeightTensor"].min() > 0


def some_cases(name: str) -> list[Case]:
    plan = bundled(f"{name.lower()}/matrix.yaml").plan()
    return [valid_case(each) for each in list(plan)[:40]]


def test_made_case_of_attention_reads_no_past_keys() -> None:
    entry = operator("MULTIHEAD_ATTENTION1")
    drafts, pool = starting_drafts(entry, some_cases("MULTIHEAD_ATTENTION1"))
    made = changed_to_have(entry, drafts[0], pool, {"PastSequenceLengthsTensor": "present"})
    assert made is not None
    lengths = case_of(entry, made).with_inputs().inputs()["PastSequenceLengthsTensor"]
    assert not lengths.any()
    assert notices(case_of(entry, made))


def test_mild_data_keep_their_class(tmp_path: Path) -> None:
    """Mild data have fewer special numbers, or smaller ones."""
    entry = operator("ELEMENT_WISE_ADD")
    path = tmp_path / "few.yaml"
    path.write_text(ADD.replace("[2, 3]", "[40, 3]"), encoding="utf-8")
    [draft], _ = starting_drafts(entry, [valid_case(each) for each in load_suite([path]).plan()])
    for kind in ("whole", "fractions", "small", "large", "special"):
        assert values_in(entry, replace(draft, data_class=kind, mild=1))["data"] == kind


def values_in(entry: Operator, draft: Draft) -> dict[str, str | None]:
    names = [each.name for each in parameters_of(entry)]
    return dict(zip(names, values_of(case_of(entry, draft), parameters_of(entry)), strict=True))


def changed_to_have(
    entry: Operator, draft: Draft, pool: Pool, values: dict[str, str]
) -> Draft | None:
    """Return the draft with all these values, or None if there is none."""
    if not values:
        return draft
    parameters = {each.name: each for each in parameters_of(entry)}
    [*others, (name, value)] = values.items()
    before = changed_to_have(entry, draft, pool, dict(others))
    if before is None:
        return None
    for other in changes(entry, before, parameters[name], value, pool):
        try:
            case = case_of(entry, other)
        except ValueError:
            continue
        if case.documented_violations() or case.with_inputs().violations():
            continue
        if values.items() <= values_in(entry, other).items():
            return other
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("RNN", {"Direction": "BIDIRECTIONAL", "layout of WeightTensor": "channels-last"}),
        ("RNN", {"last size": "tile + 1", "SequenceLengthsTensor": "present"}),
        (
            "MULTIHEAD_ATTENTION1",
            {"layout of StackedQueryKeyTensor": "transposed", "MaskType": "KEY_SEQUENCE_LENGTH"},
        ),
        ("MULTIHEAD_ATTENTION1", {"PastSequenceLengthsTensor": "present", "queries": "prime"}),
        ("MULTIHEAD_ATTENTION1", {"layout of PastKeyTensor": "channels-last", "heads": "1"}),
        ("MULTIHEAD_ATTENTION1", {"StackedQueryKeyValueTensor": "present", "queries": "large"}),
        ("CONVOLUTION_INTEGER", {"input channels": "tile", "groups": "unusual"}),
        ("QUANTIZED_LINEAR_CONVOLUTION", {"filter": "odd", "last size": "1"}),
        ("SCATTER_ND", {"dimensions": "5", "layout of IndicesTensor": "channels-last"}),
        ("SCATTER_ND", {"dimensions": "8", "layout of IndicesTensor": "channels-last"}),
        ("SCATTER_ND", {"dimensions": "1", "layout of UpdatesTensor": "channels-last"}),
        ("SLICE1", {"dimensions": "6", "last size": "tile - 1"}),
        ("PADDING1", {"dimensions": "4", "last size": "large"}),
        ("ACTIVATION_RELU", {"dimensions": "7", "last size": "large"}),
        ("ACTIVATION_RELU", {"in place": "true", "layout of OutputTensor": "channels-last"}),
        ("ACTIVATION_RELU", {"layout of OutputTensor": "channels-last", "in place": "true"}),
    ],
)
def test_sizes_and_layouts_that_depend_on_each_other_change_together(
    name: str, values: dict[str, str]
) -> None:
    entry = operator(name)
    drafts, pool = starting_drafts(entry, some_cases(name))
    others = [each for each in drafts if not values.items() & values_in(entry, each).items()]
    assert any(changed_to_have(entry, draft, pool, values) for draft in others)


SCATTER = """operator: SCATTER_ELEMENTS
cases:
  - desc:
      InputTensor: {Sizes: [2, 4, WIDTH], DataType: FLOAT32, fill: sequence}
      IndicesTensor: {Sizes: [2, 3, WIDTH], DataType: UINT32, fill: {constant: {value: 0}}}
      UpdatesTensor: {Sizes: [2, 3, WIDTH], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [2, 4, WIDTH], DataType: FLOAT32}
      Axis: 1
"""

SCATTER_ND = """operator: SCATTER_ND
cases:
  - desc:
      InputTensor: {Sizes: [4, 3, 5], DataType: FLOAT32, fill: sequence}
      IndicesTensor: {Sizes: [2, 3, 2], DataType: UINT32, fill: {constant: {value: 0}}}
      UpdatesTensor: {Sizes: [2, 3, 5], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [4, 3, 5], DataType: FLOAT32}
      InputDimensionCount: 3
      IndicesDimensionCount: 3
"""


def indices_of(path: Path, text: str) -> Array:
    """Return the IndicesTensor of a case that is made from a file."""
    path.write_text(text, encoding="utf-8")
    [planned] = load_suite([path]).plan()
    case = valid_case(planned)
    [draft, *_], _ = starting_drafts(case.operator, [case])
    return case_of(case.operator, draft).with_inputs().inputs()["IndicesTensor"]


@pytest.mark.parametrize("width", [1, 2, 32], ids=["listed", "listed-in-columns", "sequence"])
def test_indices_along_an_axis_are_all_different(tmp_path: Path, width: int) -> None:
    indices = indices_of(tmp_path / "one.yaml", SCATTER.replace("WIDTH", str(width)))
    assert indices.max() < 4
    for row in np.moveaxis(indices, 1, -1).reshape(-1, 3).tolist():
        assert len(set(row)) == 3


def test_tuples_of_indices_are_all_different(tmp_path: Path) -> None:
    tuples = indices_of(tmp_path / "one.yaml", SCATTER_ND).reshape(6, 2).tolist()
    assert len({tuple(each) for each in tuples}) == 6
    assert all(row < 4 and column < 3 for row, column in tuples)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("TOP_K1", {"dimensions": "7", "last size": "large"}),
        ("SPLIT", {"dimensions": "1", "last size": "tile + 1"}),
        ("TILE", {"dimensions": "6", "last size": "large"}),
        ("GATHER_ND1", {"dimensions": "8", "last size": "prime"}),
        ("REDUCE", {"last size": "large", "reduced elements": "tile - 1"}),
        ("RESAMPLE1", {"dimensions": "1", "scales": "up"}),
        ("NONZERO_COORDINATES", {"dimensions": "8", "last size": "tile"}),
        ("CONVOLUTION_INTEGER", {"dimensions": "3", "input channels": "tile + 1"}),
        ("GEMM", {"rows": "tile", "inner size": "large"}),
    ],
)
def test_starting_descs_have_sizes_that_the_case_lacks(name: str, values: dict[str, str]) -> None:
    entry = operator(name)
    plan = bundled(f"{name.lower()}/matrix.yaml").plan()
    [first, *drafts], _ = starting_drafts(entry, [valid_case(next(iter(plan)))])
    assert not values.items() <= values_in(entry, first).items()
    valid = [each for each in drafts if not case_of(entry, each).documented_violations()]
    assert any(values.items() <= values_in(entry, each).items() for each in valid)


def test_special_data_of_a_small_tensor_begin_with_infinity() -> None:
    tensor = TensorDesc(DataType.FLOAT32, (1, 3))
    [(kind, arguments)] = fill_of(tensor, "special", mild=0, seed=1).items()
    assert fill(kind, tensor.Sizes, tensor.DataType, arguments)[0, 0] == np.inf
