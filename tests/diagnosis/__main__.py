"""Measure diagnoses of planted defects: `python -m tests.diagnosis`.

The argument `shared` measures the conditions of `planted.yaml` alone. `defects [NAME]...` measures
defects of `defects.yaml`, and prints the table of docs/diagnosis.md. `graphs` measures how small
graphs become if they keep their nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import perf_counter

from tests.diagnosis import planted
from tests.diagnosis.defects import DEFECTS
from tests.diagnosis.measure import LARGEST, measure, table
from tests.diagnosis.measure_graphs import measured_graphs
from tests.diagnosis.test_planted import first_lines, is_named, run_log


def measure_shared() -> None:
    """Print for each defect of `planted.yaml` whether the report names its condition."""
    named = 0
    for defect in planted.DEFECTS:
        log = run_log(defect)
        began = perf_counter()
        text = first_lines(log)
        seconds = perf_counter() - began
        hit = is_named(defect, text)
        named += hit
        print(f"{'named' if hit else 'MISSED':7} {seconds:6.2f} s  {defect.name}", flush=True)
        if not hit:
            print(text)
    print(f"{named} of {len(planted.DEFECTS)} are named")


def measure_defects(names: Sequence[str]) -> None:
    """Print the table of defects, and how many are diagnosed right."""
    chosen = [d for d in DEFECTS if not names or any(name in d.name for name in names)]
    measured = []
    for defect in chosen:
        each = measure(defect)
        measured.append(each)
        print(f"{each.seconds:6.1f} s  {defect.name}", file=sys.stderr, flush=True)
        if not each.named:
            print(each.lines, file=sys.stderr, flush=True)
    print("\n".join(table(measured)))
    blamed = [each for each in measured if each.defect.culprit is not None]
    counts = (
        ("conditions named in the first ten lines", measured, "named"),
        ("culprits right, of defects that have one", blamed, "culprit_right"),
        ("culprits right, of all defects", measured, "culprit_right"),
        (f"reduced cases of at most {LARGEST} elements", measured, "small"),
    )
    print("\n| Measure | Defects | Share |\n|---|---|---|")
    for text, of, attribute in counts:
        hits = sum(getattr(each, attribute) for each in of)
        print(f"| {text} | {hits} of {len(of)} | {hits / max(len(of), 1):.1%} |")


def measure_graphs() -> None:
    """Print a line for each graph, and how many become small."""
    measured = []
    for each in measured_graphs():
        measured.append(each)
        print(
            f"{each.before:6,} → {each.elements:4,} in {each.trials:3} trials, "
            f"{each.seconds:5.1f} s  {each.identifier}",
            flush=True,
        )
    small = sum(each.elements <= LARGEST for each in measured)
    print(f"{small} of {len(measured)} graphs have at most {LARGEST} elements")


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] in ([], ["shared"]):
        measure_shared()
    if arguments[:1] in ([], ["defects"]):
        measure_defects(arguments[1:])
    if arguments[:1] in ([], ["graphs"]):
        measure_graphs()


if __name__ == "__main__":
    main(sys.argv[1:])
