"""A known fault is recognised by the wrong values that it gives in cases of users.

The waived outputs were measured on DirectML 1.15.4, or on the release that a test names.

The tested code is in the modules of `dmlconf/faults/`, one for each kind of fault, and in
`dmlconf/faults/prediction.py`, `dmlconf/excuses/known_faults.py`, `dmlconf/judging/conclusion.py`
and `schemas/known-faults.yaml`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.backends.protocol import Environment, Outputs
from dmlconf.backends.registry import parse
from dmlconf.engine.session import reference
from dmlconf.excuses.known_fault_file import known_faults
from dmlconf.judging.conclusion import Conclusion, JudgeOptions
from dmlconf.verdicts.verdict import Status
from tests.faults.user_cases import case_of, outputs_of, status_and_fault

LOW_WORDS = "int64-low-words-compared-as-signed"


@dataclass(frozen=True)
class Observed:
    """A case that is not in the suite, and the wrong outputs that a version of DirectML gives."""

    fault: str
    operator: str
    desc: str
    wrong: Mapping[str, list[Any]]
    version: str = "1.15.4"


INT64_INPUT = "{Sizes: [1, 3], DataType: INT64, values: [2147483648, 5, 4294967295]}"
INT64_OUTPUT = "{Sizes: [1, 1], DataType: INT64}"
INDEX_OUTPUT = "{Sizes: [1, 1], DataType: UINT32}"
TWO_HALVES = "{Sizes: [1, 1, 1, 1, 2], DataType: FLOAT16"
"""A tensor of two numbers without its values and its closing brace."""

OBSERVED = [
    # All high words are 1. As signed numbers, the low words 2**31 and 2**32 - 1 are negative.
    Observed(
        LOW_WORDS,
        "ELEMENT_WISE_MAX",
        "{ATensor: {Sizes: [2], DataType: INT64, values: [4294967296, 8589934591]}, "
        "BTensor: {Sizes: [2], DataType: INT64, values: [6442450944, 4294967301]}, "
        "OutputTensor: {Sizes: [2], DataType: INT64}}",
        {"OutputTensor": [4294967296, 4294967301]},
    ),
    Observed(
        LOW_WORDS,
        "ARGMAX",
        f"{{InputTensor: {INT64_INPUT}, OutputTensor: {INDEX_OUTPUT}, Axes: [1], "
        "AxisDirection: INCREASING}",
        {"OutputTensor": [1]},
    ),
    Observed(
        LOW_WORDS,
        "ELEMENT_WISE_CLIP1",
        f"{{InputTensor: {INT64_INPUT}, OutputTensor: {{Sizes: [1, 3], DataType: INT64}}, "
        "MinMaxDataType: INT64, Min: 1, Max: 7}",
        {"OutputTensor": [1, 5, 1]},
    ),
    *(
        Observed(
            LOW_WORDS,
            "REDUCE",
            f"{{Function: {function}, InputTensor: {INT64_INPUT}, OutputTensor: {output}, "
            "Axes: [1]}",
            {"OutputTensor": [value]},
        )
        for function, output, value in (
            ("MIN", INT64_OUTPUT, 2147483648),
            ("MAX", INT64_OUTPUT, 5),
            ("ARGMIN", INDEX_OUTPUT, 0),
            ("ARGMAX", INDEX_OUTPUT, 1),
        )
    ),
    *(
        Observed(
            LOW_WORDS,
            operator,
            "{InputTensor: {Sizes: [1, 1, 1, 3], DataType: INT64, "
            "values: [2147483648, 5, 4294967295]}, "
            "OutputValueTensor: {Sizes: [1, 1, 1, 2], DataType: INT64}, "
            f"OutputIndexTensor: {{Sizes: [1, 1, 1, 2], DataType: UINT32}}, Axis: 3, K: 2{more}}}",
            {"OutputValueTensor": [5, 4294967295], "OutputIndexTensor": [1, 2]},
        )
        for operator, more in (("TOP_K", ""), ("TOP_K1", ", AxisDirection: DECREASING"))
    ),
    Observed(
        LOW_WORDS,
        "ELEMENT_WISE_CLIP_GRAD",
        "{InputTensor: {Sizes: [1, 1, 1, 3], DataType: INT64, "
        "values: [2147483648, 5, 4294967295]}, InputGradientTensor: {Sizes: [1, 1, 1, 3], "
        "DataType: INT64, values: [1, 2, 3]}, "
        "OutputGradientTensor: {Sizes: [1, 1, 1, 3], DataType: INT64}, Min: -100, Max: 100}",
        {"OutputGradientTensor": [1, 2, 3]},
    ),
    Observed(
        "mask-and-positions-with-a-scale-of-zero",
        "MULTIHEAD_ATTENTION",
        "{QueryTensor: {Sizes: [1, 1, 1], DataType: FLOAT32, values: [2]}, "
        "KeyTensor: {Sizes: [1, 1, 1], DataType: FLOAT32, values: [3]}, "
        "ValueTensor: {Sizes: [1, 1, 1], DataType: FLOAT32, values: [5]}, "
        "MaskTensor: {Sizes: [1, 1, 1, 1], DataType: INT32, values: [0]}, "
        "RelativePositionBiasTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}, "
        "OutputTensor: {Sizes: [1, 1, 1], DataType: FLOAT32}, Scale: 0, MaskFilterValue: 0.5, "
        "HeadCount: 1, MaskType: BOOLEAN}",
        {"OutputTensor": [math.nan]},
    ),
    # The first moment is truncated to FLOAT16, and then read as the parameter.
    Observed(
        "moments-written-before-the-parameters-are-read",
        "ADAM_OPTIMIZER",
        f"{{InputParametersTensor: {TWO_HALVES}, values: [-310.5, -57.0625]}}, "
        f"InputFirstMomentTensor: {TWO_HALVES}, values: [0.1602783203125, -0.06524658203125]}}, "
        f"InputSecondMomentTensor: {TWO_HALVES}, values: [1.30078125, 1.0615234375]}}, "
        f"GradientTensor: {TWO_HALVES}, values: [-2.853515625, -1.02734375]}}, "
        "TrainingStepTensor: {Sizes: [1, 1, 1, 1, 1], DataType: UINT32, values: [2]}, "
        f"OutputParametersTensor: {TWO_HALVES}}}, OutputFirstMomentTensor: {TWO_HALVES}}}, "
        f"OutputSecondMomentTensor: {TWO_HALVES}}}, "
        "LearningRate: 0.5, Beta1: 0.75, Beta2: 0.5, Epsilon: 0.125}\n"
        "    in_place: {OutputFirstMomentTensor: InputParametersTensor}",
        {
            "OutputParametersTensor": [-0.337158203125, -0.043365478515625],
            "OutputFirstMomentTensor": [-0.5927734375, -0.3056640625],
            "OutputSecondMomentTensor": [4.71875, 1.0576171875],
        },
    ),
    # The low word of the least INT64 is 0; as signed numbers, those of the inputs are negative.
    Observed(
        LOW_WORDS,
        "MAX_POOLING",
        "{InputTensor: {Sizes: [1, 1, 1, 2], DataType: INT64, "
        "values: [-9223372034707292100, -9223372032559808513]}, "
        "OutputTensor: {Sizes: [1, 1, 1, 1], DataType: INT64}, Strides: [1, 1], "
        "WindowSize: [1, 2], StartPadding: [0, 0], EndPadding: [0, 0]}",
        {"OutputTensor": [-9223372036854775808]},
    ),
    Observed(
        "slice-of-a-window-that-is-the-whole-input",
        "SLICE1",
        "{InputTensor: {Sizes: [2, 4], DataType: INT8, values: [1, 2, 3, 4, 5, 6, 7, 8]}, "
        "OutputTensor: {Sizes: [2, 2], DataType: INT8}, InputWindowOffsets: [0, 0], "
        "InputWindowSizes: [2, 4], InputWindowStrides: [1, 1]}",
        {"OutputTensor": [1, 2, 3, 4]},
    ),
    Observed(
        "slice-of-a-window-that-is-the-whole-input",
        "SLICE1",
        "{InputTensor: {Sizes: [2, 3, 2], DataType: UINT8, "
        "values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}, "
        "OutputTensor: {Sizes: [2, 2, 1], DataType: UINT8}, InputWindowOffsets: [0, 0, 1], "
        "InputWindowSizes: [2, 3, 1], InputWindowStrides: [1, 1, -2]}",
        {"OutputTensor": [2, 4, 6, 8]},
    ),
    Observed(
        "gradient-of-a-window-that-is-the-whole-output",
        "SLICE_GRAD",
        "{InputGradientTensor: {Sizes: [2, 1], DataType: FLOAT32, values: [1, 5]}, "
        "OutputGradientTensor: {Sizes: [2, 4], DataType: FLOAT32}, InputWindowOffsets: [0, 0], "
        "InputWindowSizes: [2, 4], InputWindowStrides: [1, 1]}",
        {"OutputGradientTensor": [1, 5, 0, 0, 0, 0, 0, 0]},
    ),
    Observed(
        "gradient-of-a-window-that-is-the-whole-output",
        "SLICE_GRAD",
        "{InputGradientTensor: {Sizes: [2, 2, 1], DataType: UINT8, values: [2, 4, 6, 8]}, "
        "OutputGradientTensor: {Sizes: [2, 3, 2], DataType: UINT8}, InputWindowOffsets: [0, 0, 1], "
        "InputWindowSizes: [2, 3, 1], InputWindowStrides: [1, 1, -2]}",
        {"OutputGradientTensor": [0, 2, 0, 4, 0, 6, 0, 8, 0, 0, 0, 0]},
    ),
    # The output is computed as if the dilation were 1.
    Observed(
        "filter-as-large-as-the-input",
        "CONVOLUTION",
        "{InputTensor: {Sizes: [1, 1, 3], DataType: FLOAT32, values: [3, 5, 7]}, "
        "FilterTensor: {Sizes: [1, 1, 3], DataType: FLOAT32, values: [7, 97, 187]}, "
        "OutputTensor: {Sizes: [1, 1, 1], DataType: FLOAT32}, Mode: CROSS_CORRELATION, "
        "Direction: FORWARD, Strides: [1], Dilations: [2], StartPadding: [0], EndPadding: [2], "
        "OutputPadding: [0], GroupCount: 1}",
        {"OutputTensor": [3 * 7 + 5 * 97 + 7 * 187]},
    ),
    # The groups after the first one have their bias only, such as 2 * 4000 + 1.
    Observed(
        "groups-of-a-filter-as-large-as-the-input",
        "CONVOLUTION",
        "{InputTensor: {Sizes: [1, 6, 1, 1], DataType: FLOAT32, values: [1, 2, 3, 4, 5, 6]}, "
        "FilterTensor: {Sizes: [9, 2, 1, 1], DataType: FLOAT32, "
        "fill: {sequence: {start: 1, step: 3}}}, BiasTensor: {Sizes: [1, 9, 1, 1], "
        "DataType: FLOAT32, fill: {sequence: {start: 1000, step: 1000}}}, "
        "OutputTensor: {Sizes: [1, 9, 1, 1], DataType: FLOAT32}, Mode: CROSS_CORRELATION, "
        "Direction: FORWARD, Strides: [1, 1], Dilations: [1, 1], StartPadding: [0, 0], "
        "EndPadding: [0, 0], OutputPadding: [0, 0], GroupCount: 3, "
        "FusedActivation: {operator: ACTIVATION_LINEAR, Alpha: 2, Beta: 1}}",
        {"OutputTensor": [2019, 4127, 6235, 8001, 10001, 12001, 14001, 16001, 18001]},
        "1.8.0",
    ),
    Observed(
        "groups-of-a-filter-as-large-as-the-input",
        "CONVOLUTION",
        "{InputTensor: {Sizes: [2, 6, 2, 1], DataType: FLOAT32, fill: {sequence: {start: 1}}}, "
        "FilterTensor: {Sizes: [6, 3, 2, 1], DataType: FLOAT32, "
        "fill: {sequence: {start: 1, step: 3}}}, "
        "OutputTensor: {Sizes: [2, 6, 1, 1], DataType: FLOAT32}, Mode: CROSS_CORRELATION, "
        "Direction: FORWARD, Strides: [1, 1], Dilations: [1, 1], StartPadding: [0, 0], "
        "EndPadding: [0, 0], OutputPadding: [0, 0], GroupCount: 2}",
        {"OutputTensor": [231, 987, 1743, 0, 0, 0, 843, 4191, 7539, 0, 0, 0]},
        "1.8.0",
    ),
    # The second value is read with the last stride, 0, and not with the first one, 16.
    Observed(
        "on-value-behind-the-last-dimension",
        "ONE_HOT",
        "{IndicesTensor: {Sizes: [1, 2], DataType: UINT32, values: [0, 2]}, ValuesTensor: "
        "{Sizes: [2, 1], Strides: [16, 0], DataType: INT8, values: [5, 6]}, "
        "OutputTensor: {Sizes: [3, 2], DataType: INT8}, Axis: 0}",
        {"OutputTensor": [5, 5, 5, 5, 5, 5]},
    ),
    Observed(
        "region-wider-than-32-bits-hold",
        "ROI_POOLING",
        "{InputTensor: {Sizes: [1, 1, 2, 8], DataType: FLOAT32, fill: {sequence: {start: 1}}}, "
        "ROITensor: {Sizes: [1, 1, 1, 5], DataType: FLOAT32, values: [0, -1073741824, 0, 3, 1]}, "
        "OutputTensor: {Sizes: [1, 1, 1, 5], DataType: FLOAT32}, SpatialScale: 1, "
        "PooledSize: {Width: 5, Height: 1}}",
        {"OutputTensor": [0, 0, 0, 0, 0]},
    ),
    Observed(
        "length-beyond-the-axis",
        "REVERSE_SUBSEQUENCES",
        "{InputTensor: {Sizes: [2, 2], DataType: UINT8, values: [4, 5, 6, 7]}, "
        "SequenceLengthsTensor: {Sizes: [2, 1], DataType: UINT32, values: [3, 4]}, "
        "OutputTensor: {Sizes: [2, 2], DataType: UINT8}, Axis: 1}",
        {"OutputTensor": [6, 5, 0, 0]},
        "1.12.1",
    ),
    Observed(
        "infinite-bias-of-a-scaled-image",
        "VALUE_SCALE_2D",
        "{InputTensor: {Sizes: [1, 3, 1, 1], DataType: FLOAT16, values: [1, 2, 3]}, "
        "OutputTensor: {Sizes: [1, 3, 1, 1], DataType: FLOAT16}, Scale: 2, Bias: [0, -.inf, 0]}",
        {"OutputTensor": [np.nan, -np.inf, np.nan]},
        "1.8.0",
    ),
    Observed(
        "infinite-bounds-of-integers",
        "ELEMENT_WISE_CLIP1",
        "{InputTensor: {Sizes: [3], DataType: UINT64, values: [0, 4, 18446744073709551615]}, "
        "OutputTensor: {Sizes: [3], DataType: UINT64}, MinMaxDataType: FLOAT64, Min: -5, "
        "Max: .inf}",
        {"OutputTensor": [0, 4, 9223372036854775808]},
        "1.8.0",
    ),
    # FLOAT32 rounds the largest INT32 to 2**31, which INT32 does not hold.
    Observed(
        "infinite-bounds-of-integers",
        "ELEMENT_WISE_CLIP",
        "{InputTensor: {Sizes: [4], DataType: INT32, values: [-3, 7, 2147483647, -2147483648]}, "
        "OutputTensor: {Sizes: [4], DataType: INT32}, Min: -5, Max: 2147483647}",
        {"OutputTensor": [-5, -5, -5, -5]},
        "1.12.1",
    ),
    Observed(
        "infinite-bounds-of-integers",
        "ELEMENT_WISE_CLIP_GRAD",
        "{InputTensor: {Sizes: [3], DataType: INT64, values: [-5, 0, 5]}, "
        "InputGradientTensor: {Sizes: [3], DataType: INT64, values: [7, 8, 9]}, "
        "OutputGradientTensor: {Sizes: [3], DataType: INT64}, Min: .inf, Max: 3}",
        {"OutputGradientTensor": [7, 8, 0]},
        "1.12.1",
    ),
    # 67108864 is the FLOAT32 number below 2 * 33554434 + 1.5.
    Observed(
        "infinite-bounds-of-integers",
        "ELEMENT_WISE_CLIP",
        "{InputTensor: {Sizes: [2], DataType: INT32, values: [33554434, 3]}, "
        "OutputTensor: {Sizes: [2], DataType: INT32}, ScaleBias: {Scale: 2, Bias: 1.5}, "
        "Min: .inf, Max: 2000000000}",
        {"OutputTensor": [67108864, 7]},
        "1.12.1",
    ),
    # A bound beyond INT32 bounds nothing as Min; as Max it makes all elements the least INT32.
    Observed(
        "infinite-bounds-of-integers",
        "ELEMENT_WISE_CLIP1",
        "{InputTensor: {Sizes: [2], DataType: INT32, values: [-3, 7]}, "
        "OutputTensor: {Sizes: [2], DataType: INT32}, MinMaxDataType: FLOAT32, "
        "Min: 3000000000, Max: .inf}",
        {"OutputTensor": [-2147483648, -2147483648]},
        "1.12.1",
    ),
    Observed(
        "unsigned-64-bit-index-taken-as-negative",
        "ONE_HOT",
        "{IndicesTensor: {Sizes: [1, 1], DataType: UINT64, values: [18446744073709551614]}, "
        "ValuesTensor: {Sizes: [2], DataType: FLOAT32, values: [0, 1]}, "
        "OutputTensor: {Sizes: [1, 5], DataType: FLOAT32}, Axis: 1}",
        {"OutputTensor": [0, 0, 0, 1, 0]},
        "1.8.0",
    ),
    Observed(
        "gradient-of-a-normalization-over-a-large-window",
        "LOCAL_RESPONSE_NORMALIZATION_GRAD",
        "{InputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [2]}, "
        "InputGradientTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [3]}, "
        "OutputGradientTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}, CrossChannel: false, "
        "LocalSize: 16, Alpha: 1, Beta: 1, Bias: 1}",
        {"OutputGradientTensor": [1.5]},
    ),
    # The kernel takes 64 of the window's 144 elements, with only the first row of the tensor.
    Observed(
        "gradient-of-a-normalization-over-a-large-window",
        "LOCAL_RESPONSE_NORMALIZATION_GRAD",
        "{InputTensor: {Sizes: [1, 1, 2, 3], DataType: FLOAT32, "
        "values: [1.059, 1.12, 1.441, 1.007, 0.931, 1.22]}, "
        "InputGradientTensor: {Sizes: [1, 1, 2, 3], DataType: FLOAT32, "
        "values: [0, 0, 0, 0, 1, 0]}, "
        "OutputGradientTensor: {Sizes: [1, 1, 2, 3], DataType: FLOAT32}, CrossChannel: false, "
        "LocalSize: 12, Alpha: 12, Beta: 1, Bias: 1}",
        {
            "OutputGradientTensor": [
                -0.06632941961288452,
                -0.07015009224414825,
                -0.09025561064481735,
                -0.06307245045900345,
                0.125094473361969,
                -0.07641349732875824,
            ]
        },
        "1.8.0",
    ),
    Observed(
        "index-of-64-bits-by-its-low-word",
        "ONE_HOT",
        "{IndicesTensor: {Sizes: [2, 1], DataType: INT64, values: [4294967297, -4294967297]}, "
        "ValuesTensor: {Sizes: [2], DataType: INT8, values: [0, 1]}, "
        "OutputTensor: {Sizes: [2, 2], DataType: INT8}, Axis: 1}",
        {"OutputTensor": [0, 1, 0, 1]},
    ),
    Observed(
        "scattered-by-more-than-4-dimensions-of-indices",
        "SCATTER_ND",
        "{InputTensor: {Sizes: [3, 2], DataType: FLOAT32, values: [1, 2, 3, 4, 5, 6]}, "
        "IndicesTensor: {Sizes: [1, 1, 1, 1, 1, 2, 1], DataType: INT64, values: [2, 0]}, "
        "UpdatesTensor: {Sizes: [1, 1, 1, 1, 2, 2], DataType: FLOAT32, "
        "values: [10, 20, 30, 40]}, OutputTensor: {Sizes: [3, 2], DataType: FLOAT32}, "
        "InputDimensionCount: 2, IndicesDimensionCount: 6}",
        {"OutputTensor": [1, 40, 3, 4, 30, 6]},
    ),
    Observed(
        "scattered-by-more-than-4-dimensions-of-indices",
        "SCATTER_ND",
        "{InputTensor: {Sizes: [4], DataType: INT32, values: [100, 101, 102, 103]}, "
        "IndicesTensor: {Sizes: [3, 1, 1, 3, 1], DataType: INT32, "
        "values: [2, 2, 2, 2, 2, 2, 2, 2, 2]}, "
        "UpdatesTensor: {Sizes: [3, 1, 1, 3], DataType: INT32, Strides: [3, 1, 1, 1], "
        "values: [1, 2, 3, 4, 5, 6, 7, 8, 9]}, OutputTensor: {Sizes: [4], DataType: INT32}, "
        "InputDimensionCount: 1, IndicesDimensionCount: 5}",
        {"OutputTensor": [100, 101, 5, 103]},
    ),
    Observed(
        "scattered-by-more-than-4-dimensions-of-indices",
        "SCATTER_ND",
        "{InputTensor: {Sizes: [3], DataType: FLOAT32, values: [7, 8, 9]}, "
        "IndicesTensor: {Sizes: [1, 2, 3, 1, 1, 1], DataType: UINT32, "
        "values: [1, 2, 1, 2, 0, 2]}, "
        "UpdatesTensor: {Sizes: [1, 2, 3, 1, 1], DataType: FLOAT32, Strides: [1, 3, 6, 20, 3], "
        "values: [1, 2, 3, 4, 5, 6]}, OutputTensor: {Sizes: [3], DataType: FLOAT32}, "
        "InputDimensionCount: 1, IndicesDimensionCount: 6}",
        {"OutputTensor": [7, 0, 9]},
    ),
    Observed(
        "scattered-by-more-than-4-dimensions-of-indices",
        "SCATTER_ND",
        "{InputTensor: {Sizes: [2, 2], DataType: FLOAT32, values: [91, 92, 93, 94]}, "
        "IndicesTensor: {Sizes: [1, 3, 2, 1, 1], DataType: UINT32, values: [1, 0, 1, 1, 0, 0]}, "
        "UpdatesTensor: {Sizes: [1, 3, 2, 1, 2], DataType: FLOAT32, Strides: [1, 1, 3, 6, 6], "
        "values: [1, 2, 3, 4, 5, 2, 6, 7, 8, 9, 10, 11]}, "
        "OutputTensor: {Sizes: [2, 2], DataType: FLOAT32}, "
        "InputDimensionCount: 2, IndicesDimensionCount: 5}",
        {"OutputTensor": [91, 11, 10, 94]},
    ),
    Observed(
        "scattered-by-more-than-4-dimensions-of-indices",
        "SCATTER_ND",
        "{InputTensor: {Sizes: [3, 2, 3], DataType: FLOAT32, "
        "values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]}, "
        "IndicesTensor: {Sizes: [2, 1, 1, 1, 2], DataType: UINT32, Strides: [1, 4, 1, 4, 2], "
        "values: [1, 1, 0, 1]}, "
        "UpdatesTensor: {Sizes: [2, 1, 1, 1, 3], DataType: FLOAT32, "
        "values: [100, 101, 102, 103, 104, 105]}, "
        "OutputTensor: {Sizes: [3, 2, 3], DataType: FLOAT32}, "
        "InputDimensionCount: 3, IndicesDimensionCount: 5}",
        {"OutputTensor": [1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 101, 102, 13, 14, 15, 16, 17, 18]},
    ),
    Observed(
        "scattered-by-more-than-4-dimensions-of-indices",
        "SCATTER_ND",
        "{InputTensor: {Sizes: [3, 1, 1, 2], DataType: INT16, values: [1, 2, 3, 4, 5, 6]}, "
        "IndicesTensor: {Sizes: [2, 1, 1], DataType: INT64, values: [-1, 0]}, "
        "UpdatesTensor: {Sizes: [2, 1, 1, 1, 2], DataType: INT16, values: [10, 20, 30, 40]}, "
        "OutputTensor: {Sizes: [3, 1, 1, 2], DataType: INT16}, "
        "InputDimensionCount: 4, IndicesDimensionCount: 3}",
        {"OutputTensor": [1, 2, 3, 4, 10, 20]},
    ),
]


@pytest.mark.parametrize("observed", OBSERVED, ids=lambda each: f"{each.operator}-{each.fault}")
def test_fault_is_waived_in_its_release_and_not_later(observed: Observed, tmp_path: Path) -> None:
    case = case_of(tmp_path, observed.operator, observed.desc)
    wrong = outputs_of(case, observed.wrong)
    assert status_and_fault(case, wrong, observed.version) == (Status.WAIVED, observed.fault)
    newer_than_any_fault = "1.16.0"
    assert status_and_fault(case, wrong, newer_than_any_fault) == (Status.FAILED, "")


@pytest.mark.parametrize("observed", OBSERVED, ids=lambda each: f"{each.operator}-{each.fault}")
def test_another_wrong_element_fails_the_case(observed: Observed, tmp_path: Path) -> None:
    case = case_of(tmp_path, observed.operator, observed.desc)
    for name in case.outputs():
        wrong = outputs_of(case, observed.wrong)
        elements = wrong[name].reshape(-1)
        elements[-1] = 77 if elements[-1] != 77 else 78
        assert status_and_fault(case, wrong, observed.version) == (Status.FAILED, "")


@pytest.mark.parametrize(
    ("local_size", "columns", "waived"),
    [(10, 3, True), (9, 3, False), (3, 3, False), (10, 400, False)],
)
def test_squares_may_be_left_out_only_of_a_large_window_over_a_small_tensor(
    local_size: int, columns: int, waived: bool, tmp_path: Path
) -> None:
    ones = f"{{Sizes: [1, 1, 1, {columns}], DataType: FLOAT32, fill: {{constant: {{value: 1}}}}}}"
    case = case_of(
        tmp_path,
        "LOCAL_RESPONSE_NORMALIZATION_GRAD",
        f"{{InputTensor: {ones}, InputGradientTensor: {ones}, OutputGradientTensor: "
        f"{{Sizes: [1, 1, 1, {columns}], DataType: FLOAT32}}, CrossChannel: false, "
        f"LocalSize: {local_size}, Alpha: 0.125, Beta: 1, Bias: 1}}",
    )
    # The base of the power is Bias, so that each share is 1, and only as many as are in a window.
    at, share = np.arange(columns), 0.25 / local_size
    before, after = (local_size - 1) // 2, local_size // 2
    within = np.minimum(at + after + 1, columns) - np.maximum(at - before, 0)
    wrong = {"OutputGradientTensor": (1 - share * within).astype(np.float32).reshape(1, 1, 1, -1)}
    fault = "gradient-of-a-normalization-over-a-large-window"
    expected = (Status.WAIVED, fault) if waived else (Status.FAILED, "")
    assert status_and_fault(case, wrong, "1.15.4") == expected


def test_known_faults_can_be_switched_off(tmp_path: Path) -> None:
    observed = OBSERVED[0]
    case = case_of(tmp_path, observed.operator, observed.desc)
    outcome = Outputs(outputs_of(case, observed.wrong))
    faults = known_faults(Environment("directml", "1.15.4", "an adapter", "1.0"))
    for known, status in ((True, Status.WAIVED), (False, Status.FAILED)):
        options = JudgeOptions(known_faults=known)
        conclusion = Conclusion(reference("numpy", parse("directml")), faults, options=options)
        verdict = conclusion.judge(case, outcome)
        assert conclusion.excused(case, outcome, verdict).status is status


def test_right_outputs_of_a_faulty_operator_pass(tmp_path: Path) -> None:
    observed = OBSERVED[0]
    case = case_of(tmp_path, observed.operator, observed.desc)
    right = outputs_of(case, {"OutputTensor": [6442450944, 8589934591]})
    assert status_and_fault(case, right, "1.15.4") == (Status.PASSED, "")
