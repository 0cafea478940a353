"""Options that several commands share, and what they choose."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from dmlconf.backends import registry
from dmlconf.backends.options import split_options
from dmlconf.cases.loader import Suite, load_suite, require_valid
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selection import (
    MODEL_TAG,
    KeywordError,
    Selection,
    names_models,
    select,
    without_models,
)
from dmlconf.catalogue.loader import UnknownOperatorError, operator_name, operator_names
from dmlconf.catalogue.model import FEATURE_LEVELS, FeatureLevel
from dmlconf.cli.console import warn
from dmlconf.cli.exit_codes import ExitCode
from dmlconf.documents.problems import nearest, printable
from dmlconf.resources import cases_directory

__all__ = [
    "Number",
    "backend_options",
    "color_option",
    "complete_backend",
    "complete_case",
    "complete_operator",
    "jobs_option",
    "leave_out_models",
    "load",
    "load_chosen",
    "load_runnable",
    "long_selection_options",
    "nothing_selected",
    "paths_argument",
    "selection_options",
    "suite_paths",
    "with_directml",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Number(click.FloatRange):
    """A number in a range; NaN, which compares with no bound, is in none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or fail as the base class does."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value} is not a number in the range {self._describe_range()}.", param, ctx)
        return number


def complete_operator(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of the operators that begin so."""
    return [name for name in operator_names() if name.startswith(incomplete.upper())]


def complete_case(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the identifiers that begin so; those of the bundled suite where no path is given."""
    paths = ctx.params.get("paths") or ()
    plan = load(paths, operators=_operators_of([incomplete])).plan()
    return [case.identifier for case in plan if case.identifier.startswith(incomplete)]


def _complete_tag(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    tags = {tag for template in load(()).templates for tag in template.tags}
    return sorted(tag for tag in tags if tag.startswith(incomplete))


paths_argument: Final = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))


def _selection(*operator_flags: str) -> Callable[[_Function], _Function]:
    """Return a decorator that adds the options that choose cases."""
    return _added(
        click.option(
            *operator_flags, "operators", multiple=True, metavar="OPERATOR",
            shell_complete=complete_operator, help="Take cases of this operator only.",
        ),
        click.option(
            "-k", "keywords", metavar="EXPRESSION",
            help="Take cases whose identifier fits, such as 'gather and not (axis or INT8)'.",
        ),
        click.option(
            "--tag", "tags", multiple=True, shell_complete=_complete_tag,
            help="Take cases with this tag only, such as documented or boundary.",
        ),
        click.option(
            "--without-tag", "without_tags", multiple=True, shell_complete=_complete_tag,
            help="Leave out cases with this tag, such as slow.",
        ),
        click.option(
            "--case", "identifiers", multiple=True, metavar="CASE",
            shell_complete=complete_case, help="Take the case with this identifier only.",
        ),
        click.option(
            "--feature-level", metavar="LEVEL",
            help="Take cases that need at most this feature level, such as 4_1.",
        ),
        click.option(
            "--quick", is_flag=True,
            help="Of what the other options leave, take the first case of each operator and kind: "
            "documented, matrix, boundary, invalid.",
        ),
    )  # fmt: skip


def _added(*options: Callable[[Any], Any]) -> Callable[[_Function], _Function]:
    def decorated(function: _Function) -> _Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorated


selection_options: Final = _selection("-o", "--operator")
"""Add the options that choose cases."""

long_selection_options: Final = _selection("--operator")
"""Add them to a command that has another use for `-o`."""


def complete_backend(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of the backends that begin so."""
    return [name for name in registry.backend_names() if name.startswith(incomplete)]


def _jobs(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    if value == "auto":
        return os.cpu_count() or 1
    if value.isdecimal() and int(value) > 0:
        return int(value)
    raise click.BadParameter(f"{value!r} is neither a number from 1 on nor auto")


def jobs_option(otherwise: str) -> Callable[[_Function], _Function]:
    """Return a decorator that adds `jobs`, which is None where the user names none.

    Args:
        otherwise: how many there are then, for the help.
    """
    return click.option(
        "-j", "--jobs", callback=_jobs, metavar="N|auto",
        help=f"Worker processes to run side by side; {otherwise} where not given.",
    )  # fmt: skip


backend_options: Final = _added(
    click.option("--timeout", default=60.0, show_default=True, metavar="SECONDS",
                 type=Number(min=0, min_open=True),
                 help="How long one case may take in a worker process."),
    click.option("--substrate", type=click.Path(path_type=Path, dir_okay=False, exists=True),
                 envvar="DMLCONF_SUBSTRATE", metavar="FILE",
                 help="Set cases apart that fail for a limit listed here."),
)  # fmt: skip
"""Add the options that say how a backend runs."""


directml_option: Final = click.option(
    "--directml", metavar="FILE",
    help="Use this DirectML.dll or libdirectml.so for every backend directml, except where the "
    "backend has a path= of its own.",
)  # fmt: skip


def with_directml(
    backends: Sequence[registry.BackendName], path: str | None
) -> list[registry.BackendName]:
    """Return the backends; each `directml` without a `path=` of its own has that of `--directml`.

    Raises:
        click.UsageError: the option is given, and no backend can use it.
    """
    if path is None:
        return list(backends)
    hint = "--directml"
    if "," in path:
        told = "the path cannot have a comma; name the file in the variable DMLCONF_DIRECTML"
        raise click.BadParameter(told, param_hint=hint)
    if all(backend.name != "directml" for backend in backends):
        told = "no backend is directml; add --backend directml"
        raise click.BadParameter(told, param_hint=hint)
    found = [_with_path(backend, path) for backend in backends]
    if found == list(backends):
        told = "each backend directml has a path= of its own; leave out one or the other"
        raise click.BadParameter(told, param_hint=hint)
    return found


def _with_path(backend: registry.BackendName, path: str) -> registry.BackendName:
    if backend.name != "directml" or "path" in split_options(backend.options)[1]:
        return backend
    return replace(backend, options=",".join(filter(None, (backend.options, f"path={path}"))))


color_option: Final = click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto",
    show_default=True, help="When to use colour; auto honours NO_COLOR.",
)  # fmt: skip


def load(
    paths: Sequence[Path], *, every_case: bool = False, operators: Iterable[str] = ()
) -> Suite:
    """Load the suite under the paths, or the bundled one where there are none.

    Args:
        paths: as given.
        every_case: build all cases of every matrix as well.
        operators: read files of these operators only; all where there are none.
    """
    return load_suite(suite_paths(paths), every_case=every_case, operators=set(operators))


def load_chosen(
    paths: Sequence[Path], *, operators: Sequence[str], identifiers: Sequence[str], **more: Any
) -> tuple[Suite, list[PlannedCase]]:
    """Load the suite under the paths, and return it with the cases that the options choose.

    Files that no chosen case can be in are not read.

    Raises:
        click.UsageError: an option's value is wrong.
        InvalidFilesError: a file is invalid, or a matrix cannot be expanded.
    """
    selection = _selected(operators=operators, identifiers=identifiers, **more)
    try:
        files = {_file_of(identifier) for identifier in identifiers}
    except UnknownOperatorError:
        files = set()
    suite = load_suite(suite_paths(paths), operators=selection.operators, files=files)
    return suite, list(select(suite.plan(), selection))


def load_runnable(paths: Sequence[Path], **selection: Any) -> tuple[Suite, list[PlannedCase]]:
    """Return what `load_chosen` does; cases that `validate` refuses are refused here as well.

    Raises:
        click.UsageError: an option's value is wrong.
        InvalidFilesError: a file is invalid, or a chosen case is.
    """
    suite, plan = load_chosen(paths, **selection)
    require_valid(plan)
    return suite, plan


def leave_out_models(
    paths: Sequence[Path], plan: list[PlannedCase], selection: Mapping[str, Any], why: str
) -> list[PlannedCase]:
    """Return the plan without cases of models, unless the user asks for them, and say so.

    Args:
        paths: as given.
        plan: what the options choose.
        selection: the options, as `load_chosen` takes them.
        why: continues "cases of the tag `model` are left out".
    """
    asked = (selection["tags"], selection["identifiers"], selection["keywords"])
    if names_models(paths, *asked):
        return plan
    kept, count = without_models(plan)
    if count:
        told = f"{count:,} case{'s' if count != 1 else ''} of the tag `{MODEL_TAG}`"
        warn(f"{told} left out {why}: take them with --tag {MODEL_TAG}")
    return kept


def _file_of(identifier: str) -> tuple[str, str]:
    """Return the operator of a case and the name of its file, as its identifier has them."""
    name, _, rest = identifier.partition("/")
    return operator_name(name), re.split(r"[/\[]", rest, maxsplit=1)[0]


def suite_paths(paths: Sequence[Path]) -> list[Path]:
    """Return the paths, or that of the bundled suite where there are none."""
    return list(paths) or [cases_directory()]


def _selected(
    *,
    keywords: str | None,
    operators: Sequence[str],
    tags: Sequence[str],
    identifiers: Sequence[str],
    feature_level: str | None,
    quick: bool = False,
    without_tags: Sequence[str] = (),
) -> Selection:
    """Return what the options choose.

    Raises:
        click.UsageError: an option's value is wrong.
    """
    try:
        selection = Selection(
            keywords=keywords,
            operators=frozenset(map(operator_name, operators)),
            tags=frozenset(tags),
            identifiers=frozenset(identifiers),
            feature_level=None if feature_level is None else _level(feature_level),
            quick=quick,
            without_tags=frozenset(without_tags),
        )
        list(select((), selection))
    except (KeywordError, UnknownOperatorError) as error:
        raise click.UsageError(printable(str(error))) from error
    except ValueError as error:
        raise click.BadParameter(printable(str(error)), param_hint="--feature-level") from error
    return selection


def _level(text: str) -> FeatureLevel:
    level = FeatureLevel.parse(text)
    if level not in FEATURE_LEVELS:
        known = ", ".join(map(str, FEATURE_LEVELS))
        raise ValueError(f"there is no feature level {text}; the levels are {known}")
    return level


def _operators_of(identifiers: Iterable[str]) -> set[str]:
    """Return the operators that the cases can be of; nothing where that cannot be told."""
    try:
        return {operator_name(name) for name, slash, _ in map(_parted, identifiers) if slash}
    except UnknownOperatorError:
        return set()


def _parted(identifier: str) -> tuple[str, str, str]:
    return identifier.partition("/")


def nothing_selected(paths: Sequence[Path], tags: Sequence[str], identifiers: Sequence[str]) -> int:
    """Say that no case was selected, suggest what may have been meant, and return the exit code."""
    message = "no case was selected"
    known_tags = sorted({tag for t in load(paths).templates for tag in t.tags}) if tags else []
    unknown = [tag for tag in tags if tag not in known_tags]
    if unknown:
        message += f": no case has the tag {unknown[0]}; the tags are {', '.join(known_tags)}"
    elif identifiers:
        suite = load(paths, operators=_operators_of(identifiers))
        near = nearest(identifiers[0], (case.identifier for case in suite.plan()))
        message += f": there is no case {identifiers[0]}"
        message += f"; did you mean {near}?" if near else ""
    click.echo(printable(f"Error: {message}"), err=True)
    return ExitCode.NOTHING_SELECTED
