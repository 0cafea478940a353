"""The option `--max-waived`: how many cases the waivers of a certificate's sender may excuse."""

from __future__ import annotations

from typing import Any, Final

import click

from dmlconf.certification.waived_limit import WaivedLimit
from dmlconf.cli.common.command import option
from dmlconf.cli.common.parameter_types import ParamType

__all__ = ["max_waived_option"]


class _Limit(ParamType[WaivedLimit]):
    name = "limit"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> WaivedLimit:
        if isinstance(value, WaivedLimit):
            return value
        try:
            return WaivedLimit.parse(str(value))
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)


max_waived_option: Final = option(
    "--max-waived",
    type=_Limit(),
    metavar="N|PERCENT%",
    help="The most cases that waivers of the sender may excuse, such as 20 or 0.5%; by default "
    "what the profile says, which is 1% for those that come with dmlconf.",
)
