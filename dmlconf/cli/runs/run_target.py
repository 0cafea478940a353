"""Execute one run on one target: write its log, show its reports, and return its exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.circumstances import ALL
from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.logs import opened_log, require_unchanged
from dmlconf.cli.common.started import what_to_type
from dmlconf.cli.options.reporting import files_of, show
from dmlconf.cli.options.resumption import earlier_run, require_same_run
from dmlconf.cli.options.run_exit_code import Demands, run_exit_code
from dmlconf.cli.options.timing import slower_complaints, timed_again
from dmlconf.cli.output.console import say, warn
from dmlconf.cli.output.preflight import prepare_files
from dmlconf.cli.output.progress import advancing, progress
from dmlconf.cli.runs.announcement import announcement, graphs_note
from dmlconf.cli.runs.history import add_to_history
from dmlconf.cli.runs.logged_run import default_log, is_in_memory
from dmlconf.documents.wording import counted
from dmlconf.engine.consumers import Consumer, LogKeeper, logging_to, run_through
from dmlconf.engine.core import Engine
from dmlconf.engine.events import Event, Finished, Repeated
from dmlconf.engine.run import Run
from dmlconf.engine.shards import Selected
from dmlconf.engine.target import Target
from dmlconf.judging.figure_cache import FigureCache
from dmlconf.reports.formats import Report
from dmlconf.run_log.log import Footer, LogWriter, RunLog, read_log
from dmlconf.verdicts.verdict import Status

__all__ = ["Presentation", "labelled", "run_and_report"]

_MOST_UNSAVED: Final = 12288
"""When this many new records of the figure cache are in memory, they are written to its folder."""

LARGEST_HINTED_PLAN: Final = 100_000
"""Plans of more cases get no hints on unchecked cases: all cases would have to stay in memory."""

_MOST_DUMPED: Final = 100
"""The most failing cases that `--dump` writes, with several files for each case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """What to write, show and demand of a run.

    Attributes:
        log_file: the log, to whose name `labelled` adds the target's label; None for `default_log`.
        resume: whether to continue the run in that log.
        reports: the reports to write; the names of their files get the label, too.
        dump_folder: where failing cases are written; None for nowhere.
        base_run: an earlier run whose times are compared; None for none.
        fail_slower: how many times as long an operator must take to fail the run; None for never.
        details: the other arguments of `show`, which say how much the terminal shows.
        history: whether the run is added to the history.
    """

    log_file: Path | None
    resume: bool
    reports: Sequence[Report[RunLog]]
    dump_folder: Path | None
    demands: Demands
    base_run: RunLog | None
    fail_slower: float | None
    details: Mapping[str, Any]
    history: bool = False

    @property
    def quiet(self) -> bool:
        """Whether the terminal shows only failures and the last line."""
        return bool(self.details["quiet"])


@dataclass(frozen=True, slots=True)
class _Ended:
    """A run that has ended.

    Attributes:
        keeper: has the log in memory, unless the run was resumed.
        slower_lines: lines about operators that take longer than in an earlier run.
        slower: complaints about operators whose slowdown fails the run.
    """

    log: Path
    footer: Footer
    keeper: LogKeeper
    slower_lines: tuple[str, ...] = ()
    slower: tuple[str, ...] = ()


def run_and_report(runs: list[Run], target: Target, shown: Presentation) -> ExitCode:
    """Run the cases on a target, close the target, report, and return the exit code.

    Args:
        runs: a list of one run, which is taken out to free its plan before the reports.

    Raises:
        click.UsageError: the log belongs to another run, or cannot be opened.
        InvalidLogError: the log to resume cannot be continued.
        LogWriteError: the log cannot be written, or something else changed it.
        BackendError: a recording or the backend cannot be used.
        InvalidFilesError: a case of a matrix cannot be built.
        KeyboardInterrupt: an interrupt came before the first case; a later one only ends the run
            early.
    """
    ends: list[_Ended] = []
    run = runs.pop()
    plan = _cases_for_hints(run, shown)
    try:
        _execute(run, target, shown, ends)
        del run  # A large plan and a large log do not fit into memory side by side.
        could_write = _report(ends[-1], plan, target.label, shown)
    except KeyboardInterrupt:
        if not ends:
            raise
        # The log has every verdict, so the verdicts decide the exit code.
        say(f"interrupted: reports may be missing; dmlconf report {ends[-1].log} writes them")
        could_write = False
    ended = ends[-1]
    if shown.history and not add_to_history(ended.log):
        could_write = False
    if shown.base_run is not None:
        say("\n".join(ended.slower_lines))
    verdict_code, complaints = run_exit_code(ended.footer, shown.demands, ended.slower)
    for complaint in complaints:
        say(f"Error: {complaint}")
    code = verdict_code or (ExitCode.SUCCESS if could_write else ExitCode.OUTPUT)
    if (code or target.label) and not is_in_memory(ended.log):
        say(f"The run log is {ended.log}")
    typed = what_to_type()
    if code == ExitCode.FAILED and typed is not None and not shown.quiet:
        say(f"In these commands, type for dmlconf: {typed}")
    return code


def _cases_for_hints(run: Run, shown: Presentation) -> Sequence[PlannedCase]:
    """Return the cases that hints may be about."""
    from dmlconf.cli.output.hints import outside_the_bundled_suite

    if shown.quiet or len(run.plan) > LARGEST_HINTED_PLAN:
        return ()
    return outside_the_bundled_suite(run.plan)


def _report(ended: _Ended, plan: Sequence[PlannedCase], label: str, shown: Presentation) -> bool:
    written = ended.keeper.take_log() or read_log(ended.log, own=True)
    reports = [replace(each, file=labelled(each.file, label)) for each in shown.reports]
    could_write = show(written, reports, **shown.details)
    if ended.footer.summary[Status.UNCHECKED] and not shown.quiet:
        _give_hints(written, plan)
    return could_write


def _execute(run: Run, target: Target, shown: Presentation, ends: list[_Ended]) -> None:
    """Run the cases, write the log, and do what else needs the backend, such as `--dump`.

    The end of the run is appended to `ends`; if times are compared, a second entry has them, too.
    """
    log_file = labelled(shown.log_file, target.label)
    try:
        if target.label:
            _prepare_labelled(log_file, target.label, shown)
        earlier = earlier_run(log_file if shown.resume else None)
    except BaseException:
        target.backend.close()
        raise
    with Engine(replace(run, earlier=earlier), target) as engine:
        warn(engine.expected.note)
        if ALL in run.how.circumstances and not target.circumstances:
            warn(f"{run.how.backend} has no circumstances: --circumstances all has no effect")
        log = log_file or default_log()
        if earlier is not None:
            require_same_run(log, earlier, engine.header, quiet=shown.quiet)
        line = announcement(engine.header, engine.total, run.how.limits.jobs)
        for each in (line, graphs_note(engine.header, run.plan)):
            if each is not None and not shown.quiet:
                say(each)
        color = str(shown.details["color"])
        with progress(engine.total, quiet=shown.quiet, color=color) as advance:
            keeper = LogKeeper()
            consumers: list[Consumer] = [
                _announcing(shown.quiet),
                advancing(advance),
                keeper,
                _noting_end(log, ends, keeper),
            ]
            if run.how.cache is not None:
                consumers.append(_saving(run.how.cache))
            if earlier is not None and earlier.complete:
                run_through(engine, lambda event: None, consumers)
            else:
                with opened_log(log, earlier, resume=shown.resume) as stream:
                    writer, begin = LogWriter(stream), stream.tell()
                    failing = earlier is not None and earlier.failures > 0
                    keep = logging_to(writer, failing=failing)
                    footer = run_through(engine, keep, consumers)
                    require_unchanged(log, stream, begin, writer.digest, footer)
        if shown.dump_folder is not None:
            _dump(shown.dump_folder, read_log(log, own=True), engine)
        if shown.base_run is not None:
            ends.append(_timed(ends[-1], shown.base_run, engine, shown.fail_slower))
        if run.suite.challenge is None:  # With a challenge, stale recordings are expected.
            for recording in engine.expected.recordings:
                warn(recording.stale_note(list(map(Path, run.paths))))


def _prepare_labelled(log_file: Path | None, label: str, shown: Presentation) -> None:
    """Check the files with the target's label in their names, which were not known before."""
    reports = [replace(report, file=labelled(report.file, label)) for report in shown.reports]
    logs = [(f"--log {log_file}", log_file)] if log_file is not None else []
    prepare_files([*logs, *files_of(reports)], log=log_file, resumed=shown.resume)


def _noting_end(log: Path, ends: list[_Ended], keeper: LogKeeper) -> Consumer:
    def consume(event: Event) -> None:
        if isinstance(event, Finished):
            ends.append(_Ended(log, event.footer, keeper))

    return consume


def _saving(cache: FigureCache) -> Consumer:
    def consume(event: Event) -> None:
        if isinstance(event, Finished):
            cache.close()
        elif len(cache.unsaved) >= _MOST_UNSAVED:
            cache.save()

    return consume


def _announcing(quiet: bool) -> Consumer:
    def consume(event: Event) -> None:
        if isinstance(event, Repeated) and not quiet:
            say(f"Repetition {event.repetition:,} of {event.of:,}")

    return consume


def _timed(ended: _Ended, base: RunLog, engine: Engine, fail_slower: float | None) -> _Ended:
    timed = timed_again(base, read_log(ended.log, own=True), _cases(engine), engine.judge)
    lines, slower = slower_complaints(base, timed, fail_slower)
    return replace(ended, slower_lines=tuple(lines), slower=tuple(slower))


def _cases(engine: Engine) -> Sequence[PlannedCase]:
    chosen = engine.run.chosen
    return chosen.cases if isinstance(chosen, Selected) else ()


def _dump(folder: Path, log: RunLog, engine: Engine) -> None:
    from dmlconf.diagnosis.dump import dump_cases

    failing = [verdict for verdict in log.verdicts if verdict.status.fails_run]
    planned = {each.identifier: each for each in _cases(engine)}
    dumped: set[str] = set()
    try:
        for label, variant in (engine.backend.variants or {"": engine.backend}).items():
            names = [
                verdict.case
                for verdict in failing[:_MOST_DUMPED]
                if not label or verdict.judgement.variants[label].status.fails_run
            ]
            cases = [valid_case(planned[name]) for name in names]
            dump_cases(folder / label, cases, variant, engine.expected.against)
            dumped.update(names)
    except OSError as error:
        say(f"Error: --dump {folder} could not be written: {error.strerror or error}")
        return
    left = len(failing) - _MOST_DUMPED
    more = f"; {left:,} more failed" if left > 0 else ""
    say(f"{counted(len(dumped), 'failing case')} in {folder}{more}")


def _give_hints(log: RunLog, plan: Sequence[PlannedCase]) -> None:
    from dmlconf.cli.output.hints import hints

    for hint in hints(log, plan):
        say(f"Hint: {hint}")


def labelled(path: Path | None, label: str) -> Path | None:
    """Return a path, if given, with a label after its stem: `run-nvidia.jsonl` for `run.jsonl`."""
    if path is None or not label:
        return path
    return path.with_name(f"{path.stem}-{label}{path.suffix}")
