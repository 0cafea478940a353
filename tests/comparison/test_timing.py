"""Operators that are slower than in an earlier run, beyond noise, are named.

The tested code is in `dmlconf/comparison/timing.py`, `dmlconf/cli/options/timing.py`,
`dmlconf/cli/commands/results/compare.py`, `dmlconf/reports/comparisons/changes.py` and
`dmlconf/reports/comparisons/html.py`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dmlconf.cases.identifiers import cases_digest
from dmlconf.comparison.compare import compare
from dmlconf.comparison.timing import ALL_OPERATORS, retimed, timing, timing_lines
from dmlconf.documents.schema import bundled_schema, validator
from dmlconf.reports.comparisons.changes import render_json, render_markdown
from dmlconf.reports.comparisons.html import render_html
from dmlconf.run_log.log import Footer, RunLog
from dmlconf.verdicts.verdict import Verdict
from tests.cli.process import TILE, dmlconf_here, write
from tests.reports import logs

OPERATORS = {"GEMM": 40, "TILE": 30, "GATHER": 20, "CAST": 3, "SLICE": 1, "PADDING": 12}
"""How many cases each operator has."""


def log(
    seed: int,
    factors: Mapping[str, float] = {},
    *,
    jitter: float = 0.1,
    large: float = 1.0,
) -> RunLog:
    """Return a run of OPERATORS whose times vary at random.

    Args:
        factors: by operator, a factor of its times.
        jitter: the standard deviation of the logarithm of a time.
        large: a factor of the time of GEMM's first case, its longest.
    """
    chance = random.Random(seed)
    verdicts = []
    for operator, count in OPERATORS.items():
        for number in range(count):
            base = 1e-4 * (1 + number % 7) if number else 1e-1
            seconds = base * factors.get(operator, 1.0) * chance.lognormvariate(0, jitter)
            seconds *= large if (operator, number) == ("GEMM", 0) else 1
            verdicts.append(
                logs.verdict(
                    f"{operator.lower()}/a/{number}",
                    operator=operator,
                    dispatch_seconds=(3 * seconds, seconds),
                )
            )
    header = replace(logs.HEADER, selected=len(verdicts))
    digest = cases_digest(verdict.case for verdict in verdicts)
    footer = Footer("2026-11-22T05:00:00+00:00", 1.0, True, {"passed": len(verdicts)}, digest)
    return RunLog(header, tuple(verdicts), footer)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("jitter", [0.0, 0.1, 0.5])
def test_no_operator_is_named_slower_because_of_noise_alone(seed: int, jitter: float) -> None:
    compared = timing(log(seed, jitter=jitter), log(seed + 100, jitter=jitter))
    assert compared.cases == sum(OPERATORS.values())
    assert compared.slower == ()


@pytest.mark.parametrize("seed", range(10))
def test_only_an_operator_twice_as_slow_is_named(seed: int) -> None:
    (slower,) = timing(log(seed), log(seed + 100, {"TILE": 2.0})).slower
    assert slower.operator == "TILE"
    assert slower.cases == 30
    assert 1.8 < slower.ratio < 2.2
    assert 1 < slower.least < slower.ratio  # The part that noise does not explain.


def test_one_large_slower_case_names_its_operator() -> None:
    (slower,) = timing(log(1), log(2, large=5)).slower
    assert slower.operator == "GEMM"
    assert slower.slowest == "gemm/a/0"
    assert 3 < slower.slowest_ratio < 7


def test_a_device_that_is_slower_throughout_is_reported_once() -> None:
    compared = timing(log(1), log(2, dict.fromkeys(OPERATORS, 3.0)))
    assert compared.ratio == pytest.approx(3, rel=0.1)
    (slower,) = compared.slower
    assert slower.operator == ALL_OPERATORS
    assert slower.cases == sum(OPERATORS.values())
    assert slower.ratio == pytest.approx(3, rel=0.1)
    assert slower.sentence == f"all operators take {slower.ratio:.1f} times as long"


def test_slower_device_is_reported_before_a_slower_operator() -> None:
    factors = dict.fromkeys(OPERATORS, 3.0) | {"TILE": 9.0}
    whole, tile = timing(log(1), log(2, factors)).slower
    assert (whole.operator, tile.operator) == (ALL_OPERATORS, "TILE")
    assert tile.ratio == pytest.approx(9, rel=0.1)


def log_of_a_busy_machine(seed: int, factors: Mapping[str, float] = {}) -> RunLog:
    """Return a run of 100 operators; about one in eight ran while the machine was busy."""
    chance = random.Random(seed)
    verdicts = []
    for operator in (f"OPERATOR_{number}" for number in range(100)):
        busy = chance.uniform(2, 5) if chance.random() < 1 / 8 else 1.0
        for case in range(60):
            seconds = 5e-5 * (1 + case % 7) * factors.get(operator, 1.0)
            seconds *= busy * chance.lognormvariate(0, 0.2)
            verdicts.append(
                logs.verdict(f"{operator}/a/{case}", operator=operator, dispatch_seconds=(seconds,))
            )
    return RunLog(replace(logs.HEADER, selected=len(verdicts)), tuple(verdicts), None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_operators_on_a_busy_machine_are_not_named(seed: int) -> None:
    assert timing(log_of_a_busy_machine(seed), log_of_a_busy_machine(seed + 100)).slower == ()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_operator_20_times_slower_is_named_despite_busy_machine(seed: int) -> None:
    slower = timing(
        log_of_a_busy_machine(seed), log_of_a_busy_machine(seed + 100, {"OPERATOR_50": 20.0})
    ).slower
    assert [each.operator for each in slower] == ["OPERATOR_50"]


@pytest.mark.parametrize(("seconds", "named"), [(5e-5, []), (5e-2, ["SLICE"])])
def test_single_case_names_its_operator_only_if_it_takes_long(
    seconds: float, named: list[str]
) -> None:
    def with_slice(run: RunLog, factor: float) -> RunLog:
        verdicts = (
            verdict.ran(dispatch_seconds=(factor * seconds,))
            if verdict.operator == "SLICE"
            else verdict
            for verdict in run.verdicts
        )
        return replace(run, verdicts=tuple(verdicts))

    slower = timing(with_slice(log(1), 1.0), with_slice(log(2), 100.0)).slower
    assert [each.operator for each in slower] == named


def test_an_operator_that_became_quicker_is_not_slower() -> None:
    assert timing(log(1), log(2, {"TILE": 0.3})).slower == ()


def test_cases_without_measured_times_are_left_out() -> None:
    base = log(1)
    first, *others = base.verdicts
    partly = replace(base, verdicts=(first.ran(dispatch_seconds=()), *others))
    assert timing(partly, log(2)).cases == len(others)
    assert timing(base, replace(partly, verdicts=(partly.verdicts[0],))).cases == 0


@pytest.mark.parametrize(("factor", "named"), [(1.0, []), (4.0, ["TILE"])])
def test_operators_that_seem_slower_are_timed_again(factor: float, named: list[str]) -> None:
    base, new, later = log(1), log(2, {"TILE": 4.0}), log(3, {"TILE": factor})
    asked: list[set[str]] = []

    def again(cases: Collection[str]) -> list[Verdict]:
        asked.append(set(cases))
        return [verdict for verdict in later.verdicts if verdict.case in cases]

    slower = timing(base, retimed(base, new, again)).slower
    assert [each.operator for each in slower] == named
    assert asked[0] == {f"tile/a/{number}" for number in range(30)}
    # TILE is timed again while it seems slower, at most twice.
    assert len(asked) == (2 if named else 1)


def test_line_of_a_slower_operator_names_factor_and_cases() -> None:
    (line,) = timing_lines(timing(log(1), log(2, {"TILE": 4.0})))
    assert line.startswith("TILE: 4.")
    assert "in 30 cases; most in tile/a/" in line


def test_reports_of_a_comparison_name_slower_operators() -> None:
    comparison = compare(log(1), log(2, {"TILE": 4.0}))
    pair = (comparison, ("a.jsonl", "b.jsonl"))
    data = json.loads(render_json([pair]))
    validator(bundled_schema("comparison")).validate(data)
    assert [each["operator"] for each in data["comparisons"][0]["slower"]] == ["TILE"]
    for page in (render_markdown([pair]), render_html([pair])):
        _, heading, below = page.partition("Slower than noise allows")
        assert heading
        assert "TILE" in below


@pytest.mark.parametrize(("factor", "code"), [("3x", 1), ("5", 0)])
def test_compare_fails_only_beyond_the_factor_of_fail_slower(
    tmp_path: Path, factor: str, code: int
) -> None:
    base = logs.write(tmp_path / "a.jsonl", log(1))
    new = logs.write(tmp_path / "b.jsonl", log(2, {"TILE": 4.0}))
    assert dmlconf_here(tmp_path, "compare", base, new).returncode == 0
    done = dmlconf_here(tmp_path, "compare", base, new, "--fail-slower", factor)
    assert done.returncode == code
    assert ("--fail-slower 3x: TILE takes 4" in done.stderr) is bool(code)


def test_run_without_times_says_that_none_were_compared(
    tmp_path: Path,
) -> None:
    base = logs.write(tmp_path / "a.jsonl", log(1))
    write(tmp_path, TILE)
    done = dmlconf_here(tmp_path, "run", "tile.yaml", "--slower-than", base)
    assert "so no times were compared" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fail-slower", "3x"), "add --slower-than LOG"),
        (("--fail-slower", "0.5"), "'0.5' is not a factor above 1, such as 3x"),
        (("--fail-slower", "1x"), "'1x' is not a factor above 1, such as 3x"),
    ],
)
def test_run_refuses_fail_slower_without_baseline_or_valid_factor(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    write(tmp_path, TILE)
    done = dmlconf_here(tmp_path, "run", "tile.yaml", *options)
    assert done.returncode == 2
    assert message in done.stderr
