"""The option `--circumstances` of `dmlconf run`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import click

from dmlconf.backends.circumstances import CHEAP, Circumstance
from dmlconf.backends.protocol import BackendError, Capabilities

__all__ = ["chosen_circumstances", "parse_circumstances"]

_ALL: Final = "all"
_NONE: Final = "none"


def parse_circumstances(
    ctx: click.Context, parameter: click.Parameter, values: Iterable[str]
) -> tuple[str, ...]:
    """Return the names that the user gave, separated by commas; `all` and `none` stand alone.

    Raises:
        click.BadParameter: a name is none of a circumstance.
    """
    names = tuple(name.strip() for value in values for name in value.split(","))
    for name in names:
        if name in (_ALL, _NONE):
            if len(set(names)) > 1:
                raise click.BadParameter(f"{name} stands alone, without other names")
        elif name not in set(Circumstance):
            known = ", ".join([*Circumstance, _ALL, _NONE])
            raise click.BadParameter(f"{name!r} is no circumstance; choose from {known}")
    return names


def chosen_circumstances(
    names: Sequence[str], capabilities: Capabilities, backend: str
) -> tuple[Circumstance, ...]:
    """Return the circumstances of a run, in the order in which they are run.

    Args:
        names: as `parse_circumstances` returns them; none for those that cost little.
        capabilities: what the backend has.
        backend: its name, for people.

    Raises:
        BackendError: the backend lacks a circumstance that was named.
    """
    has = capabilities.circumstances
    if not names or _ALL in names:
        candidates = CHEAP if not names else tuple(Circumstance)
        return tuple(each for each in candidates if each in has)
    lacking = [name for name in names if name != _NONE and name not in has]
    if lacking:
        listed = ", ".join(lacking)
        message = f"{backend} cannot run cases {listed}"
        raise BackendError(
            f"{message}: it has no circumstances" if not has else message,
            f"Without --circumstances {','.join(lacking)} it runs them plainly",
        )
    return tuple(each for each in Circumstance if each in names)
