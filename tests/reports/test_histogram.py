"""The histogram counts each element in one column, by its error in ULP; higher marks mean more.

The tested code is in `dmlconf/reports/runs/histogram.py`.
"""

from __future__ import annotations

from dmlconf.reports.runs.histogram import bars, columns

MARKS = "12345678"
"""The marks of a column, from the lowest to the highest; a column without elements is blank."""


def test_headings_reach_from_0_to_the_greatest_value() -> None:
    assert columns([{"0": 5, "1": 2}]) == ["0", "1"]
    assert columns([{"0": 5}, {"8": 1}]) == ["0", "1", "2", "4", "8"]
    assert columns([{"4096": 1, "NaN": 2}])[-2:] == ["1k+", "NaN"]


def test_every_element_is_under_a_heading() -> None:
    # A column counts errors from its heading to below the next: 32 is under 16, 512 under 256.
    histogram = {"0": 900, "1": 30, "32": 3, "512": 1, "65536": 2, "NaN": 4}
    headings = columns([histogram])
    marked = dict(zip(headings, bars(histogram, headings, MARKS), strict=True))
    assert {heading for heading, mark in marked.items() if mark != " "} == {
        "0",
        "1",
        "16",
        "256",
        "1k+",
        "NaN",
    }


def test_errors_under_one_heading_are_added_up() -> None:
    marks = list(bars({"0": 30, "16": 15, "32": 15}, ["0", "16"], MARKS))
    assert marks == ["8", "8"]  # 30 elements each.


def test_a_higher_mark_stands_for_more_elements() -> None:
    marks = list(bars({"0": 1_000_000, "1": 1000, "2": 1}, ["0", "1", "2", "4"], MARKS))
    assert marks[0] == "8" > marks[1] > marks[2]
    assert marks[3] == " "
