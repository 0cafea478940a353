"""Kill or stop processes of fleet runs: `python -m tests.fleet kills --count 50 --jobs 3`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.fleet.faults import KILLED, SILENT, Fault, Laboratory

_VICTIMS: Final = {"kills": KILLED, "silence": SILENT}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet", description=__doc__)
    parser.add_argument(
        "command", choices=_VICTIMS, help="kills: kill -9; silence: processes hang or are cut off"
    )
    parser.add_argument("victims", nargs="*", help="all where none is named")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=50, help="how many faults of each victim")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs side by side")
    options = parser.parse_args()
    known = _VICTIMS[options.command]
    if unknown := set(options.victims) - set(known):
        parser.error(f"no victim {', '.join(unknown)}: {', '.join(known)}")
    seeds = range(options.first, options.first + options.count)
    ends: Counter[str] = Counter()
    problems = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for victim in options.victims or known:
            shares = [islice(seeds, job, None, options.jobs) for job in range(options.jobs)]
            for faults in pool.map(partial(_faults, victim), map(list, shares)):
                ends.update(fault.end for fault in faults)
                problems += sum(len(fault.problems) for fault in faults)
    for end, count in sorted(ends.items()):
        print(f"{count:5} {end}")
    print(f"{ends.total():5} faults, {problems} problems")
    return 1 if problems else 0


def _faults(victim: str, seeds: Sequence[int]) -> list[Fault]:

    def each(laboratory: Laboratory) -> Iterator[Fault]:
        for seed in seeds:
            fault = laboratory.fault(seed)
            for problem in fault.problems:
                print(problem, flush=True)
            print(f"seed {seed}: {fault.end}", file=sys.stderr, flush=True)
            yield fault

    if not seeds:
        return []
    with TemporaryDirectory() as folder, closing(Laboratory(Path(folder), victim)) as laboratory:
        return list(each(laboratory))


if __name__ == "__main__":
    sys.exit(main())
