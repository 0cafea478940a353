"""A fault of GRU: arguments of its activations are clipped to finite numbers."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.permitted.numbers.rounding import ANY_RESULT
from dmlconf.permitted.recurrent.gru import error_scales_of_kernels
from dmlconf.precision.allowance import Allowance
from dmlconf.reference.activation.fused import Activation
from dmlconf.reference.evaluation import arguments
from dmlconf.reference.recurrent.gru import GruDesc, gru_direction
from dmlconf.reference.recurrent.layers import reference_outputs
from dmlconf.reference.recurrent.sequences import Sequences
from dmlconf.reference.recurrent.values import Arithmetic, State, Values

__all__ = ["bounded_before_activations"]


@of_operators("GRU")
def bounded_before_activations(case: Case) -> Computed | None:
    """Return GRU's outputs if arguments of activations are clipped to finite numbers.

    Infinity becomes the largest finite number of the data type, and NaN the lowest. So SOFTSIGN of
    infinity is 1, not NaN.
    """
    desc = GruDesc(**arguments(case.entry, case, case.inputs()))
    largest = float(np.finfo(desc.InputTensor.dtype).max)
    direction = partial(_bounded_direction, largest=largest)
    with np.errstate(all="ignore"):
        outputs = dict(zip(case.outputs(), reference_outputs(desc, direction), strict=True))
        scales = dict(zip(outputs, error_scales_of_kernels(desc, direction), strict=True))
        usual = dict(zip(outputs, error_scales_of_kernels(desc, gru_direction), strict=True))
    return Computed(
        outputs,
        allowance=lambda output: Allowance(right=outputs[output], errors=scales[output]),
        unknown={name: scale.sums >= ANY_RESULT for name, scale in usual.items()},
    )


def _bounded_direction(
    desc: GruDesc,
    arithmetic: Arithmetic,
    index: int,
    sequences: Sequences,
    backward: bool,
    *,
    largest: float,
) -> tuple[Values, State]:
    bounded = cast(Arithmetic, _Bounded(arithmetic, largest))
    return gru_direction(desc, bounded, index, sequences, backward)


class _Bounded:
    def __init__(self, arithmetic: Arithmetic, largest: float) -> None:
        self._arithmetic, self._largest = arithmetic, largest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arithmetic, name)

    def activated(self, sums: Values, activation: Activation) -> Values:
        within = np.abs(sums.value) <= self._largest
        numbers = np.nan_to_num(sums.value, nan=-self._largest)
        ends = self._arithmetic.exact(np.clip(numbers, -self._largest, self._largest))
        return self._arithmetic.activated(sums.where(within, ends), activation)
