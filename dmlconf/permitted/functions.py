"""Find the function that computes an operator's error scale, interval or candidates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from dmlconf.reference.evaluation import MissingFunction, operator_function

__all__ = ["Part", "permitted_function"]

Part = Literal["error_scale", "interval", "candidates", "consequences"]
"""What a function returns: `dmlconf.permitted` describes each."""


def permitted_function(name: str, part: Part) -> Callable[..., Any]:
    """Return the function of an operator's fields that computes what the operator's rule permits.

    The operator's catalogue entry names the function's module as `family`. The function's name is
    the operator's, in lower case, and the part: the error scale of GEMM is
    `products.gemm.gemm_error_scale`. If the operator is a special case of another, as
    AVERAGE_POOLING is of AVERAGE_POOLING1, the result calls the other's function.

    Raises:
        MissingFunction: the operator has no such function.
        UnknownOperatorError: the catalogue has no such operator.
    """
    try:
        return operator_function("dmlconf.permitted", name, f"_{part}")
    except MissingFunction as missing:
        raise MissingFunction(f"the {part} of {missing.name}") from missing
