"""A case with its inputs and right outputs, which effects of driver defects change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array

__all__ = ["Arrays", "Computation", "Effect", "Settings"]

Arrays = Mapping[str, Array]
"""Arrays by the names of tensors."""

Settings = Mapping[str, Any]
"""An effect's settings from a defect's entry."""


@dataclass(frozen=True)
class Computation:
    """A case with its inputs and right outputs, each an array in the shape of its Sizes."""

    case: Case
    inputs: Arrays
    outputs: Arrays

    @property
    def desc(self) -> Mapping[str, Any]:
        """The operator's desc."""
        return self.case.desc

    def tensor(self, name: str) -> TensorDesc:
        """Return the desc of an input or output, such as `InputTensors[0]`.

        Raises:
            LookupError: there is no such tensor.
            TypeError: the name has an index, but the field is no array.
        """
        tensor = TensorRef.of(name).read(self.desc)
        if not isinstance(tensor, TensorDesc):
            raise KeyError(name)
        return tensor

    def again(
        self,
        inputs: Arrays | None = None,
        desc: Mapping[str, Any] | None = None,
        operator: str | None = None,
    ) -> dict[str, Array] | None:
        """Return the outputs for other inputs, fields or operator; None if the reference fails."""
        case = replace(
            self.case,
            desc={**self.desc, **(desc or {})},
            operator_name=operator or self.case.operator_name,
        )
        try:
            with np.errstate(all="ignore"):
                return evaluate(case, {**self.inputs, **(inputs or {})})
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
            return None  # Attributes do not fit the sizes.


Effect = Callable[[Computation, Settings], Arrays | None]
"""Returns outputs of a kernel with an effect, of which some may be right.

None, or no outputs, if the effect does not apply to the case.
"""
