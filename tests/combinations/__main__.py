"""Add cases for missing pairs of values to `cases/OPERATOR/combinations.yaml`.

A pair, such as `Axis = last` with `DataType = INT8`, is missing if no valid case has it.
Cases with the tag `model` do not count.
`python -m tests.combinations gemm reduce` adds entries at the end of two files.
Record the new cases in the Wine lab afterwards.
"""

from __future__ import annotations

import re
import sys
import time

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import ExpectedRejection
from dmlconf.catalogue.loader import operator
from dmlconf.coverage.combinations.measure import measure_combinations
from dmlconf.resources import cases_directory
from tests.combinations.drafts import starting_drafts
from tests.combinations.search import covering
from tests.combinations.writing import case_entries

_MOST = 220

_NUMBER = re.compile(r"^  - name: pairs-(\d+)$", re.MULTILINE)
_HEAD = """\
# yaml-language-server: $schema=../../schemas/case.schema.json
# Made by `python -m tests.combinations {folder}`: pairs of values that no other case has.
"""


def make(folder: str) -> None:
    """Add cases to the file of one operator, and print pairs for which no case was found."""
    begun = time.monotonic()
    path = cases_directory() / folder / "combinations.yaml"
    entry = operator(folder)
    plan = load_suite([cases_directory() / folder]).plan()
    cases = [valid_case(each) for each in plan if "model" not in each.template.tags]
    valid = [case for case in cases if not isinstance(case.expectation, ExpectedRejection)]
    coverage = measure_combinations([entry], valid)[entry.name]
    drafts, pool = starting_drafts(entry, valid)
    made, failed = covering(coverage, drafts, pool, _MOST)
    if made:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        head = f"{_HEAD.format(folder=folder)}operator: {entry.name}\ncases:\n"
        if before:
            head = f"{before.rstrip()}\n"
        first = max(map(int, _NUMBER.findall(before)), default=0) + 1
        path.write_text(head + case_entries(entry, made, first), encoding="utf-8")
    covered, possible = coverage.share()
    print(
        f"{folder}: {covered}/{possible} covered, {len(made)} cases made, {len(failed)} pairs not, "
        f"{time.monotonic() - begun:.0f} s"
    )
    for pair in failed[:12]:
        print("   ", ", ".join(f"{name} = {value}" for name, value in pair))


for name in sys.argv[1:]:
    make(name)
