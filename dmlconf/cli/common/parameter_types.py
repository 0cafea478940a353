"""`ParamType`, the base class of dmlconf's own types of options, for every supported click."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

__all__ = ["ParamType"]

if TYPE_CHECKING:
    from click import ParamType
else:

    class ParamType(click.ParamType):
        """`click.ParamType` that allows `ParamType[int]`, which click before 8.4 does not."""

        def __class_getitem__(cls, values: Any) -> type[ParamType]:
            return cls
