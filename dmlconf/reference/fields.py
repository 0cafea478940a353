"""A decorator for functions that take all fields of an operator as one dataclass.

For example, `GemmDesc` names the nine fields of GEMM once for two functions, to which callers still
pass the fields one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

__all__ = ["of_fields"]

_Fields = ParamSpec("_Fields")
_Desc = TypeVar("_Desc")
_Result = TypeVar("_Result")


def of_fields(
    desc: Callable[_Fields, _Desc],
) -> Callable[[Callable[[_Desc], _Result]], Callable[_Fields, _Result]]:
    """Return a decorator: a function of the dataclass `desc` becomes a function of its fields."""

    def decorator(function: Callable[[_Desc], _Result]) -> Callable[_Fields, _Result]:
        @wraps(function)
        def call(*values: _Fields.args, **fields: _Fields.kwargs) -> _Result:
            return function(desc(*values, **fields))

        vars(call)["__signature__"] = signature(desc).replace(
            return_annotation=signature(function).return_annotation
        )
        return call

    return decorator
