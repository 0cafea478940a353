"""Finds the function of what an operator's rule permits besides the reference's outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from dmlconf.reference.evaluation import MissingFunction, operator_function

__all__ = ["Part", "permitted_function"]

Part = Literal["error_scale", "interval", "candidates"]
"""What a function returns: `dmlconf.permitted` describes each."""


def permitted_function(name: str, part: Part) -> Callable[..., Any]:
    """Return the function of what is permitted of an operator.

    It is in the module of `dmlconf.permitted` that the operator's catalogue entry names as its
    `family`, and has the operator's name in lower case with the part behind it: that of GEMM is
    `products.gemm.gemm_error_scale`. An operator that is a special case of another one has that
    one's.

    Args:
        name: the operator's.
        part: what the function returns.

    Raises:
        MissingFunction: there is none.
    """
    try:
        return operator_function("dmlconf.permitted", name, f"_{part}")
    except MissingFunction as missing:
        raise MissingFunction(f"the {part} of {missing.name}") from missing
