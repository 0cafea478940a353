"""`dmlconf history`: keep runs in a database, and ask since when cases fail, and on what."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from dmlconf.cli.common.command import Command, Group, arguments, option, options
from dmlconf.cli.common.completion import complete_tag
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import TEXT, WholeNumber
from dmlconf.cli.common.path_types import ANY_PATH, EXISTING_FOLDER, FOLDER
from dmlconf.cli.options.named_operators import operator_option
from dmlconf.cli.options.unknown_names import did_you_mean
from dmlconf.cli.output.console import say, warn
from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted

if TYPE_CHECKING:
    from dmlconf.history.database import Database
    from dmlconf.history.questions import Choice, Story
    from dmlconf.history.timeline import Timeline

__all__ = ["command"]

_RUN: Final = re.compile("#?([0-9]{1,7})")
"""A run's number, such as `#12`; eight digits, such as 20261101, are a date."""

_ADDRESS: Final = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")

_Function = TypeVar("_Function", bound=Callable[..., Any])


@click.group(
    "history", cls=Group, short_help="Keep runs in a database and ask since when cases fail."
)
def command() -> None:
    """Keep runs in a database, and ask it since when and on what cases fail.

    The database is a file of SQLite in your data folder unless --database or DMLCONF_HISTORY names
    another one, or a PostgreSQL as postgresql+psycopg://USER@HOST/NAME, which needs
    `pip install '.[history]'`. `dmlconf history add LOG` puts run logs into it.
    """


def _subcommand(name: str, **attributes: Any) -> Callable[[_Function], click.Command]:
    """Return a decorator that adds `history NAME`."""

    def decorate(function: _Function) -> click.Command:
        subcommand: click.Command = click.command(f"history-{name}", cls=Command, **attributes)(
            function
        )
        command.add_command(subcommand, name)
        return subcommand

    return decorate


_database_option = option(
    "--database",
    type=TEXT,
    metavar="FILE|ADDRESS",
    envvar="DMLCONF_HISTORY",
    help="The history; by default a file in your data folder.",
)

_json_option = option("--json", "as_json", is_flag=True, help="Print JSON.")

_choice_options = options(
    operator_option("Only cases of this operator."),
    option(
        "--tag",
        "tags",
        type=TEXT,
        multiple=True,
        metavar="TAG",
        shell_complete=complete_tag,
        help="Only cases with this tag.",
    ),
    option(
        "-k",
        "keywords",
        type=TEXT,
        metavar="EXPRESSION",
        help="Only cases whose identifiers match.",
    ),
    option(
        "--where",
        type=TEXT,
        metavar="CONDITION",
        help="Only cases of the bundled suite whose descs meet this condition.",
    ),
)


@_subcommand("add", short_help="Add run logs.")
@arguments("logs", required=True, type=ANY_PATH)
@_database_option
@option("-q", "--quiet", is_flag=True, help="Say nothing of what was added.")
def _add_logs(logs: tuple[Path, ...], database: str | None, quiet: bool) -> int:
    """Add the runs of LOGS; a run that is there already changes nothing.

    Each log is added as a whole or not at all, and several processes may add at once. A log that
    goes on where an incomplete one ended replaces it.
    """
    from dmlconf.history.adding import add
    from dmlconf.history.database import opened
    from dmlconf.run_log.log import read_log

    first = read_log(logs[0])  # A mistyped name begins no history.
    with opened(database, create=True) as history:
        for at, path in enumerate(logs):
            log = read_log(path) if at else first
            with history.writing() as connection:
                addition = add(connection, log)
            if quiet:
                continue
            if addition.new:
                count = (
                    f"{counted(len(log.verdicts), 'verdict')}, {addition.changes:,} new or changed"
                )
                say(printable(f"{path}: run #{addition.run}, {count}"))
            else:
                say(printable(f"{path}: run #{addition.run} is there already"))
    return ExitCode.SUCCESS


@_subcommand("runs", short_help="List the runs.")
@_database_option
@_json_option
def _list_runs(database: str | None, as_json: bool) -> int:
    """List the runs, the earliest first."""
    from dmlconf.reports.history.answers import aligned, run_data, run_rows

    with _timeline(database) as timeline:
        runs = timeline.runs
    if as_json:
        return _print_json([run_data(each) for each in runs])
    return _print_lines(aligned(run_rows(runs)))


@_subcommand("case", short_help="Show since when a case passes or fails.")
@click.argument("cases", metavar="CASE...", nargs=-1, required=True, type=TEXT)
@_database_option
@_json_option
def _show_cases(cases: tuple[str, ...], database: str | None, as_json: bool) -> int:
    """Show each CASE along each backend and adapter: a line for each change of its verdict.

    CASE is an identifier, a pattern such as 'gather/*', a name without its folder such as
    example-1, or a handle such as k3f9a. Each change comes with what else changed between the two
    runs: the case, the suite, the expected values, dmlconf, its rules, the driver, DirectML or the
    machine. Shards and incomplete runs count for the cases that they ran.
    """
    from dmlconf.cases.identifiers import AmbiguousNameError
    from dmlconf.history.questions import named_cases, stories
    from dmlconf.reports.history.answers import story_data, story_lines

    with _timeline(database) as timeline:
        try:
            chosen, unknown = named_cases(timeline, cases)
        except AmbiguousNameError as error:
            raise click.BadParameter(printable(str(error)), param_hint="CASE") from error
        by_case: dict[str, list[Story]] = {identifier: [] for identifier, _ in chosen.values()}
        for story in stories(timeline, chosen):
            by_case[chosen[story.number][0]].append(story)
        known = [identifier for _, identifier, *_ in timeline.cases()] if unknown else []
    for name in unknown:
        say(printable(f"the history has no case {name}{did_you_mean(name, known)}"))
    if not chosen:
        return ExitCode.NOTHING_SELECTED
    if as_json:
        data = [
            {"case": name, "lines": [story_data(each) for each in own]}
            for name, own in by_case.items()
        ]
        return _print_json(data)
    for name, own in by_case.items():
        click.echo(printable(name))
        for story in own:
            _print_lines(f"  {line}" for line in story_lines(story))
    return ExitCode.SUCCESS


@_subcommand("flaky", short_help="List cases that fail now and then though nothing changed.")
@_choice_options
@_database_option
@_json_option
def _list_flaky(database: str | None, as_json: bool, **choice: Any) -> int:
    """List the cases that changed between failing and not failing though nothing else changed.

    They changed at least twice without a change of the case, the suite, the expected values,
    dmlconf, its rules, the driver, DirectML or the machine. The rate is the share of runs in which
    the case failed.
    """
    from dmlconf.history.questions import flaky
    from dmlconf.reports.history.answers import aligned, flaky_data

    with _timeline(database) as timeline:
        flaky_cases = flaky(timeline, _choice(timeline, choice))
    if as_json:
        return _print_json([flaky_data(each) for each in flaky_cases])
    if not flaky_cases:
        return _print_lines(["no case is flaky"])
    rows = [("rate", "failed", "changes", "case", "on")]
    rows += [
        (
            f"{each.rate:.1%}",
            f"{each.story.failed:,} of {each.story.runs:,}",
            f"{each.changes:,}",
            each.story.transitions[0].case,
            each.story.line.name,
        )
        for each in flaky_cases
    ]
    return _print_lines(aligned(rows))


@_subcommand("regressions", short_help="List cases that began to fail.")
@option(
    "--since",
    metavar="DATE|RUN",
    required=True,
    help="From this date on, such as 2026-11-01, or from this run on, such as '#12'.",
)
@_choice_options
@_database_option
@_json_option
def _list_regressions(since: str, database: str | None, as_json: bool, **choice: Any) -> int:
    """List the cases that began to fail, the latest first, and what changed with each.

    Cases that were mended since then are listed too. A flaky case is listed only for changes that
    came with another change. Dates are in UTC unless they name another time zone.
    """
    from dmlconf.history.questions import regressions
    from dmlconf.reports.history.answers import cause_text, regression_data

    with _timeline(database) as timeline:
        failures, flaky_cases = regressions(
            timeline, _choice(timeline, choice), _start(timeline, since)
        )
    if as_json:
        data = {
            "regressions": [regression_data(each, still) for each, still in failures],
            "flaky_cases": flaky_cases,
        }
        return _print_json(data)
    if not failures:
        _print_lines([f"no case began to fail since {since}"])
    for each, still in failures:
        mended = "" if still else "; it stopped failing later"
        start = f"{each.first.started[:19].replace('T', ' ')}  #{each.first.id}"
        _print_lines([f"{start}  {each.case}: {each.after.text}{mended}"])
        _print_lines([f"    changed with it: {cause_text(each)}"])
    if flaky_cases:
        _print_lines([f"{counted(flaky_cases, 'flaky case')} left out: dmlconf history flaky"])
    return ExitCode.SUCCESS


@_subcommand("new", short_help="Show what the latest run changed.")
@option("--markdown", is_flag=True, help="Print Markdown, as for a comment on a pull request.")
@_database_option
@_json_option
def _show_new(markdown: bool, database: str | None, as_json: bool) -> int:
    """Show which cases began or ceased to fail with the latest run, and what changed with each.

    The latest run is compared with the runs before it on the same backend and adapter. The shards
    of a run count together. Flaky cases are only counted, unless something else changed with them.
    """
    from dmlconf.cases.handles import handles
    from dmlconf.history.overview import news_of
    from dmlconf.reports.history.news import news_data, news_lines, news_markdown

    if markdown and as_json:
        raise click.UsageError("--markdown and --json exclude each other")
    with _timeline(database) as timeline:
        news = next(iter(news_of(timeline)), None)
        names = [each[1] for each in timeline.cases()] if markdown else []
    if as_json:
        return _print_json(None if news is None else news_data(news))
    if news is None:
        return _print_lines(["the history has no runs"])
    if markdown:
        click.echo(news_markdown(news, handles(names)), nl=False)
        return ExitCode.SUCCESS
    return _print_lines(news_lines(news))


@_subcommand("drivers", short_help="Show operators by driver and version.")
@operator_option("Only this operator.")
@option("--all", "every", is_flag=True, help="Also operators without a failing case.")
@_database_option
@_json_option
def _show_drivers(
    operators: tuple[str, ...], every: bool, database: str | None, as_json: bool
) -> int:
    """Show how many cases of each operator fail in the latest whole run of each environment.

    Of an environment without a whole run, the latest run is shown.
    """
    from dmlconf.history.questions import driver_states
    from dmlconf.reports.history.answers import (
        aligned,
        driver_data,
        driver_rows,
        environment_text,
    )

    with _timeline(database) as timeline:
        states = driver_states(timeline, operators)
    if as_json:
        return _print_json(driver_data(states))
    if operators and not states:
        return _print_lines([f"no run has a case of {', '.join(operators)}"])
    columns = list({state.environment.id: state for state in states}.values())
    for at, state in enumerate(columns, 1):
        _print_lines([f"[{at}] {environment_text(state.environment)}, run #{state.run.id}"])
    return _print_lines(aligned(driver_rows(states, every=every)))


@_subcommand("site", short_help="Write the history as pages.")
@option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=ANY_PATH,
    metavar="FOLDER",
    help="Where to write them; an earlier site there is replaced.",
)
@option(
    "--address",
    metavar="URL",
    help="Where the pages will be, such as https://example.org/history/, for links in the feed.",
)
@_database_option
def _write_site(folder: Path, address: str | None, database: str | None) -> int:
    """Write the history as pages that need no script, no server and no network.

    index.html shows what the latest run changed, operators by driver and version, and flaky cases.
    Each case that ever failed (at most 5,000), each operator with failures and each driver has a
    page, whose address stays. feed.xml is an Atom feed of regressions.
    """
    from dmlconf.cli.output.site import prepared_folder, write_site
    from dmlconf.history.overview import overview_of
    from dmlconf.reports.history.site import Site

    if address is not None and not _ADDRESS.fullmatch(address):
        message = f"{address!r} is not an address such as https://example.org/history/"
        raise click.BadParameter(printable(message), param_hint="--address")
    prepared_folder(folder)
    with _timeline(database) as timeline:
        overview = overview_of(timeline)
    ending = "" if address is None else address.rstrip("/") + "/"
    count = write_site(folder, Site(overview, ending))
    runs = len(overview.runs)
    return _print_lines([f"{folder / 'index.html'}: {count:,} pages of {counted(runs, 'run')}"])


@_subcommand("serve", short_help="Show the pages in a browser, as the history is now.")
@option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address to listen at; 0.0.0.0 is all of this machine.",
)
@option(
    "--port",
    default=8177,
    show_default=True,
    type=WholeNumber(0, 65535),
    help="The port; 0 takes one that is free.",
)
@_database_option
def _serve_pages(host: str, port: int, database: str | None) -> int:
    """Show the pages of `history site` in a browser, always as the history is now.

    The pages can only be read. The printed address has a token, without which nothing is shown;
    DMLCONF_HISTORY_TOKEN sets the token. By default only this machine can reach the pages. Ctrl-C
    ends the server.
    """
    from dmlconf.cli.server.application import Application
    from dmlconf.cli.server.serving import chosen_token, serve

    token = chosen_token()
    with _opened(database) as history:
        serve(Application(history, token, say), host, port, token)
    return ExitCode.SUCCESS


@_subcommand("prune", short_help="Remove old runs.")
@option("--before", metavar="DATE", help="Remove the runs that started before this date.")
@option(
    "--keep",
    type=WholeNumber(1),
    metavar="N",
    help="Keep the latest N runs of each environment, and remove the others.",
)
@_database_option
def _prune_runs(before: str | None, keep: int | None, database: str | None) -> int:
    """Remove old runs, but never the latest run of an environment.

    The remaining runs give the same answers as before, except about the time before them.
    """
    from dmlconf.history.maintenance import prune

    if before is None and keep is None:
        raise click.UsageError("give --before DATE or --keep N")
    if before is not None and keep is not None:
        raise click.UsageError("--before and --keep exclude each other")
    moment = None if before is None else _date(before, "--before")
    with _opened(database) as history:
        with history.writing() as connection:
            removed = prune(connection, before=moment, keep=keep)
        history.compact()
    return _print_lines([f"removed {counted(removed, 'run')}"])


@_subcommand("merge", short_help="Add the runs of another history.")
@click.argument("other", metavar="FILE|ADDRESS", type=TEXT)
@_database_option
def _merge_history(other: str, database: str | None) -> int:
    """Add all runs of another history; those that are here already change nothing."""
    from dmlconf.history.database import opened
    from dmlconf.history.maintenance import copy_runs

    with opened(other) as source, opened(database, create=True) as target:
        copied = copy_runs(source, target)
    return _print_lines([f"added {counted(copied, 'run')}"])


@_subcommand("export", short_help="Write the history as files of Parquet.")
@click.argument("folder", type=FOLDER)
@_database_option
def _export_history(folder: Path, database: str | None) -> int:
    """Write each table to FOLDER/TABLE.parquet, for pandas, DuckDB and the like.

    Needs `pip install '.[parquet]'`.
    """
    from dmlconf.history.parquet import export_tables

    with _opened(database) as history:
        counts = export_tables(history, folder)
    listed = f"{counted(counts['run'], 'run')}, {counted(counts['change'], 'verdict')}"
    return _print_lines([f"{folder}: {len(counts)} tables, {listed}"])


@_subcommand("import", short_help="Add the runs of files of Parquet.")
@click.argument("folder", type=EXISTING_FOLDER)
@_database_option
def _import_history(folder: Path, database: str | None) -> int:
    """Add the runs that `history export` wrote to FOLDER; those that are here change nothing.

    Needs `pip install '.[parquet]'`.
    """
    from dmlconf.history.database import opened
    from dmlconf.history.parquet import import_tables

    with opened(database, create=True) as history:
        copied = import_tables(folder, history)
    return _print_lines([f"added {counted(copied, 'run')}"])


def _choice(timeline: Timeline, options: dict[str, Any]) -> Choice:
    """Return what options such as `--tag` choose; warn of tags that no case of the history has."""
    from dmlconf.cases.selecting.keywords import KeywordError
    from dmlconf.history.questions import Choice

    where = None
    if options["where"] is not None:
        from dmlconf.cli.options.selection import load_chosen

        selection = {
            "keywords": None,
            "operators": options["operators"],
            "tags": (),
            "without_tags": (),
            "where": options["where"],
            "feature_level": None,
            "quick": False,
        }
        _, planned = load_chosen((), **selection)
        where = frozenset(each.identifier for each in planned)
    if options["tags"]:
        known = {tag for *_, tags in timeline.cases() for tag in json.loads(tags)}
        for tag in dict.fromkeys(options["tags"]):
            if tag not in known:
                warn(f"--tag: no case has the tag {tag}{did_you_mean(tag, known)}")
    choice = Choice(
        frozenset(options["operators"]),
        frozenset(options["tags"]),
        options["keywords"],
        where,
    )
    try:
        choice.matcher()
    except KeywordError as error:
        raise click.BadParameter(printable(str(error)), param_hint="-k") from error
    return choice


def _start(timeline: Timeline, since: str) -> str:
    """Return the start of a run such as `#12`, or a date, in the form of `RunRow.started`."""
    named = _RUN.fullmatch(since)
    if named:
        number = int(named[1])
        for run in timeline.runs:
            if run.id == number:
                return run.started
        raise click.BadParameter(f"there is no run #{number}", param_hint="--since")
    return _date(since, "--since", " or a run such as '#12'")


def _date(text: str, option_name: str, otherwise: str = "") -> str:
    from dmlconf.history.timestamps import utc_text

    try:
        return utc_text(text)
    except ValueError as error:
        message = f"{text!r} is not a date such as 2026-11-01 or 2026-11-01T08:30{otherwise}"
        raise click.BadParameter(printable(message), param_hint=option_name) from error


@contextmanager
def _opened(database: str | None) -> Iterator[Database]:
    from dmlconf.history.database import opened

    with opened(database) as history:
        yield history


@contextmanager
def _timeline(database: str | None) -> Iterator[Timeline]:
    from dmlconf.history.timeline import Timeline

    with _opened(database) as history, history.reading() as connection:
        yield Timeline(connection)


def _print_json(data: object) -> int:
    click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    return ExitCode.SUCCESS


def _print_lines(lines: Iterator[str] | list[str]) -> int:
    for line in lines:
        click.echo(printable(line))
    return ExitCode.SUCCESS
