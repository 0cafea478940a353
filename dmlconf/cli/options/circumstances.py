"""Parse the values of the option `--circumstances` of `dmlconf run`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from dmlconf.backends.circumstances import ALL, NONE, Circumstance

__all__ = ["parse_circumstances"]


def parse_circumstances(
    ctx: click.Context, parameter: click.Parameter, values: Iterable[str]
) -> tuple[str, ...]:
    """Return the names in values such as `repeated,rebound`.

    Raises:
        click.BadParameter: a name is unknown, or `all` or `none` is combined with another name.
    """
    names = tuple(name.strip() for value in values for name in value.split(","))
    for name in names:
        if name in (ALL, NONE):
            if len(set(names)) > 1:
                raise click.BadParameter(f"{name} cannot be combined with other names")
        elif name not in set(Circumstance):
            known = ", ".join([*Circumstance, ALL, NONE])
            raise click.BadParameter(f"{name!r} is not a circumstance; choose from {known}")
    return names
