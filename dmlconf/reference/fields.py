"""The fields of an operator, named once for its outputs and for what rules permit in addition.

A dataclass has the fields of an operator's desc by their names in the header. The operator's
functions read them from a value of it, and are called with the fields all the same, as those that
name the fields themselves are.
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
    """Return a decorator of functions of a desc: it lets them take the desc's fields.

    Args:
        desc: the dataclass of the fields.
    """

    def decorator(function: Callable[[_Desc], _Result]) -> Callable[_Fields, _Result]:
        @wraps(function)
        def call(*values: _Fields.args, **fields: _Fields.kwargs) -> _Result:
            return function(desc(*values, **fields))

        vars(call)["__signature__"] = signature(desc).replace(
            return_annotation=signature(function).return_annotation
        )
        return call

    return decorator
