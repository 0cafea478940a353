"""Outputs that DirectML was measured to give pass, and wrong outputs of the same cases fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.backends.protocol import Outputs
from dmlconf.backends.registry import parse
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.engine.session import reference
from dmlconf.judging.judge import judge
from dmlconf.verdicts.verdict import Status

NAN, INFINITY = np.nan, np.inf


@dataclass(frozen=True)
class Measured:
    """A case, the outputs of DirectML for it, and outputs that no device may give."""

    operator: str
    desc: str
    given: Mapping[str, list[Any]]
    wrong: Mapping[str, list[Any]]


ONE_STEP = (
    "InputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}, "
    "OutputSequenceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}, Direction: FORWARD, "
)
LINEAR = "{operator: ACTIVATION_LINEAR, Alpha: 1, Beta: 0}"
ROW_OF_1024 = ", ".join(["1", "5", *["0"] * 1021, ".nan"])

MEASURED = {
    "infinity beside numbers at a scale of 1": Measured(
        "UPSAMPLE_2D",
        "{InputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [1, .inf, 2, 3]}, "
        "OutputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32}, "
        "ScaleSize: {Width: 1, Height: 1}, InterpolationMode: LINEAR}",
        {"OutputTensor": [NAN, NAN, 2, 3]},
        {"OutputTensor": [7, NAN, 2, 3]},
    ),
    "NaN is not right where nothing infinite is near": Measured(
        "UPSAMPLE_2D",
        "{InputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [1, 2, .inf, 3]}, "
        "OutputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32}, "
        "ScaleSize: {Width: 1, Height: 1}, InterpolationMode: LINEAR}",
        {"OutputTensor": [1, 2, INFINITY, 3]},
        {"OutputTensor": [1, 2, INFINITY, NAN]},
    ),
    "NaN at the end of a row that is compared in parts": Measured(
        "ACTIVATION_HARDMAX1",
        "{InputTensor: {Sizes: [1024], DataType: FLOAT32, values: [" + ROW_OF_1024 + "]}, "
        "OutputTensor: {Sizes: [1024], DataType: FLOAT32}, Axes: [0]}",
        {"OutputTensor": [*[0] * 1023, 1]},
        {"OutputTensor": [*[0] * 1023, 2]},
    ),
    "a product that overflows before it is scaled": Measured(
        "MULTIHEAD_ATTENTION",
        "{QueryTensor: {Sizes: [1, 1, 1], DataType: FLOAT32, values: [-4]}, "
        "KeyTensor: {Sizes: [1, 1, 1], DataType: FLOAT32, values: [3.4028235e+38]}, "
        "ValueTensor: {Sizes: [1, 1, 2], DataType: FLOAT32, values: [1, -.inf]}, "
        "OutputTensor: {Sizes: [1, 1, 2], DataType: FLOAT32}, Scale: 0, MaskFilterValue: 0, "
        "HeadCount: 1, MaskType: NONE}",
        {"OutputTensor": [NAN, NAN]},
        {},
    ),
    "a product that does not overflow": Measured(
        "MULTIHEAD_ATTENTION",
        "{QueryTensor: {Sizes: [1, 1, 1], DataType: FLOAT32, values: [-0.5]}, "
        "KeyTensor: {Sizes: [1, 1, 1], DataType: FLOAT32, values: [3.4028235e+38]}, "
        "ValueTensor: {Sizes: [1, 1, 1], DataType: FLOAT32, values: [1]}, "
        "OutputTensor: {Sizes: [1, 1, 1], DataType: FLOAT32}, Scale: 0, MaskFilterValue: 0, "
        "HeadCount: 1, MaskType: NONE}",
        {"OutputTensor": [1]},
        {"OutputTensor": [NAN]},
    ),
    "positions of the present tensors that are not written": Measured(
        "MULTIHEAD_ATTENTION1",
        "{StackedQueryKeyValueTensor: {Sizes: [1, 1, 1, 3, 1], DataType: FLOAT32, "
        "values: [1, 2, 3]}, "
        "PastSequenceLengthsTensor: {Sizes: [1], DataType: INT32, values: [1]}, "
        "OutputTensor: {Sizes: [1, 1, 1], DataType: FLOAT32}, "
        "OutputPresentKeyTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32}, "
        "OutputPresentValueTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32}, Scale: 1, "
        "MaskFilterValue: 0, QueryHeadCount: 1, KeyValueHeadCount: 1, MaskType: NONE}",
        {
            "OutputTensor": [-215801040],
            "OutputPresentKeyTensor": [-431602080, 2],
            "OutputPresentValueTensor": [NAN, 3],
        },
        {
            "OutputTensor": [-215801040],
            "OutputPresentKeyTensor": [-431602080, 2],
            "OutputPresentValueTensor": [NAN, -431602080],
        },
    ),
    "a scale that overflows before it meets the mean": Measured(
        "BATCH_NORMALIZATION_TRAINING",
        "{InputTensor: {Sizes: [1], DataType: FLOAT32, values: [0]}, "
        "ScaleTensor: {Sizes: [1], DataType: FLOAT32, values: [3.4e+38]}, "
        "BiasTensor: {Sizes: [1], DataType: FLOAT32, values: [0]}, "
        "OutputTensor: {Sizes: [1], DataType: FLOAT32}, "
        "OutputMeanTensor: {Sizes: [1], DataType: FLOAT32}, "
        "OutputVarianceTensor: {Sizes: [1], DataType: FLOAT32}, Epsilon: 0.5}",
        {"OutputTensor": [NAN], "OutputMeanTensor": [0], "OutputVarianceTensor": [0]},
        {"OutputTensor": [1], "OutputMeanTensor": [0], "OutputVarianceTensor": [0]},
    ),
    "a scale that does not overflow": Measured(
        "BATCH_NORMALIZATION_TRAINING",
        "{InputTensor: {Sizes: [1], DataType: FLOAT32, values: [0]}, "
        "ScaleTensor: {Sizes: [1], DataType: FLOAT32, values: [2.0e+38]}, "
        "BiasTensor: {Sizes: [1], DataType: FLOAT32, values: [0]}, "
        "OutputTensor: {Sizes: [1], DataType: FLOAT32}, "
        "OutputMeanTensor: {Sizes: [1], DataType: FLOAT32}, "
        "OutputVarianceTensor: {Sizes: [1], DataType: FLOAT32}, Epsilon: 0.5}",
        {"OutputTensor": [0], "OutputMeanTensor": [0], "OutputVarianceTensor": [0]},
        {"OutputTensor": [NAN], "OutputMeanTensor": [0], "OutputVarianceTensor": [0]},
    ),
    "errors that exceed both factors of a gate's share": Measured(
        "GRU",
        "{InputTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [-1.6e-23, 0]}, "
        "WeightTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [0, 0, 1]}, "
        "RecurrenceTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [1, 0, 0]}, "
        "OutputSequenceTensor: {Sizes: [2, 1, 1, 1], DataType: FLOAT32}, "
        "ActivationDescs: [{operator: ACTIVATION_GELU}, "
        "{operator: ACTIVATION_SCALED_ELU, Alpha: 1, Gamma: 1}], "
        "Direction: FORWARD, LinearBeforeReset: false}",
        {"OutputSequenceTensor": [-5.960464477539063e-08, 1.776356733521132e-15]},
        {"OutputSequenceTensor": [-5.960464477539063e-08, 1.0e-11]},
    ),
    "a FLOAT16 gradient that a store toward zero holds": Measured(
        "BATCH_NORMALIZATION_TRAINING_GRAD",
        "{InputTensor: {Sizes: [1, 7], DataType: FLOAT16, "
        "values: [0.45263671875, 0, 0, 0, 0, 0, 65504]}, "
        "InputGradientTensor: {Sizes: [1, 7], DataType: FLOAT16, "
        "values: [0, 0, 0, 0, 0, 0, 65504]}, "
        "MeanTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [0.482421875]}, "
        "VarianceTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [2048]}, "
        "ScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [2048]}, "
        "OutputGradientTensor: {Sizes: [1, 7], DataType: FLOAT16}, "
        "OutputScaleGradientTensor: {Sizes: [1, 1], DataType: FLOAT16}, "
        "OutputBiasGradientTensor: {Sizes: [1, 1], DataType: FLOAT16}, Epsilon: 0}",
        {
            "OutputGradientTensor": [-65504] * 7,
            "OutputScaleGradientTensor": [1447],
            "OutputBiasGradientTensor": [65504],
        },
        {
            "OutputGradientTensor": [-60000, *[-65504] * 6],
            "OutputScaleGradientTensor": [1447],
            "OutputBiasGradientTensor": [65504],
        },
    ),
    "biases of RNN that cancel": Measured(
        "RNN",
        "{" + ONE_STEP + "WeightTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1.8]}, "
        "RecurrenceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]}, "
        "BiasTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [16777215, -16777215]}, "
        "ActivationDescs: [" + LINEAR + "]}",
        {"OutputSequenceTensor": [2]},
        {"OutputSequenceTensor": [9]},
    ),
    "biases of GRU that cancel": Measured(
        "GRU",
        "{" + ONE_STEP + "WeightTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, "
        "values: [0, 0, 1.8]}, "
        "RecurrenceTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [0, 0, 0]}, "
        "BiasTensor: {Sizes: [1, 1, 1, 6], DataType: FLOAT32, "
        "values: [0, 0, 16777215, 0, 0, -16777215]}, LinearBeforeReset: false, "
        "ActivationDescs: [" + LINEAR + ", " + LINEAR + "]}",
        {"OutputSequenceTensor": [2]},
        {"OutputSequenceTensor": [9]},
    ),
    "biases of the same sign": Measured(
        "RNN",
        "{" + ONE_STEP + "WeightTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1.8]}, "
        "RecurrenceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]}, "
        "BiasTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [16, 15]}, "
        "ActivationDescs: [" + LINEAR + "]}",
        {"OutputSequenceTensor": [32.8]},
        {"OutputSequenceTensor": [32.801]},
    ),
}


def status(folder: Path, measured: Measured, values: Mapping[str, list[Any]]) -> Status:
    path = folder / "measured.yaml"
    path.write_text(
        f"operator: {measured.operator}\ncases:\n  - name: it\n    desc: {measured.desc}\n", "utf-8"
    )
    case = build(next(load_suite([path]).plan()))
    arrays = {
        name: np.array(values[name], tensor.DataType.dtype).reshape(tensor.Sizes)
        for name, tensor in case.outputs().items()
    }
    return judge(case, Outputs(arrays), reference("numpy", parse("directml"))).status


@pytest.mark.parametrize("name", MEASURED)
def test_what_directml_gave_is_right_and_what_no_device_may_give_is_not(
    name: str, tmp_path: Path
) -> None:
    measured = MEASURED[name]
    assert status(tmp_path, measured, measured.given) in (Status.PASSED, Status.UNCHECKED)
    if measured.wrong:
        assert status(tmp_path, measured, measured.wrong) is Status.FAILED
