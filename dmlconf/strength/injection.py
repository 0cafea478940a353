"""What a defect is, and where it is injected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from dmlconf.cases.model import Case
from dmlconf.catalogue.precision import PrecisionRule
from dmlconf.tensors.datatypes import Array

__all__ = ["Defect", "Site"]


@dataclass(frozen=True)
class Site:
    """One correct output of one case.

    Attributes:
        case: the case.
        outputs: all its correct outputs by tensor.
        name: the output tensor that gets the defect.
    """

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


@dataclass(frozen=True, slots=True)
class Defect:
    """One way in which an operator can be wrong.

    Attributes:
        name: as reports show it.
        inject: yields the wrong output of a site with a note that tells several apart, or
            nothing where the defect has no place there.
        shows: whether good data shows it wherever it has a place; else it only does in some
            outputs, such as those with subnormal numbers.
    """

    name: str
    inject: Callable[[Site], Iterator[tuple[str, Array]]]
    shows: bool = True
