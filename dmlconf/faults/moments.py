"""A fault of ADAM_OPTIMIZER: moments are written before the parameters are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.permitted.numbers.half import toward_zero
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.numbers.floats import single
from dmlconf.reference.training import moving_average
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["moments_read_as_parameters"]

_PARAMETERS = "InputParametersTensor"
_MOMENTS = ("OutputFirstMomentTensor", "OutputSecondMomentTensor")


def moments_read_as_parameters(case: Case) -> Computed | None:
    """Return the outputs if a moment shares the parameters' buffer, and is written first.

    The operator then reads the moment as parameters. A FLOAT16 moment may be truncated. None if no
    moment shares the buffer, or if the tensors have at most 4 dimensions.
    """
    moment = next((name for name in _MOMENTS if case.in_place.get(name) == _PARAMETERS), None)
    if moment is None or case.desc[_PARAMETERS].DimensionCount <= 4:
        return None

    def step(read: Array) -> Computed:
        stepped = case.with_data({**case.inputs(), _PARAMETERS: read})
        return Computed(evaluate(stepped), around=stepped)

    def truncated() -> Iterator[Computed]:
        if case.desc[_PARAMETERS].DataType is DataType.FLOAT16:
            yield step(toward_zero(_moment(case, moment)).astype(np.float16))

    return replace(step(evaluate(case)[moment]), others=truncated)


def _moment(case: Case, name: str) -> Array:
    """Return an updated moment before it is stored, FLOAT64."""
    inputs, desc = case.inputs(), case.desc
    gradient = inputs["GradientTensor"].astype(np.float64)
    beta, new = (
        (desc["Beta1"], gradient) if name == _MOMENTS[0] else (desc["Beta2"], np.square(gradient))
    )
    return moving_average(inputs[name.replace("Output", "Input")], new, single(beta))
