"""Options for names of operators in DirectML, ONNX or WebNN; `Conv` means CONVOLUTION."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import click

from dmlconf.catalogue.graph import GRAPHS, is_graphs
from dmlconf.catalogue.loader import UnknownOperatorError
from dmlconf.cli.common.command import option
from dmlconf.cli.common.completion import complete_operator
from dmlconf.cli.common.parameter_types import TEXT
from dmlconf.cli.output.console import say
from dmlconf.documents.problems import printable
from dmlconf.translation.names import named_operators

__all__ = ["expand_operators", "given_operators", "operator_option"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


_GIVEN: Final = "dmlconf.operators"
"""The key in a context's `meta` that holds the operators of each name that is given."""


def given_operators(operators: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return, by each name that the user gave, the operators that it stands for.

    Args:
        operators: the operators of a selection; each is its own name if the user gave none.
    """
    ctx = click.get_current_context(silent=True)
    given: Mapping[str, tuple[str, ...]] = {} if ctx is None else ctx.meta.get(_GIVEN, {})
    return given or {name: (name,) for name in operators}


def expand_operators(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the operators that names stand for; `GRAPH` and `GRAPHS` give `GRAPHS`.

    Also print them for a name that differs from the catalogue's or stands for several operators,
    except while the shell completes a command.

    Raises:
        click.UsageError: a name stands for no operator.
    """
    chosen: dict[str, None] = {}
    given: dict[str, tuple[str, ...]] = ctx.meta.setdefault(_GIVEN, {})
    for value in values:
        if is_graphs(value):
            chosen[GRAPHS] = None
            given[value] = (GRAPHS,)
            continue
        try:
            operators = named_operators(value)
        except UnknownOperatorError as error:
            raise click.UsageError(printable(str(error)), ctx) from error
        is_other = len(operators) > 1 or not _is_own_name(value, operators[0])
        if is_other and not ctx.resilient_parsing:
            say(printable(f"{value}: {', '.join(operators)}"))
        chosen.update(dict.fromkeys(operators))
        given[value] = tuple(operators)
    return tuple(chosen)


def _is_own_name(name: str, operator: str) -> bool:
    own = {operator, f"DML_OPERATOR_{operator}", f"DML_{operator}_OPERATOR_DESC"}
    return name.upper() in own


def operator_option(
    explanation: str,
    *flags: str,
    parameter: str = "operators",
    callback: Callable[..., Any] = expand_operators,
    **attributes: Any,
) -> Callable[[_Function], _Function]:
    """Return a decorator that adds a repeatable option for operators.

    Args:
        explanation: the help of the option.
        flags: the spellings of the option; `-o` and `--operator` if left out.
        parameter: the command's parameter that gets the operators.
    """
    return option(
        *(flags or ("-o", "--operator")),
        parameter,
        type=TEXT,
        multiple=True,
        metavar="OPERATOR",
        shell_complete=complete_operator,
        callback=callback,
        help=explanation,
        **attributes,
    )
