"""Measure for every planted defect whether its condition is named: `python -m tests.diagnosis`."""

from __future__ import annotations

from time import perf_counter

from tests.diagnosis.planted import DEFECTS
from tests.diagnosis.test_planted import first_lines, is_named, run_log


def main() -> None:
    """Print a line for each defect, and how many are named."""
    named = 0
    for defect in DEFECTS:
        log = run_log(defect)
        began = perf_counter()
        text = first_lines(log)
        seconds = perf_counter() - began
        hit = is_named(defect, text)
        named += hit
        print(f"{'named' if hit else 'MISSED':7} {seconds:6.2f} s  {defect.name}", flush=True)
        if not hit:
            print(text)
    print(f"{named} of {len(DEFECTS)} are named")


main()
