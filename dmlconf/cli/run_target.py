"""One run on one target: its header, its log, its reports and its exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.loader import Suite, valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.cli.console import say, warn
from dmlconf.cli.exit_codes import ExitCode
from dmlconf.cli.large_runs import shown_elsewhere
from dmlconf.cli.logged_run import default_log, is_in_memory
from dmlconf.cli.outcome import Demands, run_exit_code
from dmlconf.cli.progress import progress
from dmlconf.cli.reporting import Report, show
from dmlconf.cli.resumption import earlier_run, require_same_run
from dmlconf.cli.run_log import LoggedRun
from dmlconf.cli.selection import suite_paths
from dmlconf.cli.targets import Target, labelled
from dmlconf.cli.timing_options import slower_complaints, timed_again
from dmlconf.fleet.shards import Selected
from dmlconf.runner.against import Expectations, expectations
from dmlconf.runner.log import RunLog, read_log
from dmlconf.runner.packed import MANY
from dmlconf.runner.repetition import repeated
from dmlconf.runner.session import OpenBackend, make_header
from dmlconf.runner.verdict import Status
from dmlconf.runner.waivers import Waiver, effective_waivers

__all__ = ["TargetRun"]

_MOST_DUMPED: Final = 100
"""Each has several files; with more failures than this, groups are what to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRun:
    """What to run on each target, and how to report it.

    Attributes:
        paths: of the suite, as given.
        suite: the suite that the plan was selected from.
        plan: the whole plan.
        chosen: the cases of the plan that this run takes.
        against: gives the expected values that cases do not state, as given.
        options: the given options, as written to the log.
        waivers: failures that are accepted.
        repeat: how often to run each case.
        shuffle: the seed of a random order; None keeps that of the plan.
        retries: how often to run a failing case again.
        most_failures: the number of failing cases after which to stop; None for never.
        demands: what the run must meet.
        base_run: an earlier run whose times are compared; None for none.
        fail_slower: how many times as long an operator must take to fail the run; None for never.
        log_file: where the log goes; None for the folder of logs.
        resume: whether to continue the run in the log.
        reports: formats and files.
        dump_folder: where failing cases are written; None for nowhere.
        details: how much the terminal shows, as for `show`.
    """

    paths: Sequence[Path]
    suite: Suite
    plan: Sequence[PlannedCase]
    chosen: Selected
    against: str
    options: dict[str, Any]
    waivers: tuple[Waiver, ...]
    repeat: int
    shuffle: int | None
    retries: int
    most_failures: int | None
    demands: Demands
    base_run: RunLog | None
    fail_slower: float | None
    log_file: Path | None
    resume: bool
    reports: Sequence[Report]
    dump_folder: Path | None
    details: Mapping[str, Any]

    def run(self, target: Target) -> ExitCode:
        """Run the cases on a target, close it, and report.

        Raises:
            click.UsageError: the log belongs to another run, or cannot be opened.
            LogWriteError: the log can no longer be written.
        """
        backend, quiet = target.backend, bool(self.details["quiet"])
        log_file = labelled(self.log_file, target.label)
        try:
            earlier = earlier_run(log_file if self.resume else None)
            expected = expectations(
                self.against, backend, self.suite, self.plan, suite_paths(self.paths)
            )
            warn(expected.note)
            header = make_header(
                self.suite, map(str, self.paths), len(self.chosen.cases), backend, expected.name,
                self._options_on(target), digest=self.chosen.digest, shard=self.chosen.record,
                workers=target.workers,
            )  # fmt: skip
            log = log_file or default_log()
            if earlier is not None:
                require_same_run(log, earlier, header, quiet=quiet)
            logged = LoggedRun(
                log, header, self.chosen.cases, self.chosen.places, earlier, self.retries,
                self.most_failures,
            )  # fmt: skip
            judge_once = target.judge(
                expected, effective_waivers(self.waivers, backend.environment)
            )
            judge = partial(
                repeated,
                judge=judge_once,
                times=self.repeat,
                seed=self.shuffle,
                on_repetition=partial(_announce_repetition, of=self.repeat, quiet=quiet),
            )
            total, color = len(logged.left), str(self.details["color"])
            with progress(total, quiet=quiet, color=color) as advance:
                footer = logged.run(judge, advance)
            compared = self.dump_folder is not None or self.base_run is not None
            large = len(self.chosen.cases) > MANY and not compared
            written = None if large else read_log(log, own=True)
            if self.dump_folder is not None and written is not None:
                _dump(self.dump_folder, written, self.chosen.cases, backend, expected)
            timed = written
            if self.base_run is not None and written is not None:
                timed = timed_again(self.base_run, written, self.chosen.cases, judge_once)
        finally:
            backend.close()
        if self.suite.challenge is None:  # Recordings are of the data in the files.
            for recording in expected.recordings:
                warn(recording.stale_note(self.paths))
        reports = [(name, labelled(file, target.label)) for name, file in self.reports]
        try:
            if written is None:
                shown = shown_elsewhere(log, reports, self.details)
            else:
                shown = show(written, reports, **self.details)
        except KeyboardInterrupt:
            say(f"interrupted: reports may be missing; dmlconf report {log} writes them")
            shown = False
        if written is not None and footer.summary[Status.UNCHECKED] and not quiet:
            _give_hints(written, self.plan)
        slower: list[str] = []
        if self.base_run is not None and timed is not None:
            lines, slower = slower_complaints(self.base_run, timed, self.fail_slower)
            say("\n".join(lines))
        verdict_code, complaints = run_exit_code(footer, self.demands, slower)
        for complaint in complaints:
            say(f"Error: {complaint}")
        code = verdict_code or (ExitCode.SUCCESS if shown else ExitCode.OUTPUT)
        if (code or target.label) and not is_in_memory(log):
            say(f"The run log is {log}")
        return code

    def _options_on(self, target: Target) -> dict[str, Any]:
        """Return the given options, with those that the target decided."""
        under = list(target.circumstances)
        unfused = {"compare_unfused": True} if target.compare_unfused else {}
        return self.options | unfused | ({"circumstances": under} if under else {})


def _dump(
    folder: Path,
    log: RunLog,
    plan: Sequence[PlannedCase],
    backend: OpenBackend,
    expected: Expectations,
) -> None:
    """Write the first failing cases with all that is known of them."""
    from dmlconf.runner.dump import dump_cases  # Few runs need it.

    failing = [verdict for verdict in log.verdicts if verdict.status.fails_run]
    planned = {each.identifier: each for each in plan}
    paths = []
    try:
        for label, variant in (backend.variants or {"": backend}).items():
            names = [
                verdict.case
                for verdict in failing[:_MOST_DUMPED]
                if not label or verdict.variants[label].status.fails_run
            ]
            cases = [valid_case(planned[name]) for name in names]
            paths += dump_cases(folder / label, cases, variant, expected.against)
    except OSError as error:
        say(f"Error: --dump {folder} could not be written: {error.strerror or error}")
        return
    left = len(failing) - _MOST_DUMPED
    more = f"; {left:,} more failed" if left > 0 else ""
    say(f"{len(paths):,} failing case{'s' if len(paths) != 1 else ''} in {folder}{more}")


def _give_hints(log: RunLog, plan: Sequence[PlannedCase]) -> None:
    from dmlconf.cli.hints import hints  # Few runs need it.

    for hint in hints(log, plan):
        say(f"Hint: {hint}")


def _announce_repetition(number: int, *, of: int, quiet: bool) -> None:
    if of > 1 and not quiet:
        say(f"Repetition {number:,} of {of:,}")
