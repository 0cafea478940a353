"""Runs are compared case by case; reports and the exit code say what changed.

The tested code is in `dmlconf/comparison/compare.py`, `dmlconf/reports/comparisons/changes.py`,
`dmlconf/reports/comparisons/html.py`, `dmlconf/reports/comparisons/scoreboard.py`,
`dmlconf/cli/commands/results/compare.py` and `dmlconf/cli/runs/run_sources.py`.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.comparison.compare import Change, compare
from dmlconf.documents.schema import bundled_schema, validator
from dmlconf.reports.comparisons.changes import (
    closing_sentence,
    render_json,
    render_markdown,
    suite_note,
)
from dmlconf.reports.comparisons.html import render_html
from dmlconf.reports.comparisons.scoreboard import scoreboard
from dmlconf.reports.formats import SCOREBOARD_FORMATS
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.verdict import (
    Execution,
    Identity,
    Judgement,
    Reason,
    ReasonKind,
    Status,
    Verdict,
)
from tests.certification.suite import BACKEND, certify, write_suite
from tests.cli.process import TILE, dmlconf_here, write
from tests.reports import logs


def verdict(
    case: str,
    status: Status,
    *,
    kind: ReasonKind = ReasonKind.WRONG_VALUES,
    margin: float = 0.5,
    digest: str = "0" * 16,
) -> Verdict:
    """Return the verdict of a case with one output; `margin` is the share of the limit it uses."""
    reason = None if status is Status.PASSED else Reason(kind, str(kind))
    figures = {"OutputTensor": Figures(1, 0, 1.0, "ulp", 2.0, margin)}
    digests = {"OutputTensor": digest}
    return Verdict(
        Identity(case, case.partition("/")[0].upper(), ("matrix",)),
        Judgement(status, None, reason, figures),
        Execution(output_digests=digests),
    )


def run(*verdicts: Verdict, **environment: str) -> RunLog:
    log = logs.plain()
    header = replace(
        log.header,
        selected=len(verdicts),
        environment={**log.header.environment, **environment},
    )
    return RunLog(header, verdicts, log.footer)


PASSED, FAILED = Status.PASSED, Status.FAILED
CASE = "gather/a"


@pytest.mark.parametrize(
    ("base", "new", "change"),
    [
        (verdict(CASE, PASSED), verdict(CASE, FAILED), Change.NEW_FAILURE),
        (verdict(CASE, Status.UNSUPPORTED), verdict(CASE, FAILED), Change.NEW_FAILURE),
        (None, verdict(CASE, FAILED), Change.NEW_FAILURE),
        (verdict(CASE, Status.NOT_RUN), verdict(CASE, Status.BROKEN), Change.NEW_FAILURE),
        (verdict(CASE, FAILED), verdict(CASE, FAILED), Change.STILL_FAILS),
        (verdict(CASE, FAILED), verdict(CASE, Status.BROKEN), Change.FAILS_OTHERWISE),
        (
            verdict(CASE, FAILED),
            verdict(CASE, FAILED, kind=ReasonKind.WRONG_SIZES),
            Change.FAILS_OTHERWISE,
        ),
        (verdict(CASE, FAILED), verdict(CASE, PASSED), Change.FIXED),
        (verdict(CASE, FAILED), verdict(CASE, Status.UNSUPPORTED), Change.STATUS),
        (verdict(CASE, PASSED), verdict(CASE, Status.UNCHECKED), Change.STATUS),
        # The margin grows from 0.5; the threshold is a growth of 0.1.
        (verdict(CASE, PASSED), verdict(CASE, PASSED, margin=0.61), Change.DRIFTED),
        (verdict(CASE, PASSED, margin=0.61), verdict(CASE, PASSED), Change.SAME),
        (verdict(CASE, PASSED), verdict(CASE, PASSED, digest="1" * 16), Change.BITS),
        (verdict(CASE, PASSED), None, Change.GONE),
        (verdict(CASE, PASSED), verdict(CASE, Status.NOT_RUN), Change.GONE),
        (verdict(CASE, Status.NOT_RUN), None, Change.GONE),
        (verdict(CASE, Status.NOT_RUN), verdict(CASE, Status.NOT_RUN), Change.SAME),
        (verdict(CASE, Status.NOT_RUN), verdict(CASE, PASSED), Change.NEW),
        (None, verdict(CASE, PASSED), Change.NEW),
        (verdict(CASE, PASSED), verdict(CASE, PASSED), Change.SAME),
    ],
)
def test_the_change_of_each_case_is_named(
    base: Verdict | None, new: Verdict | None, change: Change
) -> None:
    [entry] = compare(run(*filter(None, (base,))), run(*filter(None, (new,)))).changes
    assert entry.change is change


@pytest.mark.parametrize(
    ("base", "new", "detail"),
    [
        (None, verdict(CASE, PASSED), "passed"),
        (verdict(CASE, FAILED), None, "failed"),
        (verdict(CASE, Status.NOT_RUN), verdict(CASE, PASSED), "not run, now passed"),
        (verdict(CASE, PASSED), verdict(CASE, FAILED), "passed, now failed: wrong values"),
        (verdict(CASE, FAILED), verdict(CASE, FAILED), "wrong values"),
        (verdict(CASE, FAILED), verdict(CASE, PASSED), "was failed: wrong values"),
        (
            verdict(CASE, PASSED, margin=0.3),
            verdict(CASE, PASSED, margin=0.8),
            "30% of the limit, now 80%",
        ),
        (verdict(CASE, PASSED), verdict(CASE, PASSED, digest="1" * 16), "in OutputTensor"),
    ],
)
def test_detail_of_a_change_names_before_and_after(
    base: Verdict | None, new: Verdict | None, detail: str
) -> None:
    [entry] = compare(run(*filter(None, (base,))), run(*filter(None, (new,)))).changes
    assert entry.detail == detail


def test_margin_drifts_if_it_grows_beyond_the_threshold() -> None:
    base, new = run(verdict(CASE, PASSED, margin=0.5)), run(verdict(CASE, PASSED, margin=0.61))
    assert compare(base, new, 0.2).changes[0].change is Change.SAME
    assert compare(base, new, 0.1).changes[0].change is Change.DRIFTED


def test_a_comparison_lists_differences_of_the_environment() -> None:
    comparison = compare(run(driver="31.1"), run(driver="31.2"))
    [difference] = comparison.differences
    assert (difference.name, difference.base, difference.new) == ("driver", "31.1", "31.2")


def test_log_of_new_failures_leaves_out_earlier_failures() -> None:
    base = run(verdict("gather/a", FAILED), verdict("gather/b", PASSED))
    new = run(verdict("gather/a", FAILED), verdict("gather/b", FAILED), verdict("gather/c", PASSED))
    comparison = compare(base, new)
    assert [each.case for each in comparison.new_failures.verdicts] == ["gather/b", "gather/c"]


def test_the_last_sentence_counts_one_new_failure_and_several() -> None:
    cases = ("gather/a", "gather/b")
    base = run(*(verdict(case, PASSED) for case in cases))
    one = run(verdict("gather/a", FAILED), verdict("gather/b", PASSED))
    both = run(*(verdict(case, FAILED) for case in cases))
    assert closing_sentence(compare(base, one)).startswith("FAILED: 1 new failure; ")
    assert closing_sentence(compare(base, both)).startswith("FAILED: 2 new failures; ")


def test_words_for_changes_agree_with_the_number_of_cases() -> None:
    assert [Change.STILL_FAILS.counted(cases) for cases in (1, 2)] == ["still fails", "still fail"]
    assert [Change.FIXED.counted(cases) for cases in (1, 2)] == ["fixed", "fixed"]


def test_runs_without_a_case_in_common_do_not_pass() -> None:
    comparison = compare(run(verdict("gather/a", PASSED)), run(verdict("tile/b", PASSED)))
    assert closing_sentence(comparison).startswith("NOTHING TO COMPARE")


def test_each_report_says_which_run_ended_early() -> None:
    whole = run(verdict(CASE, PASSED), verdict("tile/b", PASSED))
    early = replace(run(verdict(CASE, PASSED)), footer=None)
    comparison = compare(whole, early)
    assert closing_sentence(comparison).endswith("1 case in both runs; the new run ended early")
    assert closing_sentence(compare(early, whole)).endswith("; the base ended early")
    assert "ended early" not in closing_sentence(compare(whole, whole))
    names = ("a", "b")
    for text in (render_html([(comparison, names)]), render_markdown([(comparison, names)])):
        assert "the new run ended early" in text
    (data,) = json.loads(render_json([(comparison, names)]))["comparisons"]
    assert (data["base_complete"], data["new_complete"]) == (True, False)


def test_a_new_run_that_is_incomplete_does_not_pass() -> None:
    whole = run(verdict(CASE, PASSED), verdict("tile/b", PASSED))
    early = replace(run(verdict(CASE, PASSED)), footer=None)
    assert closing_sentence(compare(whole, early)).startswith("INCOMPLETE: no new failure; ")
    assert closing_sentence(compare(early, whole)).startswith("PASSED: ")
    worse = replace(run(verdict(CASE, FAILED)), footer=None)
    assert closing_sentence(compare(whole, worse)).startswith("FAILED: 1 new failure; ")
    shards = replace(early.header, merged_shards={"count": 2, "numbers": [1]})
    merged = compare(whole, replace(early, header=shards))
    assert closing_sentence(merged).endswith("; of the new run, shard 2/2 is missing")
    all_present = replace(early.header, merged_shards={"count": 1, "numbers": [1]})
    merged = compare(whole, replace(early, header=all_present))
    assert closing_sentence(merged).endswith("; the new run ended early")


def test_the_json_report_fits_its_schema_and_counts_new_failures() -> None:
    base = run(verdict(CASE, PASSED), verdict("tile/b", FAILED))
    new = run(verdict(CASE, FAILED), verdict("tile/b", PASSED), driver="2")
    data = json.loads(render_json([(compare(base, new), ("a", "b"))]))
    assert not list(validator(bundled_schema("comparison")).iter_errors(data))
    assert data["comparisons"][0]["summary"]["fails newly"] == 1
    assert data["comparisons"][0]["shared_properties"]


def test_the_json_report_does_not_list_unchanged_cases() -> None:
    same = verdict("tile/b", PASSED)
    comparison = compare(run(verdict(CASE, PASSED), same), run(verdict(CASE, FAILED), same))
    (data,) = json.loads(render_json([(comparison, ("a", "b"))]))["comparisons"]
    assert [each["case"] for each in data["cases"]] == [CASE]


def test_a_note_says_that_runs_are_of_different_suites() -> None:
    base = run(verdict(CASE, PASSED))
    new = replace(base, header=replace(base.header, suite_digest="1" * 64))
    note = suite_note(compare(base, new))
    assert note is not None
    assert note.startswith("the runs are of different suites: 1 case in both, 0 only in ")
    assert suite_note(compare(base, base)) is None


def test_hostile_names_are_shown_as_text_in_html_and_markdown() -> None:
    name = "gather/<script>alert(1)</script>|`\x1b[31m"
    comparison = compare(run(verdict(name, PASSED)), run(verdict(name, FAILED)))
    page = render_html([(comparison, ("<a>", "b"))])
    assert page.count("<script>") == 1  # The page's own script.
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    for text in (page, render_markdown([(comparison, ("<a>", "b"))])):
        assert "\x1b" not in text


def test_unchanged_failures_are_named_in_a_heading() -> None:
    comparison = compare(run(verdict(CASE, FAILED)), run(verdict(CASE, FAILED)))
    page = render_html([(comparison, ("base", "new"))])
    assert "<h2>Operators with new, fixed or unchanged failures</h2>" in page


def test_scoreboard_of_hostile_names_is_printable() -> None:
    board = scoreboard([logs.hostile()] * 2, [f"a{logs.NASTY}", "b"])
    page = SCOREBOARD_FORMATS["html"].text(board)
    assert all(line.isprintable() for line in page.split("\n"))
    page.encode()


def test_compare_prints_differences_of_the_environment_unless_quiet(tmp_path: Path) -> None:
    base, new = "base.jsonl", "new.jsonl"
    for name, driver in ((base, "31.1"), (new, "31.2")):
        environment = {**logs.HEADER.environment, "driver": driver}
        logs.write(tmp_path / name, logs.run_log(logs.PASSED, environment=environment))
    usual = dmlconf_here(tmp_path, "compare", base, new).stdout
    row = re.compile(r"^driver +31\.1 +31\.2 *$", re.MULTILINE)
    assert row.search(usual)
    quiet = dmlconf_here(tmp_path, "compare", base, new, "--quiet").stdout
    assert quiet.startswith("PASSED: ")
    assert not row.search(quiet)
    alike = dmlconf_here(tmp_path, "compare", base, base).stdout
    assert "the same environment, suite and options" in alike
    assert "the same environment" not in usual


def test_each_result_of_compare_has_its_own_exit_code(tmp_path: Path) -> None:
    write(tmp_path, TILE, "tile.yaml")
    dmlconf_here(tmp_path, "run", "tile.yaml", "--log", "right.jsonl")
    dmlconf_here(tmp_path, "run", "tile.yaml", "-b", "faulty:zeros", "--log", "wrong.jsonl")
    worse = dmlconf_here(tmp_path, "compare", "right.jsonl", "wrong.jsonl")
    assert (worse.returncode, "FAILED: 1 new failure;" in worse.stdout) == (ExitCode.FAILED, True)
    better = dmlconf_here(
        tmp_path, "compare", "wrong.jsonl", "right.jsonl", "right.jsonl", "--report", "html:c.html"
    )
    assert (better.returncode, "Fixed" in better.stdout) == (ExitCode.SUCCESS, True)
    assert (tmp_path / "c.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    lines = (tmp_path / "right.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_text("".join(lines[:2]))
    cut = dmlconf_here(tmp_path, "compare", "right.jsonl", "cut.jsonl")
    assert cut.returncode == ExitCode.INCOMPLETE
    assert "INCOMPLETE: no new failure" in cut.stdout
    write(tmp_path, TILE, "other.yaml")
    dmlconf_here(tmp_path, "run", "other.yaml", "--log", "other.jsonl")
    other = dmlconf_here(tmp_path, "compare", "right.jsonl", "other.jsonl")
    assert other.returncode == ExitCode.NOTHING_CHECKED
    assert "NOTHING TO COMPARE" in other.stdout
    missing = dmlconf_here(tmp_path, "compare", "right.jsonl", "no.jsonl")
    assert missing.returncode == ExitCode.INVALID_FILE


def test_a_scoreboard_has_a_column_for_each_run() -> None:
    runs = [
        run(verdict(CASE, PASSED), version="1"),
        run(verdict(CASE, FAILED), verdict("gather/b", PASSED), version="2"),
        run(verdict("tile/b", Status.UNSUPPORTED), version="3"),
    ]
    board = scoreboard(runs, ["a", "b", "c"])
    assert [cell.text for cell in board.cells["GATHER"]] == ["100% of 1", "50.0%, 1 fail", "-"]
    assert board.cells["TILE"][2].text == "unsupported"
    totals = dict(board.totals())
    assert totals["run"][:2] == ("PASSED", "FAILED")
    assert totals["all operators"][1] == "50.0%, 1 fail"
    assert totals["failed"] == ("0", "1", "0")
    assert len(set(board.names)) == 3
    for name in ("html", "json", "markdown"):
        assert "GATHER" in SCOREBOARD_FORMATS[name].text(board)
    assert 'href="#gather-1"' in SCOREBOARD_FORMATS["html"].text(board)
    assert 'id="gather-1"' in SCOREBOARD_FORMATS["html"].text(board)


@pytest.mark.parametrize(
    ("versions", "files", "names"),
    [
        (("1.14", "1.15"), ("a/x.jsonl", "b/y.jsonl"), ("1.14", "1.15")),
        (("1.14", "1.14", "1.15"), ("x.jsonl", "y.jsonl", "z.jsonl"), ("1.14 x", "1.14 y", "1.15")),
        (("1.14", "1.14"), ("a/x.jsonl", "b/y.jsonl"), ("x", "y")),
        (("1.14", "1.14"), ("a/x.jsonl", "b/x.jsonl"), ("a/x.jsonl", "b/x.jsonl")),
    ],
)
def test_scoreboard_names_runs_by_version_or_else_by_file(
    versions: tuple[str, ...], files: tuple[str, ...], names: tuple[str, ...]
) -> None:
    runs = [run(verdict(CASE, PASSED), version=version) for version in versions]
    assert scoreboard(runs, files).names == names


def test_a_scoreboard_lists_operators_with_failures_before_the_others() -> None:
    board = scoreboard([run(verdict("gather/a", PASSED), verdict("tile/b", FAILED))], ["a"])
    page = SCOREBOARD_FORMATS["html"].text(board)
    table = page[page.index("<tbody") :]
    assert table.index("TILE") < table.index("GATHER")


def test_commands_on_a_scoreboard_quote_blanks() -> None:
    log = run(*(verdict(f"gather/{i}", FAILED) for i in range(101)))
    log = replace(log, header=replace(log.header, backend="recording:my runs/a.dmlrec"))
    page = SCOREBOARD_FORMATS["html"].text(scoreboard([log], ["a"]))
    assert "dmlconf run -b &#39;recording:my runs/a.dmlrec&#39; -o GATHER" in page


def test_a_share_with_failures_never_rounds_to_100_percent() -> None:
    verdicts = [verdict(f"gather/{i}", PASSED) for i in range(5000)]
    board = scoreboard([run(*verdicts, verdict(CASE, FAILED))], ["a"])
    assert board.cells["GATHER"][0].text == "99.9%, 1 fail"


@pytest.mark.slow
def test_certificates_and_recordings_are_compared_like_logs(
    tmp_path: Path,
) -> None:
    folder = write_suite(tmp_path)
    certify(folder)
    dmlconf_here(folder, "run", "suite", "-b", BACKEND, "--log", "run.jsonl")
    done = dmlconf_here(folder, "compare", "it.dmlcert", "run.jsonl")
    assert (done.returncode, "14 cases in both runs" in done.stdout) == (0, True), done.stdout
    dmlconf_here(folder, "record", "suite", "-b", BACKEND, "-o", "right.dmlrec")
    dmlconf_here(folder, "record", "suite", "-b", "faulty:scaled", "-o", "wrong.dmlrec")
    suite = ("--suite", "suite")
    worse = dmlconf_here(folder, "compare", "right.dmlrec", "wrong.dmlrec", *suite)
    assert (worse.returncode, "new failure" in worse.stdout) == (1, True), worse.stderr
    (folder / "cut.dmlcert").write_bytes((folder / "it.dmlcert").read_bytes()[:-9])
    refused = dmlconf_here(folder, "compare", "it.dmlcert", "cut.dmlcert")
    assert (refused.returncode, "Traceback" in refused.stderr) == (3, False)


def test_only_recorded_cases_of_a_recording_are_compared(tmp_path: Path) -> None:
    folder = write_suite(tmp_path)
    dmlconf_here(folder, "record", "suite", "-b", BACKEND, "-o", "whole.dmlrec")
    dmlconf_here(folder, "record", "suite/gemm", "-b", BACKEND, "-o", "part.dmlrec")
    done = dmlconf_here(folder, "compare", "whole.dmlrec", "part.dmlrec", "--suite", "suite", "-v")
    assert (done.returncode, "Still fails" in done.stdout) == (0, False), done.stderr
    assert "Only in the base" in done.stdout


def test_a_missing_recording_gives_exit_code_4(tmp_path: Path) -> None:
    folder = write_suite(tmp_path)
    dmlconf_here(folder, "record", "suite/gemm", "-b", BACKEND, "-o", "part.dmlrec")
    absent = dmlconf_here(folder, "compare", "absent.dmlrec", "part.dmlrec", "--suite", "suite")
    assert absent.returncode == 4
    assert absent.stderr.splitlines()[-1].startswith("Error: absent.dmlrec: cannot be read")
