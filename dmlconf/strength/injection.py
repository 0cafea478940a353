"""What a defect is, and the output of a case into which it is injected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.precision import PrecisionRule
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array

__all__ = ["Defect", "Site", "recomputed"]


@dataclass(frozen=True)
class Site:
    """The output `name` of a case, still correct, into which a defect is to be injected."""

    case: Case
    outputs: Mapping[str, Array]
    name: str

    @property
    def correct(self) -> Array:
        """The output's right values."""
        return self.outputs[self.name]

    @cached_property
    def rule(self) -> PrecisionRule:
        """The output's precision rule."""
        return self.case.rule(self.name)


def _has_inputs(site: Site) -> bool:
    return bool(site.case.data)


@dataclass(frozen=True, slots=True)
class Defect:
    """One way in which the output of an operator can differ, wrongly or legitimately.

    Attributes:
        inject: yields outputs with the defect, each with a note. They may be right. Nothing is
            yielded if the defect does not apply.
        shows: returns whether other data would show a defect that leaves the site's output right.
            By default, it would if the operator has inputs.
    """

    name: str
    inject: Callable[[Site], Iterator[tuple[str, Array]]]
    shows: Callable[[Site], bool] = _has_inputs


def recomputed(
    site: Site, inputs: Mapping[str, Array] | None = None, desc: Mapping[str, Any] | None = None
) -> Array | None:
    """Return the site's output for other inputs or attributes; None if the reference fails then."""
    case = replace(site.case, desc={**site.case.desc, **(desc or {})})
    try:
        with np.errstate(all="ignore"):
            return evaluate(case, {**site.case.inputs(), **(inputs or {})})[site.name]
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
        return None  # The reference fails somewhere if attributes do not fit the sizes.
