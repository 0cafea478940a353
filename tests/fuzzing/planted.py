"""Count the cases that `dmlconf fuzz` makes until one shows a defect of tests/diagnosis."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from dmlconf.catalogue.graph import GRAPHS
from tests.diagnosis.defects import Defect

__all__ = ["FuzzResult", "find", "table"]


@dataclass(frozen=True)
class FuzzResult:
    """A defect, and the number of the first failing case, from 1; None if none failed."""

    defect: Defect
    cases: int | None


def find(defect: Defect, seed: int, most: int) -> FuzzResult:
    """Make up to this many cases of each operator of the defect, until one fails."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        operators = [part for name in defect.operators for part in ("-o", name)]
        if defect.operators == (GRAPHS,):
            operators = ["--graphs"]
        command = [
            sys.executable,
            "-m",
            "dmlconf",
            "fuzz",
            "-b",
            defect.backend,
            *operators,
            "--seed",
            str(seed),
            "--cases",
            str(most),
            "--max-failures",
            "1",
            "--quiet",
            "--timeout",
            str(defect.timeout),
            "--reduce",
            "0",
            "--save",
            folder,
            "--log",
            str(log),
        ]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode in (0, 1, 7), done.stderr
        lines = map(json.loads, log.read_text("utf-8").splitlines())
        failing = [
            int(line["case"].rpartition("/")[2])
            for line in lines
            if line["record"] == "verdict" and line["status"] in ("failed", "broken")
        ]
    return FuzzResult(defect, failing[0] + 1 if failing else None)


def table(results: Iterable[FuzzResult]) -> Iterator[str]:
    """Yield how many defects are found, then a Markdown table of all."""
    results = list(results)
    found = sum(each.cases is not None for each in results)
    yield f"{found} of {len(results)} defects are found ({100 * found / len(results):.0f}%)."
    yield ""
    yield "| Defect | Operators | Cases |"
    yield "|---|---|---:|"
    for each in results:
        cases = "not found" if each.cases is None else f"{each.cases:,}"
        yield f"| {each.defect.name} | {', '.join(each.defect.operators)} | {cases} |"
