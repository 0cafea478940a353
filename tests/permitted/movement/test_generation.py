"""An element of FILL_VALUE_SEQUENCE may be off by the roundings of its product and its sum.

The tested code is in `dmlconf/permitted/movement/generation.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.movement.generation import fill_value_sequence_candidates
from dmlconf.permitted.numbers.rounding import STEP
from dmlconf.tensors.datatypes import DataType

START, DELTA, COUNT = 1.0, 0.1, 1000


@pytest.mark.parametrize("sign", [1, -1])
def test_sequence_permits_at_most_three_roundings(sign: int) -> None:
    output = TensorDesc(DataType.FLOAT32, (COUNT,))
    start, delta = sign * START, sign * DELTA
    ((lowest, highest),) = fill_value_sequence_candidates(output, "FLOAT32", start, delta)
    indices = np.arange(COUNT, dtype=np.float32)
    to_nearest = np.float32(start) + indices * np.float32(delta)
    assert ((lowest <= to_nearest) & (to_nearest <= highest)).all()
    exact = start + indices.astype(np.float64) * float(np.float32(delta))
    assert (highest - exact <= 3 * STEP * np.abs(exact)).all()
    assert (exact - lowest <= 3 * STEP * np.abs(exact)).all()


def test_product_may_be_stored_before_the_start_is_added() -> None:
    """Of 1.5 + 685 * 3, DirectML 1.15.4 gives 2056, and 2058 in a graph.

    FLOAT16 rounds 2055 and 2056.5 to 2056, and 2056 + 1.5 to 2058.
    """
    output = TensorDesc(DataType.FLOAT16, (686,))
    candidates = fill_value_sequence_candidates(output, "FLOAT16", 1.5, 3.0)
    last = [(float(low[-1]), float(high[-1])) for low, high in candidates]
    assert last == [(2056, 2056), (2058, 2058)]
