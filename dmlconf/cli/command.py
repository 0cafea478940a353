"""Commands and options of the command line: help in groups, environment variables, hints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

__all__ = ["Command", "Option", "environment_variable", "option", "options"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_LIST: Final = "`dmlconf list` names the cases that a run takes"

_ELSEWHERE: Final[Mapping[str, str]] = {
    "--co": _LIST,
    "--collect-only": _LIST,
    "--dry-run": _LIST,
    "--exitfirst": "use -x or --fail-fast",
    "--ff": "use --failed",
    "--filter": "use -k for text in identifiers, or --where for conditions over descs",
    "--gtest_filter": "use --case with a pattern, such as --case 'gather/*'",
    "--html": "use --report html:FILE",
    "--json": "use --report json or --report json:FILE",
    "--junit": "use --report junit:FILE",
    "--junit-xml": "use --report junit:FILE",
    "--junitxml": "use --report junit:FILE",
    "--last-failed": "use --failed",
    "--lf": "use --failed",
    "--markers": "use --tag",
    "--maxfail": "use -x or --fail-fast",
    "--random-order-seed": "use --shuffle SEED",
    "--rerun-failed": "use --failed",
    "--seed": "use --shuffle SEED",
    "--workers": "use -j or --jobs",
    "-m": "use --tag",
    "-n": "use -j or --jobs",
}
"""What options of other test runners are here, by their name."""

_OPTION: Final = re.compile(r"--[a-z-]+(?= |$)|(?<= )-[a-z]\b")


class Option(click.Option):
    """An option with the heading that it stands under in the help."""

    def __init__(self, *args: Any, group: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


def option(*names: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Return `click.option` for an `Option`."""
    return click.option(*names, cls=Option, **attributes)


def options(*decorators: Callable[[Any], Any]) -> Callable[[_Function], _Function]:
    """Return a decorator that adds several options, in their order."""

    def decorated(function: _Function) -> _Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorated


def environment_variable(command: str, option: click.Option) -> str:
    """Return the variable that gives an option its value, such as `DMLCONF_RUN_TIMEOUT`."""
    name = max(option.opts, key=len).lstrip("-")
    return f"DMLCONF_{command}_{name}".upper().replace("-", "_")


class Command(click.Command):
    """A command whose options stand in groups and can be set by environment variables."""

    def __init__(self, name: str | None, **attributes: Any) -> None:
        super().__init__(name, **attributes)
        for parameter in self.params:
            if isinstance(parameter, click.Option):
                own = environment_variable(name or "", parameter)
                given = parameter.envvar
                others = [given] if isinstance(given, str) else [*(given or ())]
                parameter.envvar = [own, *others]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an option of another test runner is told by its name here."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = _ELSEWHERE.get(error.option_name, "")
            own = {name for parameter in self.params for name in parameter.opts}
            if not known or not own.issuperset(_OPTION.findall(known)):
                raise
            raise click.UsageError(f"No such option: {error.option_name}: {known}.", ctx) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group of options under its heading, the general ones last."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
        for heading in sorted(groups, key=lambda name: name == "Options"):
            with formatter.section(heading):
                formatter.write_dl(groups[heading])
