"""Conversions of WebNN's tests into cases.

A case has the desc of the operator that `schemas/translation/webnn.yaml` expresses by the test's
operation; translated back, it must give what the test expects.
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
    """Return a test as a case.

    Raises:
        NoCaseError: there is no such case.
    """
    if test.tolerance is None:
        raise NoCaseError("more than two operators")
    if test.then is not None:
        second = _alone(test.then)
        return graph_of_two(_alone(test), second)
    conversion = _CONVERSIONS.get(test.operation)
    if conversion is None:
        raise NoCaseError("an operator that is not made into cases", test.operation)
    return conversion(test)


def _alone(test: WptTest) -> Case:
    """Return one of two operators as a case."""
    conversion = _CONVERSIONS.get(test.operation)
    if conversion is None:
        raise NoCaseError("two operators, with one that is not made into cases")
    return conversion(test)
