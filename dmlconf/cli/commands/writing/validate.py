"""`dmlconf validate`: check case files, the catalogue, known faults and rewrites."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from dmlconf.cases.loading.loader import Suite, built_case
from dmlconf.cases.loading.rewrites import lint_rewrites
from dmlconf.cases.loading.validated import checks_digest
from dmlconf.cases.model import CaseTemplate, ExpectedRejection, PlannedCase
from dmlconf.cases.selecting.selection import LARGE_TAG, MODEL_TAG
from dmlconf.catalogue.lint import lint_catalogue
from dmlconf.catalogue.loader import entry_of, operator_files
from dmlconf.cli.common.cache import figure_cache, user_store
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.options.selection import load, paths_argument, suite_paths
from dmlconf.cli.output.console import warn
from dmlconf.documents.problems import InvalidFilesError, Problem
from dmlconf.documents.reader import line_problem
from dmlconf.documents.wording import counted
from dmlconf.engine.against import RecordingAgainst, suite_recordings
from dmlconf.excuses.known_fault_file import lint_known_faults
from dmlconf.expectations.checked import expectation_problems
from dmlconf.expectations.valid_files import ValidFiles
from dmlconf.judging.unjudged import UNDEFINED_TAG, judges_nothing, may_judge_nothing
from dmlconf.workers.memory import MUCH, judged_bytes

__all__ = ["command"]


@click.command("validate", cls=Command, short_help="Check case files and the catalogue.")
@paths_argument
@option(
    "--recordings",
    "with_recordings",
    is_flag=True,
    help="Also check what the suite's recordings expect, which takes as long as a run at first.",
)
@option("--no-warnings", is_flag=True, help="Do not look for cases that check nothing.")
@option("--json", "as_json", is_flag=True, help="Print all problems and warnings as JSON.")
def command(
    paths: tuple[Path, ...], with_recordings: bool, no_warnings: bool, as_json: bool
) -> int:
    """Check the case files under PATHS, every case of every matrix, and dmlconf's own files.

    Those files are the catalogue, the known faults and the rewrites. All problems of files are
    shown at once, with their lines. If there are none, expectations are checked: the rules of a
    case must permit the outputs that it states, given what the reference computes, unless the case
    disputes the reference. With --recordings, recorded outputs are checked too.

    A case gets a warning if the precision rules permit any value of every element, unless it has
    the tag `undefined`. Finding such cases takes as long as a run, so cases with the tag `model`
    are left out. A case that may take more than 250 MiB of memory needs the tag `large` or `model`,
    unless it must be rejected.
    """
    valid_files = ValidFiles(user_store())
    problems = _catalogue_problems() + lint_known_faults() + lint_rewrites()
    suite = None
    warnings: list[Problem] = []
    try:
        suite = load(paths, every_case=True, known=valid_files.has)
    except InvalidFilesError as error:
        problems += error.problems
    if suite is not None and not problems:
        recordings = map(RecordingAgainst, suite_recordings(suite_paths(paths)))
        problems += expectation_problems(
            suite, tuple(recordings) if with_recordings else (), user_store()
        )
    if suite is not None:
        unknown = _unknown(suite, valid_files)
        warns = not problems and not no_warnings
        too_large, warnings = _too_large_and_open(suite, unknown, warns)
        problems += too_large
        if warns and not problems:
            _keep(suite, unknown, warnings, suite_paths(paths), valid_files)
    if as_json:
        data = {
            "problems": [_plain(problem) for problem in problems],
            "warnings": [_plain(warning) for warning in warnings],
        }
        click.echo(json.dumps(data, indent=2))
        return ExitCode.INVALID_FILE if problems else ExitCode.SUCCESS
    if problems or suite is None:
        raise InvalidFilesError(problems)
    for warning in warnings:
        warn(str(warning))
    count = len({template.about.location.path for template in suite.templates})
    cases = sum(1 for _ in suite.plan())
    files = f"{count} case file{'s' if count != 1 else ''}"
    inside = counted(cases, "case")
    click.echo(f"{files} with {inside} and {len(operator_files())} operators are valid")
    return ExitCode.SUCCESS


def _catalogue_problems() -> list[Problem]:
    store, key = user_store(), sha256(b"catalogue" + checks_digest()).hexdigest()
    if store is not None and store.get(key) == []:
        return []
    problems = lint_catalogue()
    if store is not None and not problems:
        store.put(key, [])
    return problems


def _unknown(suite: Suite, valid_files: ValidFiles) -> set[Path]:
    """Return the suite's files that the cache does not have as valid."""
    files = {template.about.location.path for template in suite.templates}
    return {path for path in files if not valid_files.has(path, path.read_bytes())}


def _keep(
    suite: Suite,
    unknown: set[Path],
    warnings: list[Problem],
    paths: Sequence[Path],
    valid_files: ValidFiles,
) -> None:
    """Keep in the cache which of the `unknown` files below `paths` are valid without a warning.

    Files with the tag `large` are left out: the memory of the machine decides how they are checked.
    """
    large = {t.about.location.path for t in suite.templates if LARGE_TAG in t.tags}
    for path in unknown - large - {warning.path for warning in warnings}:
        if any(path.is_relative_to(given) for given in paths):
            valid_files.add(path)


def _too_large_and_open(
    suite: Suite, unknown: set[Path], warns: bool
) -> tuple[list[Problem], list[Problem]]:
    """Return problems and warnings of entries in `unknown` files; each case is built once for both.

    Returns:
        A problem for each entry that lacks a tag which its memory needs; and a warning for each
        entry with cases that any output would pass, if `warns` and if there are no problems.
        Entries with the tag `undefined` or `model` get no warnings.
    """
    too_large: dict[CaseTemplate, Problem] = {}
    open_cases: dict[CaseTemplate, list[str]] = {}
    plan = [each for each in suite.plan() if each.template.about.location.path in unknown]
    cache = figure_cache(len(plan))
    for planned in plan:
        template = planned.template
        needs_no_tag = not {LARGE_TAG, MODEL_TAG}.isdisjoint(template.tags)
        may_be_open = (
            warns
            and not too_large
            and {UNDEFINED_TAG, MODEL_TAG}.isdisjoint(template.tags)
            and may_judge_nothing(entry_of(template.operator_name))
        )
        if (needs_no_tag or template in too_large) and not may_be_open:
            continue
        case = built_case(planned)
        if not (needs_no_tag or isinstance(case.expectation, ExpectedRejection)):
            needed = judged_bytes(case)
            if needed > MUCH and template not in too_large:
                too_large[template] = _size_problem(planned, needed)
                continue
        if may_be_open and not (cache and cache.has_judged(case)) and judges_nothing(case):
            open_cases.setdefault(template, []).append(planned.identifier)
    if too_large:
        return list(too_large.values()), []
    return [], [_open_warning(template, names) for template, names in open_cases.items()]


def _size_problem(planned: PlannedCase, needed: int) -> Problem:
    return _problem(
        planned.template,
        f"{planned.identifier} may take {needed >> 20:,} MiB of memory; "
        f"more than {MUCH >> 20} need a tag",
        f"make its tensors smaller, or add the tag {LARGE_TAG}",
    )


def _open_warning(template: CaseTemplate, names: Sequence[str]) -> Problem:
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return _problem(
        template,
        f"{names[0]}{more}: the rules permit any value of every element, so nothing is checked",
        f"change the data, or add the tag {UNDEFINED_TAG} if the documentation leaves "
        "the results undefined",
    )


def _plain(problem: Problem) -> dict[str, Any]:
    return {
        "path": str(problem.path),
        "line": problem.line or None,
        "column": problem.column or None,
        "message": problem.message,
        "hint": problem.hint,
    }


def _problem(template: CaseTemplate, message: str, hint: str) -> Problem:
    location = template.about.location
    return line_problem(location.path, location.line, message, hint)
