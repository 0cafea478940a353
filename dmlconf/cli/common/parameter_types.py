"""The base class of the command line's own types of options, for every supported click."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

__all__ = ["ParamType"]

if TYPE_CHECKING:
    from click import ParamType
else:

    class ParamType(click.ParamType):
        """`click.ParamType`, which takes the type of its values from click 8.4 on only."""

        def __class_getitem__(cls, values: Any) -> type[ParamType]:
            return cls
