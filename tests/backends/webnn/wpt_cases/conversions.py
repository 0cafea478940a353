"""Convert WebNN's tests into cases.

`schemas/translation/webnn.yaml` translates the case's operator of DirectML back into WebNN's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlconf.cases.model import Case
from tests.backends.stated_cases import NoCaseError
from tests.backends.webnn.wpt_cases import (
    element_wise,
    movement,
    normalization,
    products,
    recurrent,
    reductions,
    windows,
)
from tests.backends.webnn.wpt_cases.building import Conversion
from tests.backends.webnn.wpt_cases.graphs import graph_of_two
from tests.backends.webnn.wpt_cases.wpt_tests import WptTest

__all__ = ["as_case"]

_CONVERSIONS: Final[Mapping[str, Conversion]] = {
    **element_wise.CONVERSIONS,
    **movement.CONVERSIONS,
    **normalization.CONVERSIONS,
    **products.CONVERSIONS,
    **recurrent.CONVERSIONS,
    **reductions.CONVERSIONS,
    **windows.CONVERSIONS,
}


def as_case(test: WptTest) -> Case:
    """Return the case that expresses a test, or raise NoCaseError."""
    if test.tolerance is None:
        raise NoCaseError("more than two operators")
    if test.then is not None:
        reason = "two operators, with one that is not made into cases"
        second = _alone(test.then, NoCaseError(reason))
        return graph_of_two(_alone(test, NoCaseError(reason)), second)
    reason = "an operator that is not made into cases"
    return _alone(test, NoCaseError(reason, test.operation))


def _alone(test: WptTest, otherwise: NoCaseError) -> Case:
    """Return the case of a test's one operator; raise `otherwise` if it has no conversion."""
    conversion = _CONVERSIONS.get(test.operation)
    if conversion is None:
        raise otherwise
    return conversion(test)
