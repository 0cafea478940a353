"""Measure the stages of a run: `python -m benchmarks.verdicts [--small] [OTHER_CHECKOUT]`.

Runs a part of the suite's operators, graphs and layers of networks on `numpy`, in one process each,
and prints processor seconds by stage (`stages.py` has what each is). Each part runs twice with a
cache that is empty at first: `new` computes what `again` finds there. Another checkout, whose
environment is in its `.venv`, is measured in turn. With `--small` there are 40 cases of each part.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent.parent
STAGES: Final = Path(__file__).with_name("stages.py")
OPERATORS: Final = (
    "activation_softmax1",
    "argmin",
    "convolution",
    "element_wise_pow",
    "gather",
    "gemm",
    "gru",
    "join",
    "mean_variance_normalization2",
    "reduce",
    "resample3",
    "shared",
)
"""Folders of the suite: operators of each family, and the cases that many operators share."""


def arguments(part: str, *, small: bool) -> list[str]:
    """Return what selects the cases of a part."""
    if part == "operators":
        own = [f"cases/{name}" for name in OPERATORS]
        return [*own, "--shard", "1/100" if small else "1/8"]
    if part == "graphs":
        return ["cases/graphs", "--shard", "1/100" if small else "1/24"]
    return ["cases", "--tag", "model", "--shard", "1/50" if small else "1/16"]


def measured(checkout: Path, part: Sequence[str], scratch: Path) -> dict[str, float]:
    """Return the seconds of each stage of a run, and `cases` and `total`."""
    times, log = scratch / "times.json", scratch / "run.jsonl"
    log.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "DMLCONF_CACHE": str(scratch / "cache"),
        "PYTHONPATH": str(checkout),
    }
    python = Path(sys.executable) if checkout == HERE else checkout / ".venv" / "bin" / "python"
    command = [str(python), str(STAGES), str(times), "run", "-b", "numpy", "-j", "1", "-q"]
    command += ["--log", str(log), *part]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    if not times.exists() or not log.exists():
        raise SystemExit(f"dmlconf ended with {done.returncode}: {done.stderr}")
    stages: dict[str, float] = json.loads(times.read_text(encoding="utf-8"))
    times.unlink()
    with log.open(encoding="utf-8") as lines:
        cases = sum('"record":"verdict"' in line for line in lines)
    return {**stages, "total": sum(stages.values()), "cases": cases}


def main(given: list[str]) -> None:
    """Measure the checkouts in turn, and print a table of each part."""
    small = "--small" in given
    checkouts = [HERE, *(Path(each).resolve() for each in given if each != "--small")]
    for part in ("operators", "graphs", "networks"):
        rows: dict[str, dict[str, float]] = {}
        for checkout in checkouts:
            with tempfile.TemporaryDirectory(prefix="dmlconf-benchmark-") as scratch:
                chosen = arguments(part, small=small)
                measured(checkout, chosen, Path(scratch))  # Checks the files.
                for figures in Path(scratch).glob("cache/figures/*"):
                    figures.unlink()
                for name in ("new", "again"):
                    label = f"{'this' if checkout == HERE else checkout.name}, {name}"
                    rows[label] = measured(checkout, chosen, Path(scratch))
        print_table(part, rows)


def print_table(part: str, rows: Mapping[str, Mapping[str, float]]) -> None:
    """Print a row for each run of a part, in Markdown."""
    stages = sorted({stage for row in rows.values() for stage in row} - {"cases", "total"})
    columns = [
        stage for stage in stages if any(row.get(stage, 0) >= 0.005 for row in rows.values())
    ]
    first = next(iter(rows.values()))
    print(f"\n{part}, {first['cases']:,.0f} cases, processor seconds\n")
    print("| | " + " | ".join([*columns, "total"]) + " |")
    print("|---|" + "---:|" * (len(columns) + 1))
    for label, row in rows.items():
        values = [f"{row.get(stage, 0):.2f}" for stage in [*columns, "total"]]
        print(f"| {label} | " + " | ".join(values) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
