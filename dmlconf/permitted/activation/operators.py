"""Permitted errors of activations that are operators of their own.

Each `..._interval` function returns the least and the greatest right values, and
`activation_parametric_softplus_candidates` returns several such intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.activation.errors import ERRORS, infinite_by_factor
from dmlconf.permitted.numbers.rounding import rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.activation.formulas import attributes_of
from dmlconf.reference.activation.operators import activated, activation_parameterized_relu
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "activation_celu_interval",
    "activation_elu_interval",
    "activation_gelu_interval",
    "activation_hard_sigmoid_interval",
    "activation_hard_swish_interval",
    "activation_identity_interval",
    "activation_leaky_relu_interval",
    "activation_linear_interval",
    "activation_parameterized_relu_interval",
    "activation_parametric_softplus_candidates",
    "activation_parametric_softplus_interval",
    "activation_relu_interval",
    "activation_scaled_elu_interval",
    "activation_scaled_tanh_interval",
    "activation_shrink_interval",
    "activation_sigmoid_interval",
    "activation_softplus_interval",
    "activation_softsign_interval",
    "activation_swish_interval",
    "activation_tanh_interval",
    "activation_thresholded_relu_interval",
]


def _interval(operator: str) -> Callable[..., tuple[Array, Array]]:
    def function(
        InputTensor: Array, OutputTensor: TensorDesc, **attributes: float
    ) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            error = ERRORS[operator](wide(InputTensor), **attributes_of(attributes))
        values = activated(operator, InputTensor, attributes)
        return rounded_interval(values, error, InputTensor.dtype)

    function.__name__ = f"{operator.lower()}_interval"
    function.__doc__ = f"""Return the least and the greatest right values of `{operator.lower()}`.

    Source: Direct3D 11.3 functional specification, 3.1 (rounding) and 22.10 (exp, log, rcp).
    """
    return function


activation_celu_interval = _interval("ACTIVATION_CELU")

activation_elu_interval = _interval("ACTIVATION_ELU")

activation_gelu_interval = _interval("ACTIVATION_GELU")

activation_hard_sigmoid_interval = _interval("ACTIVATION_HARD_SIGMOID")

activation_hard_swish_interval = _interval("ACTIVATION_HARD_SWISH")

activation_identity_interval = _interval("ACTIVATION_IDENTITY")

activation_leaky_relu_interval = _interval("ACTIVATION_LEAKY_RELU")

activation_linear_interval = _interval("ACTIVATION_LINEAR")

activation_parametric_softplus_interval = _interval("ACTIVATION_PARAMETRIC_SOFTPLUS")


def activation_parametric_softplus_candidates(
    InputTensor: Array, OutputTensor: TensorDesc, **attributes: float
) -> Sequence[Interval]:
    """Return the candidates of PARAMETRIC_SOFTPLUS: its interval, and infinities by overflow.

    A kernel may multiply Alpha by Beta first, and their product may overflow.
    """
    lowest, highest = activation_parametric_softplus_interval(
        InputTensor, OutputTensor, **attributes
    )
    activation = {"operator": "ACTIVATION_PARAMETRIC_SOFTPLUS", **attributes}
    infinite = infinite_by_factor(wide(InputTensor), activation)
    if infinite is None:
        return [(lowest, highest)]
    infinity = np.copysign(lowest.dtype.type(np.inf), attributes["Alpha"], dtype=lowest.dtype)
    other = np.where(infinite, infinity, lowest), np.where(infinite, infinity, highest)
    return [(lowest, highest), other]


activation_relu_interval = _interval("ACTIVATION_RELU")

activation_scaled_elu_interval = _interval("ACTIVATION_SCALED_ELU")

activation_scaled_tanh_interval = _interval("ACTIVATION_SCALED_TANH")

activation_shrink_interval = _interval("ACTIVATION_SHRINK")

activation_sigmoid_interval = _interval("ACTIVATION_SIGMOID")

activation_softplus_interval = _interval("ACTIVATION_SOFTPLUS")

activation_softsign_interval = _interval("ACTIVATION_SOFTSIGN")

activation_swish_interval = _interval("ACTIVATION_SWISH")

activation_tanh_interval = _interval("ACTIVATION_TANH")

activation_thresholded_relu_interval = _interval("ACTIVATION_THRESHOLDED_RELU")


def activation_parameterized_relu_interval(
    InputTensor: Array, SlopeTensor: Array, OutputTensor: TensorDesc
) -> Interval:
    """Return the interval of PARAMETERIZED_RELU: products rounded toward zero or to nearest.

    Source: Direct3D 11.3 functional specification, 3.1 (rounding).
    """
    exact = activation_parameterized_relu(wide(InputTensor), wide(SlopeTensor), OutputTensor)
    return rounded_interval(exact, 0.0, InputTensor.dtype)
