"""Find the function of an operator: of its outputs, or of what its rule permits besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from dmlconf.permitted.functions import Part, permitted_function
from dmlconf.reference.evaluation import reference_function

__all__ = ["function_of"]


def function_of(operator: str, part: str = "") -> Callable[..., Any]:
    """Return the function of an operator's outputs, or of a part of what is permitted."""
    return permitted_function(operator, cast(Part, part)) if part else reference_function(operator)
