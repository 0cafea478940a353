"""The report `github` has annotations, which GitHub shows beside lines of case files.

In a workflow it also adds a summary of the run.

The tested code is in `dmlconf/reports/runs/github.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.reports.runs import github, markdown
from tests.reports import logs


def test_annotation_points_at_the_line_of_its_case() -> None:
    first, second = github.render(logs.run_log(logs.FAILED)).splitlines()
    assert first.startswith("::error title=dmlconf::FAILED: 1 of 1 case fails the run")
    location, _, message = second.removeprefix("::error ").partition("::")
    assert location.startswith(
        "file=cases/gather/matrix.yaml,line=12,title=failed%3A gather/matrix["
    )
    assert "DataType=FLOAT32%2CDimensionCount=8" in location
    assert message.startswith("wrong values: 4 of 12 elements of OutputTensor differ%0Admlconf run")


def test_annotation_without_a_location_names_no_file() -> None:
    nowhere = logs.FAILED.of_case(case="gather/a", location="")
    _, annotation = github.render(logs.run_log(nowhere)).splitlines()
    assert annotation.startswith("::error title=failed%3A gather/a::wrong values: 4 of 12")


def test_annotation_without_a_reason_gives_the_status() -> None:
    unexplained = logs.STALE.judged(reason=None)
    _, annotation = github.render(logs.run_log(unexplained)).splitlines()
    assert annotation.rpartition("::")[2].startswith("stale%0Admlconf run")


@pytest.mark.parametrize(("most", "is_cut_off"), [(1_000_000, False), (200, True)])
def test_only_a_too_long_summary_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, is_cut_off: bool
) -> None:
    file = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    monkeypatch.setattr(github, "_MOST_SUMMARY_BYTES", most)
    assert github.publish(logs.everything()) == ""
    whole = markdown.render(logs.everything())
    written = file.read_text("utf-8")
    if is_cut_off:
        head, note, _ = written.partition("\n\nThe rest is too long for GitHub.\n")
        assert note
        assert whole.startswith(f"{head}\n")
        assert 0 < len(head.encode("utf-8")) < most
    else:
        assert written == whole


def test_at_most_ten_annotations_are_spread_over_operators() -> None:
    many = [logs.FAILED.of_case(case=f"gather/matrix[Axis={n}]") for n in range(30)]
    lines = github.render(logs.run_log(*many, logs.BROKEN)).splitlines()
    assert len(lines) == github.MOST_ANNOTATIONS == 10
    assert "gather/" in lines[1]
    assert "join/boundary/many-inputs" in lines[2]


def test_text_of_a_log_cannot_begin_another_workflow_command() -> None:
    lines = github.render(logs.hostile()).splitlines()
    assert len(lines) == 2  # Of the run, and of its only failure.
    for line in lines:
        assert line.startswith("::error ")
        assert line.isprintable()


def test_pass_is_a_notice_and_nothing_passed_a_warning() -> None:
    assert github.render(logs.run_log(logs.PASSED)).startswith("::notice title=dmlconf::PASSED")
    nothing = github.render(logs.run_log(logs.UNCHECKED))
    assert nothing.startswith("::warning title=dmlconf::NOTHING PASSED")
