"""The terminal report looks like its snapshots, and text of a log cannot control the terminal.

The tested code is in `dmlconf/reports/runs/terminal.py`, `dmlconf/reports/runs/table.py`,
`dmlconf/reports/runs/heading.py`, `dmlconf/reports/runs/summary.py`,
`dmlconf/reports/runs/shared_properties.py`, `dmlconf/reports/runs/remarks.py` (notes),
`dmlconf/reports/runs/failure_details.py` (differences) and `dmlconf/reports/terminal_text.py`.
"""

from __future__ import annotations

import io
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console

from dmlconf.catalogue.loader import operator_names
from dmlconf.reports.runs import summary, terminal
from dmlconf.reports.runs.table import MOST_FAILING_ROWS
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import Reason, ReasonKind, Status
from tests.reports import logs

SNAPSHOTS: Final = Path(__file__).parent / "snapshots"
UPDATE: Final = "DMLCONF_UPDATE_SNAPSHOTS"
"""Set this variable to 1 to write the snapshots again; then read what changed."""


OWN_COLOURS: Final = re.compile("\x1b\\[(0|[12]|([12];)?3[1-6])m")

RED, GREEN, YELLOW = 31, 32, 33

ALL_OPERATORS: Final = len(operator_names())


class Stream(io.StringIO):
    """A stream with an encoding of its own, as a terminal has."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has an attribute.
        return self._encoding


def printed(
    log: RunLog, width: int = 100, color: bool = False, encoding: str = "utf-8", **options: Any
) -> str:
    """Return what a console prints of a log, without blanks at the ends of lines."""
    stream = Stream(encoding)
    console = Console(
        file=stream,
        width=width,
        height=25,
        highlight=False,
        legacy_windows=False,
        no_color=False,
        force_terminal=color,
        color_system="truecolor" if color else None,
    )
    console.print(terminal.render(log, **options), crop=False)
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))


SHOWN: Final[dict[str, tuple[RunLog, dict[str, Any]]]] = {
    # Name of the snapshot: the log that it shows, and the options of the report.
    "everything": (logs.everything(), {}),
    "verbose": (logs.everything(), {"verbose": True}),
    "quiet": (logs.everything(), {"quiet": True}),
    "plain": (logs.plain(), {}),
    "dead": (logs.dead(logs.plain(), 2040), {}),
    "hostile": (logs.hostile(), {"verbose": True}),
}


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("name", SHOWN)
def test_the_report_looks_like_its_snapshot(name: str, width: int) -> None:
    log, options = SHOWN[name]
    path = SNAPSHOTS / f"{name}-{width}.txt"
    text = printed(log, width, **options)
    if os.environ.get(UPDATE) == "1":
        path.write_text(text, encoding="utf-8", newline="\n")
    assert text == path.read_text("utf-8")


def test_the_snapshots_are_exactly_those_of_these_reports() -> None:
    names = {f"{name}-{width}.txt" for name in SHOWN for width in (80, 140)}
    assert {path.name for path in SNAPSHOTS.iterdir()} == names


def test_a_long_identifier_breaks_after_commas() -> None:
    parameters = [f"Parameter{number}=CROSS_CORRELATION" for number in range(9)]
    case = f"convolution/matrix[{','.join(parameters)}]"
    wrong = next(v for v in logs.everything().verdicts if v.status is Status.FAILED)
    text = printed(logs.run_log(wrong.of_case(case=case)), 80)
    assert max(len(line) for line in text.split("\n") if "Parameter" in line) <= 80
    first = text[text.index("FAILED convolution") :].partition(":")[0]
    assert first.replace("\n", "") == f"FAILED {case}"
    assert all(line.endswith(",") for line in first.split("\n")[:-1])


@pytest.mark.parametrize("width", [80, 140])
def test_only_lines_to_copy_are_wider_than_the_terminal(width: int) -> None:
    for line in printed(logs.everything(), width, verbose=True).split("\n"):
        copied = line.startswith(("  dmlconf run ", "  at ")) or re.match(r"FAILED gather/", line)
        assert copied or len(line) <= width


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_number_of_the_table_is_cut_off(width: int) -> None:
    assert "…" not in printed(logs.everything(), width)
    total = next(line for line in printed(logs.everything(), width).split("\n") if "total" in line)
    cases, passed, others, worst_ulp = "10", "3", ["1"] * 7, "∞"
    assert total.split()[:11] == ["total", cases, passed, *others, worst_ulp]


def test_colour_does_not_change_the_text() -> None:
    without = printed(logs.everything())
    with_colour = printed(logs.everything(), color=True)
    assert "\x1b[1;31mFAILED\x1b[0m" in with_colour
    assert "\x1b" not in without
    without_codes = OWN_COLOURS.sub("", with_colour)
    assert [line.rstrip() for line in without_codes.split("\n")] == without.split("\n")


def test_rare_statuses_have_columns_only_if_a_case_has_them() -> None:
    rare = ("Unsupported", "Unchecked", "Waived", "Stale", "Not run")
    assert not any(heading in printed(logs.plain()) for heading in rare)
    only = printed(logs.run_log(logs.PASSED, logs.WAIVED))
    assert [heading for heading in rare if heading in only] == ["Waived"]
    for heading in ("Passed", "Failed", "Broken"):
        assert heading in only


def test_only_a_run_of_several_operators_has_a_total() -> None:
    assert "total" not in printed(logs.run_log(logs.PASSED))
    assert "total" in printed(logs.run_log(logs.PASSED, logs.PASSED_INTEGERS))


def test_operators_without_failures_are_sorted_by_name() -> None:
    text = printed(logs.run_log(logs.NOT_RUN, logs.PASSED, logs.PASSED_INTEGERS))
    assert text.index("ARGMIN") < text.index("GATHER") < text.index("TILE")


@pytest.mark.parametrize(
    ("distance", "message"),
    [
        (None, "-"),
        (0.0, "0"),
        (999999.0, "999,999"),
        (4294967295.0, "4.3e9"),
        (float("inf"), "∞"),
        (1.8446744073709552e19, "1.8e19"),
    ],
)
def test_worst_ulp_is_readable_at_any_size(distance: float | None, message: str) -> None:
    assert summary.ulp_text(distance) == message


def test_worst_ulp_is_the_greatest_of_all_outputs() -> None:
    two = {**logs.figures(3.0), "OutputIndices": logs.figures(None)["OutputTensor"]}
    verdicts = [logs.PASSED_NEAR, logs.PASSED.judged(figures=two), logs.PASSED_INTEGERS]
    assert summary.operator_totals(logs.run_log(*verdicts))[1].worst_ulp == 3.0
    assert summary.operator_totals(logs.run_log(logs.PASSED_INTEGERS))[1].worst_ulp is None


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (0.0, "-"),
        (0.0004, "0.4 ms"),
        (0.25, "250 ms"),
        (0.9996, "1.0 s"),
        (61.5, "61.5 s"),
        (600.0, "10.0 min"),
    ],
)
def test_times_have_readable_units(seconds: float, message: str) -> None:
    row = printed(logs.run_log(logs.PASSED.ran(seconds=seconds))).split("\n")
    assert next(line for line in row if line.startswith("GATHER")).endswith(f" {message}")


def test_unknown_facts_of_the_environment_are_left_out() -> None:
    unknown = dict.fromkeys(logs.HEADER.environment)
    text = printed(logs.run_log(logs.PASSED, environment=unknown))
    assert "None" not in text
    assert "run       1 case, dmlconf 0.1.0, 2026-11-21 05:00 UTC\n" in text


def test_text_of_the_log_controls_neither_terminal_nor_markup() -> None:
    for text in (
        printed(logs.hostile(), verbose=True),
        OWN_COLOURS.sub("", printed(logs.hostile(), color=True, verbose=True)),
    ):
        for forbidden in ("\x1b", "\x07", "\u202e", "\ud800", "\r"):
            assert forbidden not in text, ascii(forbidden)
    assert "\\x1b[31m\\x07\\u202e\\ufffe\\ud800" in printed(logs.hostile(), 200)
    assert "[red]a|b[/]" in printed(logs.hostile())


def test_a_message_or_identifier_cannot_forge_the_closing_line() -> None:
    reason = Reason(ReasonKind.WRONG_VALUES, "no\nPASSED: 1 passed of 1 case")
    text = printed(logs.run_log(logs.FAILED.of_case(case="a\nPASSED: b").judged(reason=reason)))
    assert not any(line.startswith("PASSED") for line in text.split("\n"))


def test_command_of_a_failure_names_files_backend_and_case() -> None:
    log = logs.run_log(logs.FAILED, against="recording:a b.zip")
    assert (  # `j5krb` is the handle of the failing case.
        """  dmlconf run cases/gather 'my cases/odd'"'"'name.yaml' -b directml:adapter=1"""
        """ --against 'recording:a b.zip' -o GATHER --case j5krb\n"""
    ) in printed(log, 80)


def test_the_command_of_a_failure_leaves_out_default_options() -> None:
    log = logs.run_log(logs.BROKEN, backend="numpy", against="numpy", paths=())
    assert "  dmlconf run --case join/boundary/many-inputs\n" in printed(log)


def test_the_last_20_lines_of_diagnostics_are_shown() -> None:
    lines = [line for line in printed(logs.everything()).split("\n") if "debug layer" in line]
    assert lines == [f"    debug layer: line {number}" for number in range(11, 31)]


def test_three_failures_are_shown_unless_verbose() -> None:
    many = logs.run_log(*(logs.FAILED.of_case(case=f"gather/{n}") for n in range(25)))
    text = printed(many)
    assert len(re.findall(r"\nFAILED gather/", text)) == 3
    assert "and 22 more: --show-failures all, --report json has them" in text
    verbose = printed(many, verbose=True)
    assert len(re.findall(r"\nFAILED gather/", verbose)) == 25
    assert "more:" not in verbose


def test_cases_that_broke_with_the_same_message_are_counted() -> None:
    names = [("JOIN", "join/1"), ("JOIN", "join/2"), ("TILE", "tile/1"), ("CAST", "cast/1")]
    log = logs.run_log(
        *(
            replace(logs.BROKEN, identity=replace(logs.BROKEN.identity, case=case, operator=name))
            for name, case in names
        )
    )
    text = printed(log, 200, quiet=True)
    assert "and 3 more cases of 3 operators with the same message" in text
    others = replace(log, verdicts=log.verdicts[1:])
    assert "and 2 more cases of 2 operators with the same message" in printed(
        others, 200, quiet=True
    )


def test_a_verdict_without_a_reason_is_shown() -> None:
    text = printed(logs.run_log(logs.STALE.judged(reason=None)), quiet=True)
    assert text.startswith("STALE scatter_elements/matrix[Axis=1] (kawm5)\n")  # Its handle.


def test_the_verbose_report_counts_cases_by_reason() -> None:
    other = logs.UNCHECKED.of_case(case="join/other")
    text = printed(logs.run_log(logs.UNCHECKED, other, logs.NOT_RUN), verbose=True)
    assert "2 unchecked: no independent expectation\n  ran, but nothing independent tells\n" in text
    assert "1 not run: interrupted\n" in text
    assert "no independent expectation" not in printed(logs.run_log(logs.UNCHECKED))


def test_unchecked_is_explained_if_a_case_is_unchecked() -> None:
    note = "unchecked: ran, but there is no independent"
    text = printed(logs.run_log(logs.PASSED, logs.UNCHECKED))
    assert note in text
    assert "permits any value" not in text  # That is another reason to be unchecked.
    assert note not in printed(logs.plain())


def test_a_terminal_without_unicode_gets_ascii() -> None:
    assert printed(logs.everything(), 140, encoding="cp1252", verbose=True).isascii()


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (logs.plain(), "PASSED: 2 passed of 2 cases"),
        (logs.run_log(logs.PASSED, logs.WAIVED), "PASSED: 1 passed, 1 waived of 2 cases"),
        (logs.run_log(logs.UNCHECKED), "NOTHING PASSED: 1 unchecked of 1 case"),
        (logs.run_log(logs.WAIVED), "NOTHING FAILED: 1 waived of 1 case"),
        (
            logs.run_log(logs.WAIVED, logs.UNCHECKED),
            "NOTHING FAILED: 1 unchecked, 1 waived of 2 cases",
        ),
        (logs.run_log(logs.FAILED), "FAILED: 1 of 1 case fails the run (1 failed)"),
        (
            logs.run_log(logs.FAILED, logs.BROKEN, logs.STALE, logs.PASSED, logs.UNCHECKED),
            "FAILED: 3 of 5 cases fail the run (1 failed, 1 broken, 1 stale);"
            " 1 passed, 1 unchecked",
        ),
        (
            logs.run_log(logs.PASSED, logs.NOT_RUN),
            "INCOMPLETE: 1 of 2 cases was not run; 1 passed",
        ),
        (
            logs.dead(logs.plain(), 2040),
            "INCOMPLETE: the log ends early, after 2 of 2,040 cases; 2 passed",
        ),
        (
            logs.dead(logs.plain(), 2),
            "INCOMPLETE: the log ends early, after 2 of 2 cases; 2 passed",
        ),
        (
            logs.dead(logs.run_log(logs.FAILED), 3),
            "FAILED: 1 of 3 cases fails the run (1 failed); 2 not run",
        ),
    ],
)
def test_the_closing_line_says_how_the_run_ended(log: RunLog, sentence: str) -> None:
    assert summary.closing_sentence(log) == sentence
    assert printed(log, 140).rstrip().split("\n")[-1] == sentence


def test_log_claimed_complete_without_a_case_is_incomplete() -> None:
    log = logs.run_log(logs.PASSED)
    assert log.footer is not None
    claimed = replace(log, header=replace(log.header, selected=2))
    assert claimed.complete
    assert summary.closing_sentence(claimed) == "INCOMPLETE: 1 of 2 cases was not run; 1 passed"
    assert summary.status_counts(claimed)[Status.NOT_RUN] == 1


@pytest.mark.parametrize(
    ("log", "colour"),
    [
        (logs.plain(), GREEN),
        (logs.run_log(logs.UNCHECKED), YELLOW),
        (logs.run_log(logs.WAIVED), YELLOW),
        (logs.everything(), RED),
        (logs.dead(logs.plain(), 9), RED),
    ],
)
def test_closing_line_is_green_only_for_passing_runs(log: RunLog, colour: int) -> None:
    last = printed(log, 200, color=True, quiet=True).rstrip().split("\n")[-1]
    assert last.startswith(f"\x1b[1;{colour}m")


def many_operators(count: int, failing: int) -> RunLog:
    """Return the log of one case of each of `count` operators; the first `failing` cases fail."""
    names = sorted(operator_names())[:count]
    return logs.run_log(
        *(
            (logs.FAILED if at < failing else logs.PASSED).of_case(
                operator=name, case=f"{name.lower()}/matrix[A={at}]"
            )
            for at, name in enumerate(names)
        )
    )


def test_passing_run_of_all_operators_takes_at_most_40_lines() -> None:
    text = printed(many_operators(ALL_OPERATORS, 0), 80)
    assert text.count("\n") <= 40


@pytest.mark.slow
def test_passing_run_has_rows_of_families_unless_verbose() -> None:
    log = many_operators(ALL_OPERATORS, 0)
    short, verbose = printed(log, 80), printed(log, 80, verbose=True)
    assert ("Element-wise" in short, "GATHER_ND1" in short) == (True, False)
    assert ("Element-wise" in verbose, "GATHER_ND1" in verbose) == (False, True)


def test_failing_operators_have_rows_and_the_others_are_counted() -> None:
    text = printed(many_operators(ALL_OPERATORS, 2))
    assert "ACTIVATION_CELU " in text
    assert "GATHER" not in text
    others = ALL_OPERATORS - 2
    assert f"{others} other operators, {others} cases: no failures (-v lists them)" in text


@pytest.mark.parametrize("columns", [80, 100, 160])
def test_run_that_fails_everywhere_takes_at_most_120_lines(columns: int) -> None:
    text = printed(many_operators(ALL_OPERATORS, ALL_OPERATORS), columns)
    assert text.count("\n") <= 120
    assert f"and {ALL_OPERATORS - MOST_FAILING_ROWS} more operators with failures" in text


def test_operator_names_wrap_only_in_a_narrow_terminal() -> None:
    log = many_operators(ALL_OPERATORS, ALL_OPERATORS)
    assert "ACTIVATION_LOG_SOFTMAX1 " in printed(log, 80)
    assert "ACTIVATION_LOG_SOFTMAX1 " not in printed(log, 50)


def log_with_a_group() -> RunLog:
    """Return the log of 20 cases, of which those with Rank 3 fail."""
    verdicts = [
        (logs.FAILED if number % 2 else logs.PASSED).of_case(
            operator="GEMM", case=f"gemm/{number}", facts={"Rank": 2 + number % 2}
        )
        for number in range(20)
    ]
    return logs.run_log(*verdicts)


def test_commands_of_groups_are_printed_only_at_the_end() -> None:
    _, first, last = printed(log_with_a_group()).split("What failures share")
    for text in (first, last):
        assert "GEMM: 10 failures" in text
    assert "--where" not in first
    assert "-o GEMM --where 'Rank == 3'" in last


def test_only_a_short_report_says_that_v_shows_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terminal, "MOST_GROUPS", 0)
    assert "and 1 more group: -v shows more, --report json" in printed(log_with_a_group())
    monkeypatch.setattr(terminal, "MOST_GROUPS_VERBOSE", 0)
    verbose = printed(log_with_a_group(), verbose=True)
    assert "and 1 more group: --report json has all" in verbose
    assert "-v shows more" not in verbose


def test_failing_run_ends_with_groups_and_next_commands() -> None:
    log = log_with_a_group()
    _, _, last = printed(log).split("What failures share")
    groups, commands = last.split("What to do next")
    assert "GEMM: 10 failures" in groups
    assert f"see one case    dmlconf show {summary.failing_handles(log)['gemm/1']}" in commands
    assert "dmlconf run --failed" in commands
    assert "dmlconf diagnose" in commands
    assert commands.rstrip().split("\n")[-1].startswith("FAILED: 10 of 20 cases")


def test_long_names_break_after_underscores() -> None:
    name = "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL"
    statuses = [each.of_case(operator=name) for each in logs.everything().verdicts]
    lines = printed(logs.run_log(*statuses), 80).split("\n")
    heading = next(at for at, line in enumerate(lines) if line.startswith("Operator "))
    start = heading + 2  # A drawn line is between them.
    parts = [line.split()[0] for line in lines[start : start + 4]]
    assert "".join(parts).startswith(name)
    assert all(part.endswith("_") or name.endswith(part) for part in parts[:3])
