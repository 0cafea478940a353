"""`dmlconf validate`: check case files and the catalogue without running anything."""

from __future__ import annotations

from pathlib import Path

import click

from dmlconf.catalogue.lint import lint_catalogue
from dmlconf.catalogue.loader import operator_files
from dmlconf.cli.exit_codes import ExitCode
from dmlconf.cli.options import load, paths_argument
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.runner.known_faults import lint_known_faults

__all__ = ["command"]


@click.command("validate")
@paths_argument
def command(paths: tuple[Path, ...]) -> int:
    """Check the case files under PATHS, every case of every matrix, the catalogue and known faults.

    All problems are shown at once, each with its place.
    """
    problems = lint_catalogue() + lint_known_faults()
    count = cases = 0
    try:
        suite = load(paths, every_case=True)
        count = len({template.about.location.path for template in suite.templates})
        cases = sum(1 for _ in suite.plan())
    except InvalidFilesError as error:
        problems += error.problems
    if problems:
        raise InvalidFilesError(problems)
    files = f"{count} case file{'s' if count != 1 else ''}"
    inside = f"{cases:,} case{'s' if cases != 1 else ''}"
    click.echo(f"{files} with {inside} and {len(operator_files())} operators are valid")
    return ExitCode.SUCCESS
