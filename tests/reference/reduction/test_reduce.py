"""What is permitted beside the logarithm of a sum."""

from __future__ import annotations

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.reduction.reduce import reduce_error_scale
from dmlconf.tensors.datatypes import DataType


def may_overflow(values: list[float]) -> bool:
    output = TensorDesc(DataType.FLOAT32, (1,))
    tensor = np.array(values, np.float32)
    result = reduce_error_scale("LOG_SUM", tensor, output, (0,))
    return result.overflows is not None and bool(result.overflows.any())


@pytest.mark.parametrize("values", [[0, 0, 0], [1, -1], [3, -8, 5], [2, 6]])
def test_the_logarithm_of_an_exact_sum_has_one_result(values: list[float]) -> None:
    assert not may_overflow(values)


@pytest.mark.parametrize("values", [[0.1, 0.7, -0.8], [1e-39, 0]])
def test_the_logarithm_of_a_sum_that_cancels_or_is_flushed_may_be_infinite(
    values: list[float],
) -> None:
    assert may_overflow(values)
