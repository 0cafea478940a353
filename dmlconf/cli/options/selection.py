"""Select cases by options such as `-o` and `-k`, and load them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from dmlconf.cases.identifiers import AmbiguousNameError, Scope, resolved, scope_of
from dmlconf.cases.loading.loader import Suite, load_suite, require_valid
from dmlconf.cases.loading.planned import PlannedCases
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.keywords import KeywordError
from dmlconf.cases.selecting.selection import Selection, emptied, select
from dmlconf.cases.selecting.where import ConditionError
from dmlconf.catalogue.loader import UnknownOperatorError, operator_name
from dmlconf.catalogue.model import FEATURE_LEVELS, FeatureLevel
from dmlconf.cli.common.cache import checked_files
from dmlconf.cli.common.command import arguments, option, options
from dmlconf.cli.common.completion import (
    complete_case,
    complete_config_profile,
    complete_level,
    complete_profile,
    complete_tag,
)
from dmlconf.cli.common.configuration import BACKEND_GROUP, CHOICE_GROUP, configured_profiles
from dmlconf.cli.common.parameter_types import TEXT, WholeNumber
from dmlconf.cli.common.path_types import ANY_PATH
from dmlconf.cli.options.case_lists import LATEST, CaseList, failed_cases, listed_cases
from dmlconf.cli.options.named_operators import given_operators, operator_option
from dmlconf.cli.options.unknown_names import did_you_mean, names_without_cases
from dmlconf.cli.output.console import warn
from dmlconf.documents.problems import printable
from dmlconf.documents.wording import first_names
from dmlconf.resources import cases_directory
from dmlconf.workers.tuning import lasting_values

if TYPE_CHECKING:
    from dmlconf.certification.profiles import Profile

__all__ = [
    "challenge_option",
    "load",
    "load_chosen",
    "load_runnable",
    "long_selection_options",
    "named_profile",
    "paths_argument",
    "recorded_options",
    "selection_options",
    "suite_paths",
    "what_empties",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_MOST_NAMED: Final = 3
"""The most names without a case that a warning lists."""
_ANYWHERE: Final[Scope] = (frozenset(), frozenset())

paths_argument: Final = arguments("paths", type=ANY_PATH)


def challenge_option(text: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Return a decorator that adds the option `--challenge`."""
    number = WholeNumber(1, 2**64 - 1)
    return option("--challenge", metavar="N", type=number, help=text, **attributes)


def _selection(*operator_flags: str) -> Callable[[_Function], _Function]:
    added: Callable[[_Function], _Function] = options(
        operator_option(
            "Only cases of this operator, and graphs that contain it (without these: -k 'not "
            "graphs'). Names of ONNX, WebNN and DirectML.h find it too, such as Conv.",
            *operator_flags,
            group=CHOICE_GROUP,
        ),
        option(
            "-k",
            "keywords",
            type=TEXT,
            metavar="EXPRESSION",
            group=CHOICE_GROUP,
            help="Only cases whose identifier matches, such as 'gather and not (axis or INT8)'.",
        ),
        option(
            "--where",
            type=TEXT,
            metavar="EXPRESSION",
            group=CHOICE_GROUP,
            help="Only cases whose desc matches, such as 'DataType == FLOAT16 and GroupCount > 1'.",
        ),
        option(
            "--tag",
            "tags",
            type=TEXT,
            multiple=True,
            shell_complete=complete_tag,
            metavar="TAG",
            group=CHOICE_GROUP,
            help="Only cases with this tag (or, if repeated, with one of the tags), such as "
            "documented or boundary.",
        ),
        option(
            "--without-tag",
            "without_tags",
            type=TEXT,
            multiple=True,
            shell_complete=complete_tag,
            metavar="TAG",
            group=CHOICE_GROUP,
            help="No cases with this tag, such as slow.",
        ),
        option(
            "--case",
            "identifiers",
            type=TEXT,
            multiple=True,
            metavar="CASE",
            group=CHOICE_GROUP,
            shell_complete=complete_case,
            help="Only this case: its identifier, the end of it if no other case ends the same, "
            "its handle from a report, such as k3f9a, or a pattern such as 'gather/*'.",
        ),
        option(
            "--cases",
            "case_list",
            type=TEXT,
            metavar="FILE|-",
            callback=listed_cases,
            group=CHOICE_GROUP,
            help="Only the cases listed in the file (or standard input), one per line.",
        ),
        option(
            "--failed",
            type=TEXT,
            is_flag=False,
            flag_value=LATEST,
            metavar="[LOG]",
            callback=failed_cases,
            group=CHOICE_GROUP,
            help="Only the cases that failed in the run of this log, by default the latest. Paths, "
            "and the backend of `run`, are those of that run if none are given.",
        ),
        option(
            "--feature-level",
            metavar="LEVEL",
            shell_complete=complete_level,
            group=CHOICE_GROUP,
            help="Only cases that need at most this feature level, such as 4_1.",
        ),
        option(
            "--quick",
            is_flag=True,
            group=CHOICE_GROUP,
            help="Of the cases left by other options, only as many as cover each operator, kind, "
            "data type, layout and attribute value: about a tenth (docs/commands.md).",
        ),
        option(
            "--profile",
            type=TEXT,
            metavar="PROFILE",
            shell_complete=complete_profile,
            group=CHOICE_GROUP,
            help="Only the cases that a certificate of this profile must hold, such as 5_0 or "
            "5_0+model.",
        ),
        option(
            "--config-profile",
            type=TEXT,
            metavar="NAME",
            shell_complete=complete_config_profile,
            expose_value=False,
            group=CHOICE_GROUP,
            help="Use the options of this profile of the configuration file.",
        ),
        challenge_option(
            "Vary the data of all generated cases by this number; documented cases and those "
            "that state outputs keep theirs.",
            group=BACKEND_GROUP,
        ),
    )
    return lambda function: added(_like_the_failed_run(function))


def _like_the_failed_run(function: _Function) -> _Function:
    """With `--failed`, pass the earlier run's paths and backend if the user names none."""

    @functools.wraps(function)
    def command(**parameters: Any) -> Any:
        failed: CaseList | None = parameters["failed"]
        if failed is not None:
            if not parameters.get("paths"):
                parameters["paths"] = tuple(map(Path, failed.paths))
            if parameters.get("backends") == ():
                parameters["backends"] = (failed.backend,)
        return function(**parameters)

    return command  # type: ignore[return-value]  # It has the options that `wraps` copied.


selection_options: Final = _selection("-o", "--operator")

long_selection_options: Final = _selection("--operator")
"""The same options without `-o`, for a command in which `-o` means something else."""


def recorded_options(selection: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have a value, in the form of run logs."""
    return {
        key: str(value) if isinstance(value, CaseList) else value
        for key, value in selection.items()
        if value
    }


def load(
    paths: Sequence[Path],
    *,
    every_case: bool = False,
    known: Callable[[Path, bytes], bool] = lambda path, content: False,
    operators: Iterable[str] = (),
) -> Suite:
    """Load the suite under the paths, or the bundled one if there are none.

    Args:
        every_case: whether to build all cases of every matrix as well.
        known: returns whether all cases of a file, by its path and content, are known to be valid.
        operators: as `load_suite` takes them.

    Raises:
        InvalidFilesError: a file is invalid, or a matrix cannot be expanded.
    """
    return load_suite(
        suite_paths(paths),
        every_case=every_case,
        known=known,
        operators=set(operators),
        store=checked_files(),
    )


@lasting_values()
def load_chosen(
    paths: Sequence[Path],
    *,
    identifiers: Sequence[str] = (),
    case_list: CaseList | None = None,
    failed: CaseList | None = None,
    profile: str | None = None,
    challenge: int | None = None,
    **more: Any,
) -> tuple[Suite, Sequence[PlannedCase]]:
    """Load the suite under the paths; return it and the cases that the options select.

    Files that, by their operator or name, can hold no selected case are not parsed.

    Args:
        profile: the name of the certification profile whose cases to select.
        challenge: as `load_suite` takes it.
        more: the other options that select cases, as `_selected` takes them.

    Raises:
        click.UsageError: an option's value is wrong.
        InvalidFilesError: a file or a case is invalid, or a matrix cannot be expanded.
    """
    selection = _selected(**more)
    required = None if profile is None else named_profile(profile, configured_profiles())
    lists = [case_set for case_set in (case_list, failed) if case_set is not None]
    if identifiers:
        lists.append(CaseList("--case", tuple(identifiers)))
    try:
        suite, names = _loaded(paths, selection, lists, challenge)
        cases = select(suite.plan(), names)
        chosen = PlannedCases(cases if required is None else _required(required, cases))
    except AmbiguousNameError as error:
        raise click.UsageError(printable(str(error))) from error
    except ConditionError as error:
        raise click.BadParameter(printable(str(error)), param_hint="--where") from error
    if chosen:
        given = given_operators(selection.operators)
        partial = selection.operators or lists
        whole = functools.cache(lambda: load(paths) if partial else suite)
        for message in names_without_cases(selection, given, chosen, suite, whole):
            warn(message)
    return suite, chosen


def what_empties(
    paths: Sequence[Path],
    *,
    identifiers: Sequence[str] = (),
    case_list: CaseList | None = None,
    failed: CaseList | None = None,
    challenge: int | None = None,
    profile: str | None = None,
    **more: Any,
) -> tuple[str, Sequence[PlannedCase]] | None:
    """Return the first criterion of a selection that leaves no case, as `emptied` does.

    The profile is no such criterion. Arguments and exceptions are those of `load_chosen`.
    """
    lists = [each for each in (case_list, failed) if each is not None]
    if identifiers:
        lists.append(CaseList("--case", tuple(identifiers)))
    suite, selection = _loaded(paths, _selected(**more), lists, challenge, quiet=True)
    return emptied(suite.plan(), selection)


def _required(profile: Profile, cases: Iterable[PlannedCase]) -> Iterable[PlannedCase]:
    from dmlconf.certification.profiles import required_cases

    return required_cases(profile, cases)


def _loaded(
    paths: Sequence[Path],
    selection: Selection,
    lists: Sequence[CaseList],
    challenge: int | None,
    *,
    quiet: bool = False,
) -> tuple[Suite, Selection]:
    """Return the suite, and the selection with full identifiers for the short names in lists.

    More and more files are parsed until each name has a case. Unless `quiet`, there is a warning of
    names that have none if others have one.
    """
    names: list[list[str]] = []
    unknown: list[list[str]] = []
    identifiers: list[str] = []
    for operators, files in _scopes(lists):
        chosen_operators = selection.operators & operators if operators else selection.operators
        suite = load_suite(
            suite_paths(paths),
            operators=chosen_operators,
            files=files,
            store=checked_files(),
            challenge=challenge,
        )
        identifiers = [case.identifier for case in suite.plan()] if lists else []
        resolutions = [resolved(each.cases, identifiers) for each in lists]
        names = [full for full, _ in resolutions]
        unknown = [_not_excluded(missing, selection) for _, missing in resolutions]
        if not any(unknown):
            break
    if all(names) and not quiet:
        for each, missing in zip(lists, unknown, strict=True):
            _warn_of(missing, each, identifiers)
    return suite, replace(selection, lists=tuple(map(frozenset, names)))


def named_profile(name: str, others: Sequence[str] = ()) -> Profile:
    """Return the certification profile of a name, such as `5_0+model`, or of a file's path.

    Args:
        others: profiles of the configuration file, which the error lists, too.

    Raises:
        click.UsageError: there is no such profile, or it has no such part.
        InvalidFilesError: the file of the profile cannot be read, or is invalid.
    """
    from dmlconf.certification.profiles import UnknownProfileError, read_profile

    try:
        return read_profile(name)
    except UnknownProfileError as error:
        own = f"; those of the configuration file are {', '.join(others)}" if others else ""
        raise click.BadParameter(printable(f"{error}{own}"), param_hint="--profile") from error


def _scopes(lists: Sequence[CaseList]) -> list[Scope]:
    """Return wider and wider scopes (operators and files) in which the lists' cases may be."""
    scopes = [scope_of(each.cases) for each in lists]
    known = [operators for operators, _ in scopes if operators]
    operators = frozenset.intersection(*known) if known else frozenset()
    files = [files for _, files in scopes if files]
    near = frozenset.intersection(*files) if files and operators else frozenset()
    return list(dict.fromkeys([(operators, near), (operators, frozenset()), _ANYWHERE]))


def _not_excluded(names: Sequence[str], selection: Selection) -> list[str]:
    """Return the names without those of operators that the selection leaves out."""
    if not selection.operators:
        return list(names)
    operators = ((name, scope_of([name])[0]) for name in names)
    return [name for name, own in operators if not own or own & selection.operators]


def _warn_of(missing: Sequence[str], source: CaseList, identifiers: Sequence[str]) -> None:
    if missing:
        hint = did_you_mean(missing[0], identifiers) if len(missing) == 1 else ""
        warn(f"{source.name}: there is no case {first_names(missing, _MOST_NAMED)}{hint}")


def load_runnable(paths: Sequence[Path], **selection: Any) -> tuple[Suite, Sequence[PlannedCase]]:
    """Load cases as `load_chosen` does, and check the first selected case of each template.

    Raises:
        click.UsageError: an option's value is wrong.
        InvalidFilesError: a file or one of these cases is invalid.
    """
    suite, plan = load_chosen(paths, **selection)
    require_valid(suite, plan)
    return suite, plan


def suite_paths(paths: Sequence[Path]) -> list[Path]:
    """Return the paths, or that of the bundled suite if there are none."""
    return list(paths) or [cases_directory()]


def _selected(
    *,
    keywords: str | None = None,
    where: str | None = None,
    operators: Sequence[str] = (),
    tags: Sequence[str] = (),
    feature_level: str | None = None,
    quick: bool = False,
    without_tags: Sequence[str] = (),
) -> Selection:
    try:
        selection = Selection(
            keywords=keywords,
            where=where,
            operators=frozenset(map(operator_name, operators)),
            tags=frozenset(tags),
            feature_level=None if feature_level is None else _level(feature_level),
            quick=quick,
            without_tags=frozenset(without_tags),
        )
        list(select((), selection))
    except (KeywordError, UnknownOperatorError) as error:
        raise click.UsageError(printable(str(error))) from error
    except ConditionError as error:
        raise click.BadParameter(printable(str(error)), param_hint="--where") from error
    except ValueError as error:
        raise click.BadParameter(printable(str(error)), param_hint="--feature-level") from error
    return selection


def _level(text: str) -> FeatureLevel:
    level = FeatureLevel.parse(text)
    if level not in FEATURE_LEVELS:
        known = ", ".join(map(str, FEATURE_LEVELS))
        raise ValueError(f"there is no feature level {text}; the levels are {known}")
    return level
