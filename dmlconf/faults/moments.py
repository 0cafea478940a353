"""ADAM_OPTIMIZER, which writes the moments before it reads the parameters."""

from __future__ import annotations

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.reference.evaluation import evaluate

__all__ = ["moments_read_as_parameters"]

_PARAMETERS = "InputParametersTensor"
_MOMENTS = ("OutputFirstMomentTensor", "OutputSecondMomentTensor")


def moments_read_as_parameters(case: Case) -> Computed | None:
    """Return what a step gives if a moment is written over the parameters, and then read.

    So it is for tensors with more than 4 dimensions.
    """
    moment = next((name for name in _MOMENTS if case.in_place.get(name) == _PARAMETERS), None)
    if moment is None or case.desc[_PARAMETERS].DimensionCount <= 4:
        return None
    read = case.with_data({**case.inputs(), _PARAMETERS: evaluate(case)[moment]})
    return Computed(evaluate(read), around=read)
