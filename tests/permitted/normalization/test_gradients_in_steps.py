"""BATCH_NORMALIZATION_TRAINING_GRAD may store its sums in FLOAT16, also in two steps.

DirectML 1.13.1 and 1.15.4 add along one dimension, store these sums in FLOAT16, and add them up.
The outputs below were measured.

The tested code is in `dmlconf/permitted/normalization/batch_gradients.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.permitted.graphs.accepted import accepts, single

ROW = [
    *(0.2310791015625, 0.1566162109375, 0.6708984375, 0.55712890625, 0.7763671875),
    *(0.1561279296875, 0.281005859375, 0.45751953125, 0.1763916015625, 0.11083984375),
]
ONES, ZEROS = [1.0] * 10, [0.0] * 10
"""In channel 0, batch 0 holds ONES and batch 1 holds ROW. Channel 1 holds ZEROS."""

TENSOR = "{Sizes: [2, 2, 10], DataType: FLOAT16}"
PARAMETER = "{Sizes: [1, 2, 1], DataType: FLOAT16, values: [1, 1]}"

MEASURED_ROW = [
    *(-0.51513671875, -0.59619140625, -0.03643798828125, -0.1602783203125, 0.078369140625),
    *(-0.5966796875, -0.4609375, -0.2685546875, -0.57470703125, -0.64599609375),
]


def test_sum_may_be_rounded_after_each_dimension(tmp_path: Path) -> None:
    """The sum of ONES and ROW is 13.574, or 13.5625 if each step truncates to FLOAT16."""
    tensor = TENSOR.replace("}", f", values: {[*ONES, *ZEROS, *ROW, *ZEROS]}}}")
    desc = f"""InputTensor: {tensor}, InputGradientTensor: {tensor}, MeanTensor: {PARAMETER},
      VarianceTensor: {PARAMETER}, ScaleTensor: {PARAMETER}, Epsilon: 0,
      OutputGradientTensor: {TENSOR},
      OutputScaleGradientTensor: {{Sizes: [1, 2, 1], DataType: FLOAT16}},
      OutputBiasGradientTensor: {{Sizes: [1, 2, 1], DataType: FLOAT16}}"""
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING_GRAD", desc)
    measured = [*([0.32177734375] * 10), *ZEROS, *MEASURED_ROW, *ZEROS]
    assert accepts(case, "OutputGradientTensor", measured)
    assert measured[22] == -0.03643798828125
    measured[22] = -0.0361
    assert not accepts(case, "OutputGradientTensor", measured)


def test_sums_beyond_float16_may_be_stored_as_65504(tmp_path: Path) -> None:
    """The gradients add up to 98,256, and their products to -2.7e8."""
    one = "Sizes: [1, 1], DataType: FLOAT16"
    row = "Sizes: [1, 4], DataType: FLOAT16"
    desc = f"""InputTensor: {{{row}, values: [-2048, 0, -2048, 0]}},
      InputGradientTensor: {{{row}, values: [65504, -32752, 65504, 0.337890625]}},
      MeanTensor: {{{one}, values: [3]}}, VarianceTensor: {{{one}, values: [3]}},
      ScaleTensor: {{{one}, values: [-1.1875]}}, Epsilon: 100,
      OutputGradientTensor: {{{row}}}, OutputScaleGradientTensor: {{{one}}},
      OutputBiasGradientTensor: {{{one}}}"""
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING_GRAD", desc)
    gradients, products = 65504, -65504
    second = -1.1875 / np.sqrt(103) * (-32752 - gradients / 4 + products * 3 / (103 * 4))
    assert accepts(case, "OutputGradientTensor", [32400, second, 32400, 1971])
    assert not accepts(case, "OutputGradientTensor", [32400, 5000, 32400, 1971])
