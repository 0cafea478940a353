"""Outputs that DirectML was measured to give do not fail; wrong outputs of the same cases do.

The tested code is in the module of `dmlconf/permitted/` that permits the operator's outputs, such
as `dmlconf/permitted/recurrent/gru.py` for GRU.
"""

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
    """A case, the outputs of DirectML for it, and outputs that no device may give.

    Without wrong outputs, any output of the case is right.
    """

    operator: str
    desc: str
    given: Mapping[str, list[Any]]
    wrong: Mapping[str, list[Any]]


ONE_STEP = (
    "InputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}, "
    "OutputSequenceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}, Direction: FORWARD, "
)
LINEAR = "{operator: ACTIVATION_LINEAR, Alpha: 1, Beta: 0}"
BESIDE_INFINITY = (
    "InputTensor: {Sizes: [4], DataType: FLOAT32, values: [-3.4e+38, -2, 3, 3.4e+38]}, "
    "OutputTensor: {Sizes: [4], DataType: FLOAT32}, Alpha: 7, Beta: .inf}"
)
ROW_OF_1024 = ", ".join(["1", "5", *["0"] * 1021, ".nan"])

MEASURED = {
    "infinite product beside an infinite bias": Measured(
        "MEAN_VARIANCE_NORMALIZATION2",
        "{InputTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [3, -3, 3]}, "
        "ScaleTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [3.4e+38, 3.4e+38, 1]}, "
        "BiasTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [-.inf, .inf, -.inf]}, "
        "OutputTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32}, Axes: [0], UseMean: false, "
        "UseVariance: false, Epsilon: 1}",
        {"OutputTensor": [NAN, NAN, -INFINITY]},
        {"OutputTensor": [NAN, NAN, NAN]},
    ),
    "infinite product beside an infinite Beta": Measured(
        "ACTIVATION_LINEAR",
        "{InputTensor: {Sizes: [3], DataType: FLOAT32, values: [60000, -60000, 1]}, "
        "OutputTensor: {Sizes: [3], DataType: FLOAT32}, Alpha: 3.0e+38, Beta: .inf}",
        {"OutputTensor": [INFINITY, NAN, INFINITY]},
        {"OutputTensor": [INFINITY, NAN, NAN]},
    ),
    "infinity beside numbers at a scale of 1": Measured(
        "UPSAMPLE_2D",
        "{InputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [1, .inf, 2, 3]}, "
        "OutputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32}, "
        "ScaleSize: {Width: 1, Height: 1}, InterpolationMode: LINEAR}",
        {"OutputTensor": [NAN, NAN, 2, 3]},
        {"OutputTensor": [7, NAN, 2, 3]},
    ),
    "NaN that is not beside an infinity": Measured(
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
    "a FLOAT16 gradient that a store toward zero keeps finite": Measured(
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
    "an activation of products that overflow": Measured(
        "CONVOLUTION",
        "{InputTensor: {Sizes: [1, 2, 2, 1], DataType: FLOAT32, "
        "values: [1.0e20, 0, -1.0e20, 3e-20]}, "
        "FilterTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [2.0e20, 1.0e20]}, "
        "OutputTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32}, Mode: CROSS_CORRELATION, "
        "Direction: FORWARD, Strides: [1, 1], Dilations: [1, 1], StartPadding: [0, 0], "
        "EndPadding: [0, 0], OutputPadding: [0, 0], GroupCount: 1, "
        "FusedActivation: {operator: ACTIVATION_CELU, Alpha: 2.0}}",
        {"OutputTensor": [0, 3]},
        {"OutputTensor": [1e38, 3]},
    ),
    "a factor that overflows once it is scaled": Measured(
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
        "{ATensor: {Sizes: [2, 1], DataType: INT8, values: [127, -3]}, "
        "AScaleTensor: {Sizes: [2, 1], DataType: FLOAT32, values: [3.4e38, 0.5]}, "
        "BTensor: {Sizes: [1, 2], DataType: INT8, values: [-113, 20]}, "
        "BScaleTensor: {Sizes: [1, 2], DataType: FLOAT32, values: [7.0e-45, 0.25]}, "
        "OutputScaleTensor: {Sizes: [1, 1], DataType: FLOAT32, values: [0.5]}, "
        "OutputTensor: {Sizes: [2, 2], DataType: INT8}}",
        {"OutputTensor": [-128, 127, 0, -15]},
        {"OutputTensor": [-128, 127, 1, -15]},
    ),
    "a first moment that vanishes beside a divisor of 0": Measured(
        "ADAM_OPTIMIZER",
        "{InputParametersTensor: {Sizes: [3], DataType: FLOAT32, values: [0.5, 0.5, 2]}, "
        "InputFirstMomentTensor: {Sizes: [3], DataType: FLOAT32, values: [-16777216, 1, 4]}, "
        "InputSecondMomentTensor: {Sizes: [3], DataType: FLOAT32, values: [0, 4, 9]}, "
        "GradientTensor: {Sizes: [3], DataType: FLOAT32, values: [0.25, 3, -2]}, "
        "TrainingStepTensor: {Sizes: [1], DataType: UINT32, values: [0]}, "
        "OutputParametersTensor: {Sizes: [3], DataType: FLOAT32}, "
        "OutputFirstMomentTensor: {Sizes: [3], DataType: FLOAT32}, "
        "OutputSecondMomentTensor: {Sizes: [3], DataType: FLOAT32}, "
        "LearningRate: 65504, Beta1: 0, Beta2: 1, Epsilon: 0}",
        {
            "OutputParametersTensor": [NAN, -98255.5, 43671.332],
            "OutputFirstMomentTensor": [0, 3, -2],
            "OutputSecondMomentTensor": [0, 4, 9],
        },
        {
            "OutputParametersTensor": [NAN, NAN, 43671.332],
            "OutputFirstMomentTensor": [0, 3, -2],
            "OutputSecondMomentTensor": [0, 4, 9],
        },
    ),
    "HARD_SWISH of a product that overflows beside an infinite Beta": Measured(
        "ACTIVATION_HARD_SWISH",
        "{" + BESIDE_INFINITY,
        {"OutputTensor": [-0.0, -2, 3, 3.4e38]},
        {"OutputTensor": [-0.0, -2, 3, 1e38]},
    ),
    "HARD_SIGMOID of a product that overflows beside an infinite Beta": Measured(
        "ACTIVATION_HARD_SIGMOID",
        "{" + BESIDE_INFINITY,
        {"OutputTensor": [0, 1, 1, 1]},
        {"OutputTensor": [0, 1, 1, 0]},
    ),
    "a subnormal scale before a large gradient": Measured(
        "BATCH_NORMALIZATION_GRAD",
        "{InputTensor: {Sizes: [1, 2, 1, 2], DataType: FLOAT32, values: [1, 2, 3, 5]}, "
        "InputGradientTensor: {Sizes: [1, 2, 1, 2], DataType: FLOAT32, "
        "values: [-3.0e+38, 1.0e+38, 3, -7]}, "
        "MeanTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [0.5, 4]}, "
        "VarianceTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [2.5, 4]}, "
        "ScaleTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [1.4e-45, 3]}, "
        "OutputGradientTensor: {Sizes: [1, 2, 1, 2], DataType: FLOAT32}, "
        "OutputScaleGradientTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32}, "
        "OutputBiasGradientTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32}, Epsilon: 0}",
        {
            "OutputGradientTensor": [-4.2038954e-07, 1.4012984e-07, 4.5, -10.5],
            "OutputScaleGradientTensor": [0, -5],
            "OutputBiasGradientTensor": [-2e38, -4],
        },
        {
            "OutputGradientTensor": [-2e-06, 1.4012984e-07, 4.5, -10.5],
            "OutputScaleGradientTensor": [0, -5],
            "OutputBiasGradientTensor": [-2e38, -4],
        },
    ),
    "FLOAT16 half-way between two numbers once FLOAT32 has rounded it": Measured(
        "VALUE_SCALE_2D",
        "{InputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [29.0625, -4]}, "
        "OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16}, Scale: 0.1, Bias: [100]}",
        {"OutputTensor": [102.875, 99.5625]},
        {"OutputTensor": [102.8125, 99.5625]},
    ),
    "a variance that a negative Epsilon cancels if FLOAT16 holds the mean": Measured(
        "MEAN_VARIANCE_NORMALIZATION1",
        "{InputTensor: {Sizes: [2, 4], DataType: FLOAT16, "
        "values: [2047, 2048, 2047, 2048, 1, 5, 3, -7]}, "
        "OutputTensor: {Sizes: [2, 4], DataType: FLOAT16}, Axes: [1], NormalizeVariance: true, "
        "Epsilon: -0.5}",
        {"OutputTensor": [NAN, INFINITY, NAN, INFINITY, 0.11108398, 1, 0.55517578, -1.66601563]},
        {"OutputTensor": [NAN, INFINITY, NAN, INFINITY, NAN, 1, 0.55517578, -1.66601563]},
    ),
    "a variance that a negative Epsilon nearly cancels": Measured(
        "BATCH_NORMALIZATION_TRAINING",
        "{InputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [-0.33470732, 1.084908]}, "
        "ScaleTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [5]}, "
        "BiasTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]}, "
        "OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}, "
        "OutputMeanTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}, "
        "OutputVarianceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}, Epsilon: -0.5}",
        {
            "OutputTensor": [-57.3706284, 57.3706207],
            "OutputMeanTensor": [0.375100344],
            "OutputVarianceTensor": [0.503826857],
        },
        {
            "OutputTensor": [-57.38, 57.38],
            "OutputMeanTensor": [0.375100344],
            "OutputVarianceTensor": [0.503826857],
        },
    ),
    "an infinite Alpha times a hyperbolic tangent that rounds to 0": Measured(
        "MEAN_VARIANCE_NORMALIZATION",
        "{InputTensor: {Sizes: [1, 1, 2, 3], DataType: FLOAT16, values: [1, 5, 7, 1, 5, 7]}, "
        "ScaleTensor: {Sizes: [1, 1, 2, 3], DataType: FLOAT16, values: [8192, 1, 8192, 1, 1, 1]}, "
        "BiasTensor: {Sizes: [1, 1, 2, 3], DataType: FLOAT16, values: [0, 0, 0, 0, 0, 0]}, "
        "OutputTensor: {Sizes: [1, 1, 2, 3], DataType: FLOAT16}, CrossChannel: false, "
        "NormalizeVariance: true, Epsilon: 0.01, "
        "FusedActivation: {operator: ACTIVATION_SCALED_TANH, Alpha: -.inf, Beta: 1.0e-07}}",
        {"OutputTensor": [INFINITY, NAN, -INFINITY, INFINITY, NAN, -INFINITY]},
        {"OutputTensor": [INFINITY, NAN, NAN, INFINITY, NAN, -INFINITY]},
    ),
    "a square of a norm that FLOAT16 stores as the negative of Epsilon": Measured(
        "LP_NORMALIZATION",
        "{InputTensor: {Sizes: [2, 3], DataType: FLOAT16, "
        "values: [0.1015, 0.6597, 0.23425, 1, 2, 3]}, "
        "OutputTensor: {Sizes: [2, 3], DataType: FLOAT16}, Axis: 1, Epsilon: -0.5, P: 2}",
        {"OutputTensor": [INFINITY, INFINITY, INFINITY, 0.272, 0.5444, 0.8164]},
        {"OutputTensor": [INFINITY, INFINITY, INFINITY, INFINITY, 0.5444, 0.8164]},
    ),
    "a variance stored as 65504 beside differences that overflow": Measured(
        "MEAN_VARIANCE_NORMALIZATION",
        "{InputTensor: {Sizes: [1, 1, 2, 3], DataType: FLOAT16, "
        "values: [1, -65504, 65504, 0, -2048, -2047]}, "
        "BiasTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [-2]}, "
        "OutputTensor: {Sizes: [1, 1, 2, 3], DataType: FLOAT16}, CrossChannel: false, "
        "NormalizeVariance: true, Epsilon: 0}",
        {"OutputTensor": [0.6685, -255.2, 256.5, 0.6646, -7.336, -7.332]},
        {"OutputTensor": [0.7, -255.2, 256.5, 0.6646, -7.336, -7.332]},
    ),
    "squares that overflow as they are multiplied by Alpha": Measured(
        "LOCAL_RESPONSE_NORMALIZATION",
        "{InputTensor: {Sizes: [1, 4, 1, 1], DataType: FLOAT32, values: [2, -3, 0.0001, 0.5]}, "
        "OutputTensor: {Sizes: [1, 4, 1, 1], DataType: FLOAT32}, CrossChannel: true, "
        "LocalSize: 1, Alpha: 3.4e+38, Beta: 0.1, Bias: 1}",
        {"OutputTensor": [0, -0.0, 8.8481414e-08, 8.054305e-05]},
        {"OutputTensor": [0, -0.0, 8.8481414e-08, 0]},
    ),
    "an element between the first and the last that an error of the coordinate reaches": Measured(
        "RESAMPLE2",
        "{InputTensor: {Sizes: [3, 2], DataType: FLOAT32, values: [0, 1, 10, 11, 20, 21]}, "
        "OutputTensor: {Sizes: [2, 1], DataType: FLOAT32}, InterpolationMode: NEAREST_NEIGHBOR, "
        "RoundingDirection: INCREASING, Scales: [1.1920928955078125e-07, 3], "
        "InputPixelOffsets: [-1, -0.5], OutputPixelOffsets: [1, 1.5]}",
        {"OutputTensor": [1, 11]},
        {"OutputTensor": [10, 11]},
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
def test_measured_outputs_do_not_fail_and_wrong_outputs_do(name: str, tmp_path: Path) -> None:
    measured = MEASURED[name]
    of_given = status(tmp_path, measured, measured.given)
    if measured.wrong:
        assert of_given in (Status.PASSED, Status.UNCHECKED)
        assert status(tmp_path, measured, measured.wrong) is Status.FAILED
    else:
        assert of_given is Status.UNCHECKED
