"""UPSAMPLE_2D repeats elements, or interpolates them; its interval contains FLOAT32 results.

The tested code is in `dmlconf/reference/resampling/resample.py` and, of
`dmlconf/permitted/resampling/`, in `resample.py` and `candidates.py`.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType
from tests.properties import examples
from tests.reference.functions import function_of

upsample_2d = reference_function("UPSAMPLE_2D")

sizes = st.integers(1, 5)
scales = st.integers(1, 5)
few_examples = settings(max_examples=examples(40), deadline=None)


def image(height: int, width: int) -> Array:
    random = np.random.default_rng(7)
    return random.integers(-99, 99, (1, 2, height, width)).astype(np.float32)


@few_examples
@given(sizes, sizes, scales, scales)
def test_nearest_neighbour_upsampling_repeats_elements(
    height: int, width: int, rows: int, columns: int
) -> None:
    tensor = image(height, width)
    expected = tensor.repeat(rows, 2).repeat(columns, 3)
    output = TensorDesc(DataType.FLOAT32, expected.shape)
    scale = {"Width": columns, "Height": rows}
    assert (upsample_2d(tensor, output, scale, "NEAREST_NEIGHBOR") == expected).all()


def interpolated(tensor: Array, rows: int, columns: int) -> Array:
    """Return the image with this many times its rows and columns, as `numpy.interp` finds them."""
    height, width = tensor.shape[2:]
    down = (np.arange(height * rows, dtype=np.float32) + 0.5) / np.float32(rows) - 0.5
    right = (np.arange(width * columns, dtype=np.float32) + 0.5) / np.float32(columns) - 0.5
    stretched = [np.interp(right, np.arange(width), row) for row in tensor.reshape(-1, width)]
    rows_first = np.array(stretched, np.float32).reshape(1, 2, height, -1).swapaxes(2, 3)
    columns_last = [
        np.interp(down, np.arange(height), row) for row in rows_first.reshape(-1, height)
    ]
    return np.array(columns_last, np.float32).reshape(1, 2, -1, height * rows).swapaxes(2, 3)


@few_examples
@given(sizes, sizes, scales, scales)
def test_linear_upsampling_interpolates_between_elements(
    height: int, width: int, rows: int, columns: int
) -> None:
    tensor = image(height, width)
    output = TensorDesc(DataType.FLOAT32, (1, 2, height * rows, width * columns))
    actual = upsample_2d(tensor, output, {"Width": columns, "Height": rows}, "LINEAR")
    expected = interpolated(tensor, rows, columns)
    # FLOAT32 rounds coordinates.
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-3)


@few_examples
@given(sizes, sizes, scales, scales)
def test_linear_interpolation_in_float32_is_within_the_interval(
    height: int, width: int, rows: int, columns: int
) -> None:
    tensor = image(height, width)
    output = TensorDesc(DataType.FLOAT32, (1, 2, height * rows, width * columns))
    actual = interpolated(tensor, rows, columns)
    scale = {"Width": columns, "Height": rows}
    candidates = function_of("UPSAMPLE_2D", "candidates")
    ((lowest, highest),) = candidates(tensor, output, scale, "LINEAR")
    assert ((lowest <= actual) & (actual <= highest)).all()
    assert (highest - lowest < 0.01).all()
