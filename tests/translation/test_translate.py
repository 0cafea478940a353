"""Tables of translation are valid, and turn cases into programs of ONNX and WebNN.

The tested code is in `dmlconf/translation/translate.py`, `dmlconf/translation/tables.py`,
`dmlconf/translation/program.py`, `dmlconf/translation/values.py` and `schemas/translation/`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import Case
from dmlconf.catalogue.loader import operator_names
from dmlconf.documents.reader import read_document
from dmlconf.documents.schema import Checker, bundled_schema
from dmlconf.resources import schemas_directory
from dmlconf.translation.program import NotExpressibleError
from dmlconf.translation.tables import TARGETS, table
from dmlconf.translation.translate import translated
from tests.backends.stated_cases import stated_case
from tests.bundled import bundled
from tests.graphs.suites import graph_case


def first_case(name: str, file: str = "matrix") -> Case:
    return valid_case(next(iter(bundled(f"{name}/{file}.yaml").plan())))


def named_case(identifier: str) -> Case:
    """Return the bundled case of an identifier, or of the beginning of one."""
    operator, file, _ = identifier.split("/", 2)
    plan = bundled(f"{operator}/{file}.yaml").plan()
    return valid_case(next(each for each in plan if each.identifier.startswith(identifier)))


def image_case(name: str) -> Case:
    """Return the first case of an operator whose input has two spatial dimensions."""
    cases = map(valid_case, bundled(f"{name}/matrix.yaml").plan())
    return next(each for each in cases if each.desc["InputTensor"].DimensionCount == 4)


@pytest.mark.parametrize("target", TARGETS)
def test_each_table_has_an_entry_for_each_operator(target: str) -> None:
    assert sorted(table(target).entries) == operator_names()


# The tables express 159 and 120 of 177 operators.
@pytest.mark.parametrize(("target", "least"), [("onnx", 155), ("webnn", 115)])
def test_table_expresses_most_operators_and_declines_others(target: str, least: int) -> None:
    known = table(target)
    expressed = [name for name in known.entries if known.expresses(name)]
    assert len(expressed) >= least
    for name in known.entries.keys() - set(expressed):
        entry = known.entries[name]
        assert entry.like or entry.forms, name
        assert all(form.declined for form in entry.forms), name


@pytest.mark.parametrize("target", TARGETS)
def test_each_condition_of_a_table_depends_on_the_desc(target: str) -> None:
    for name, entry in table(target).entries.items():
        assert all(form.when.names for form in entry.forms if form.when is not None), name


def test_a_convolution_becomes_a_conv_and_its_fused_activation() -> None:
    fused = named_case("convolution/matrix/fused-activation[DataType=FLOAT32")
    assert fused.desc["FusedActivation"]["operator"] == "ACTIVATION_CELU"
    program = translated(fused, "onnx")
    _, convolution, activation, last = program.steps  # The first one reshapes the bias.
    assert (convolution.operation, activation.operation) == ("Conv", "Celu")
    assert convolution.outputs[0] in activation.inputs
    assert activation.attributes["alpha"] == 2.5
    assert activation.outputs[0] in last.inputs
    assert last.outputs == ("OutputTensor",)
    assert list(program.inputs) == list(fused.input_names())


def test_special_case_is_expressed_as_the_general_operator() -> None:
    program = translated(first_case("upsample_2d"), "onnx")
    assert program.operations == ("Resize",)
    assert program.steps[0].attributes["coordinate_transformation_mode"] == "half_pixel"


@pytest.mark.parametrize("target", TARGETS)
def test_scaled_number_is_not_rounded_before_its_function(target: str) -> None:
    scaled = named_case("element_wise_sqrt/boundary/bias-beyond-float16")
    operations = [step.operation.lower() for step in translated(scaled, target).steps]
    # 200,000 is beyond FLOAT16, and its root is not.
    assert operations == ["cast", "mul", "add", "sqrt", "cast"]


def test_a_cast_becomes_one_step_that_writes_the_output() -> None:
    for target in TARGETS:
        [step] = translated(first_case("cast"), target).steps
        assert step.operation.lower() == "cast"
        assert step.outputs == ("OutputTensor",)


@pytest.mark.parametrize(
    ("sizes", "resized", "axes"),
    [
        ((1, 1, 2, 3), (1, 1, 4, 9), (2, 3)),
        ((1, 2, 3, 1), (1, 4, 9, 1), (1, 2)),
        ((2, 3, 1, 1), (4, 9, 1, 1), (0, 1)),
    ],
)
def test_webnn_resizes_the_same_two_axes_as_the_case(
    sizes: tuple[int, ...], resized: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    [step] = translated(resampled_case(sizes, resized), "webnn").steps
    assert step.attributes["axes"] == axes
    assert step.attributes["scales"] == (2, 3)


@pytest.mark.parametrize("resized", [(2, 1, 2, 4), (1, 2, 2, 4), (2, 1, 4, 2), (2, 2, 4, 2)])
def test_webnn_resizes_only_two_adjacent_axes(
    resized: tuple[int, ...],
) -> None:
    with pytest.raises(NotExpressibleError, match="next to each other"):
        translated(resampled_case((1, 1, 2, 2), resized), "webnn")


def resampled_case(sizes: tuple[int, ...], resized: tuple[int, ...]) -> Case:
    scales = tuple(float(new / old) for old, new in zip(sizes, resized, strict=True))
    return stated_case(
        "here",
        "resampled",
        "RESAMPLE1",
        {"InputTensor": np.zeros(sizes, np.float32)},
        {"OutputTensor": np.zeros(resized, np.float32)},
        {
            "InterpolationMode": "NEAREST_NEIGHBOR",
            "DimensionCount": len(sizes),
            "Scales": scales,
            "InputPixelOffsets": (0.5,) * len(sizes),
            "OutputPixelOffsets": (-0.5,) * len(sizes),
        },
    )


def test_lstm_with_peepholes_has_no_counterpart_in_webnn() -> None:
    peephole = named_case("lstm/matrix/sizes[DataType=FLOAT32,Length=1,Batch=1,Inputs=1,Hidden=1,")
    assert peephole.desc["PeepholeTensor"] is not None
    with pytest.raises(NotExpressibleError, match="sees the cell of the step before"):
        translated(peephole, "webnn")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("resample/sizes/image[Scale=1.5]", "takes the quotient of the sizes"),
        ("reduce/combinations/pairs-7", "an axis that is given twice"),
        (
            "element_wise_clip1/boundary/bounds-of-4-bits[DataType=FLOAT32,MinMaxDataType=INT4]",
            "bounds of 4 bits",
        ),
    ],
)
def test_a_case_that_webnn_interprets_differently_has_no_counterpart(
    name: str, reason: str
) -> None:
    with pytest.raises(NotExpressibleError, match=reason):
        translated(named_case(name), "webnn")


@pytest.mark.parametrize(
    ("name", "attribute", "taken"),
    [
        (
            "element_wise_clip1/boundary/bounds-of-another-data-type"
            "[DataType=FLOAT32,MinMaxDataType=FLOAT16,Max=2.7]",
            "maxValue",
            2.69921875,  # 2.7 in FLOAT16.
        ),
        (
            "element_wise_clip1/boundary/infinite-bounds-of-another-data-type"
            "[DataType=FLOAT16,MinMaxDataType=FLOAT32]",
            "maxValue",
            65504,
        ),
        ("padding/boundary/value-truncated-and-wrapped", "value", 44),  # 300 - 256.
    ],
)
def test_webnn_gets_attributes_as_directml_converts_them(
    name: str, attribute: str, taken: float
) -> None:
    steps = translated(named_case(name), "webnn").steps
    assert [s.attributes[attribute] for s in steps if attribute in s.attributes] == [taken]


@pytest.mark.parametrize(
    ("target", "operator", "field", "zero", "divisor"),
    [
        ("onnx", "max_pooling2", "Strides", (0, 0), "stride"),
        ("webnn", "average_pooling1", "Strides", (0, 0), "stride"),
        ("webnn", "space_to_depth1", "BlockSize", 0, "BlockSize"),
    ],
)
def test_a_division_by_zero_has_no_counterpart_and_names_the_divisor(
    target: str, operator: str, field: str, zero: Any, divisor: str
) -> None:
    case = image_case(operator)
    translated(case, target)
    without = replace(case, desc={**case.desc, field: zero})
    with pytest.raises(NotExpressibleError) as declined:
        translated(without, target)
    assert str(declined.value) == f"{operator.upper()}: division by {divisor}, which is 0"


def test_a_desc_that_must_be_refused_has_no_counterpart() -> None:
    with pytest.raises(NotExpressibleError, match="must refuse"):
        translated(first_case("gather", "invalid"), "onnx")


def test_graph_becomes_one_program_of_connected_steps() -> None:
    graph = first_case("graphs", "chains")
    program = translated(graph, "onnx")
    known = {*program.inputs, *program.constants}
    made: set[str] = set()
    reads_of_nodes = 0
    for step in program.steps:
        read = {name for name in step.inputs if name}
        assert read <= known | made
        reads_of_nodes += len(read & made)
        made |= set(step.outputs)
    assert reads_of_nodes > 0
    assert program.outputs.keys() <= made


def graph_with_edge(folder: Path, produced: int, consumed: int) -> Case:
    """Return a graph in which a node writes `produced` elements, and the next reads `consumed`."""
    values = [1, 2, 3, 4][:produced]
    return graph_case(
        folder,
        f"""
inputs: {{x: {{Sizes: [1, 1, 1, {produced}], DataType: FLOAT16, values: {values}}}}}
nodes:
  first: {{operator: ACTIVATION_RELU, desc: {{InputTensor: x, OutputTensor: {{}}}}}}
  second:
    operator: ACTIVATION_RELU
    desc: {{InputTensor: {{from: first, Sizes: [1, 1, 1, {consumed}]}}, OutputTensor: {{}}}}
outputs: {{y: second}}
""",
    )


def test_edge_to_a_smaller_tensor_picks_its_elements(tmp_path: Path) -> None:
    program = translated(graph_with_edge(tmp_path, produced=4, consumed=3), "onnx")
    [gather] = [step for step in program.steps if step.operation == "Gather"]
    assert program.constants[gather.inputs[1]].ravel().tolist() == [0, 1, 2]


def test_edge_to_a_larger_tensor_has_no_counterpart(tmp_path: Path) -> None:
    graph = graph_with_edge(tmp_path, produced=3, consumed=4)
    with pytest.raises(NotExpressibleError, match="does not write"):
        translated(graph, "onnx")


def test_node_output_exported_twice_is_two_outputs() -> None:
    twice = named_case("graphs/wiring/exported-twice[")
    program = translated(twice, "onnx")
    assert len(program.outputs) == len(twice.outputs()) > 1
    assert {name for step in program.steps for name in step.outputs} >= set(program.outputs)


@pytest.mark.parametrize("target", TARGETS)
def test_output_padding_of_a_forward_convolution_has_no_counterpart(target: str) -> None:
    convolution = image_case("convolution")
    assert convolution.desc["Direction"] == "FORWARD"
    translated(convolution, target)
    padded = replace(convolution, desc={**convolution.desc, "OutputPadding": (1, 0)})
    with pytest.raises(NotExpressibleError, match="OutputPadding of a forward convolution"):
        translated(padded, target)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_window_across_channels_of_any_size_is_one_lrn(size: int) -> None:
    """DirectML and ONNX put floor((size - 1) / 2) channels of the window before the element."""
    found = first_case("local_response_normalization")
    program = translated(
        replace(found, desc={**found.desc, "CrossChannel": True, "LocalSize": size}), "onnx"
    )
    [step] = program.steps
    assert (step.operation, step.attributes["size"]) == ("LRN", size)


def test_only_float16_linear_functions_have_casts() -> None:
    plan = list(bundled("activation_linear/matrix.yaml").plan())
    half = next(each for each in plan if "DataType=FLOAT16" in each.identifier)
    assert translated(valid_case(half), "onnx").operations == ("Cast", "Mul", "Add")
    single = next(each for each in plan if "DataType=FLOAT32" in each.identifier)
    assert translated(valid_case(single), "onnx").operations == ("Mul", "Add")


def test_integer_product_is_reshaped_to_other_ranks_only() -> None:
    reshaped = set()
    for planned in bundled("matrix_multiply_integer/matrix.yaml").plan():
        if "/ranks-of-matrices[" in planned.identifier:
            product = valid_case(planned)
            a, b, output = (
                len(product.desc[name].Sizes) for name in ("ATensor", "BTensor", "OutputTensor")
            )
            operations = translated(product, "onnx").operations
            assert ("Reshape" in operations) is (max(a, b) != output)
            reshaped.add("Reshape" in operations)
    assert reshaped == {True, False}


@pytest.mark.parametrize("target", TARGETS)
def test_each_table_fits_its_schema(target: str) -> None:
    data = read_document(schemas_directory() / "translation" / f"{target}.yaml").data
    assert not list(Checker(bundled_schema("translation")).iter_errors(data))


def test_an_input_on_which_no_output_depends_is_not_used() -> None:
    program = translated(named_case("graphs/wiring/unused-inputs-between-used-ones["), "webnn")
    assert len(program.inputs) == 5
    assert len(program.used_inputs()) == 2
    assert program.used_inputs().keys() < program.inputs.keys()


@pytest.mark.parametrize(
    ("sizes", "operation", "new_sizes"),
    [((3, 1, 2, 4), "Expand", [3, 1, 1, 4]), ((2, 4), "Reshape", [-1])],
    ids=["batches", "one matrix, so a single dimension of all columns"],
)
def test_scales_of_columns_get_batch_sizes_of_the_matrix(
    sizes: tuple[int, ...], operation: str, new_sizes: list[int]
) -> None:
    """ONNX: "Scale and zero point must have same shape", [D1, D2, 1, K] for columns."""
    product = stated_case(
        "here",
        "product",
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
        {
            "ATensor": np.ones((*sizes[:-2], 1, 2), np.uint8),
            "AScaleTensor": np.ones((1, 1), np.float32),
            "BTensor": np.ones(sizes, np.uint8),
            "BScaleTensor": np.ones((1, 4), np.float32),
            "OutputScaleTensor": np.ones((1, 1), np.float32),
        },
        {"OutputTensor": np.full((*sizes[:-2], 1, 4), 2, np.uint8)},
        {},
    )
    program = translated(product, "onnx")
    steps = {step.outputs[0]: step for step in program.steps}
    _, _, _, _, scale, zero_point, *_ = steps[
        "OutputTensor"
    ].inputs  # After A, its scale and zero point, and B.
    for step in (steps[scale], steps[zero_point]):
        assert step.operation == operation
        assert program.constants[step.inputs[1]].tolist() == new_sizes


@pytest.mark.parametrize("operator", ["convolution_integer", "quantized_linear_convolution"])
def test_integer_convolution_with_dilation_0_has_no_counterpart(
    operator: str,
) -> None:
    convolution = first_case(operator)
    dilations = (0,) * convolution.desc["DimensionCount"]
    wide = replace(convolution, desc={**convolution.desc, "Dilations": dilations})
    with pytest.raises(NotExpressibleError, match="a stride or dilation of 0"):
        translated(wide, "onnx")
