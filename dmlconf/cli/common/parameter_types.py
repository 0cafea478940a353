"""`ParamType`, the base class of dmlconf's own types of options, for every supported click."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

__all__ = ["ParamType"]

if TYPE_CHECKING:
    from click import ParamType
else:

    class ParamType(click.ParamType):
        """`click.ParamType` for click before 8.4, in which `ParamType[int]` is an error."""

        def __class_getitem__(cls, values: Any) -> type[ParamType]:
            return cls
