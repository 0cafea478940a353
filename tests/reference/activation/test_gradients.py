"""ACTIVATION_RELU_GRAD passes the gradients of positive elements on, and 0 for all others.

The tested code is in `dmlconf/reference/activation/gradients.py`.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.gradients import activation_relu_grad
from dmlconf.tensors.datatypes import DataType
from tests.properties import examples


@settings(max_examples=examples(60), deadline=None)
@given(st.floats(width=32), st.floats(width=32, allow_nan=False))
def test_relu_passes_on_the_gradient_of_positive_elements_only(x: float, gradient: float) -> None:
    one = TensorDesc(DataType.FLOAT32, (1,))
    actual = activation_relu_grad(np.array([x], np.float32), np.array([gradient], np.float32), one)
    assert actual[0] == (gradient if x > 0 else 0)
