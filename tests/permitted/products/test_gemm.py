"""GEMM: what its rule permits in addition to the product."""

from __future__ import annotations

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import ANY_RESULT
from dmlconf.permitted.products.gemm import gemm_error_scale
from dmlconf.tensors.datatypes import DataType


@pytest.mark.parametrize("columns", [1, 2])
def test_sums_that_overflow_on_the_way_leave_their_row_of_shares_open(columns: int) -> None:
    left = np.array([[[[2e38, 2e38, -2e38]], [[1, 2, 3]]]], np.float32).reshape(1, 1, 2, 3)
    scale = gemm_error_scale(
        left,
        np.ones((1, 1, 3, columns), np.float32),
        None,
        TensorDesc(DataType.FLOAT32, (1, 1, 2, columns)),
        "NONE",
        "NONE",
        1.0,
        0.0,
        {"operator": "ACTIVATION_SOFTMAX"},
    )
    assert (scale.sums[0, 0, 0] == ANY_RESULT).all()
    assert (scale.sums[0, 0, 1] < 1000).all()
