"""Kill processes of runs on many machines: `python -m tests.fleet kills --count 50`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fleet.kills import VICTIMS, Laboratory


def main() -> int:
    """Kill, print each broken promise and the ends of all runs, and return 1 for any problem."""
    parser = argparse.ArgumentParser(prog="python -m tests.fleet", description=__doc__)
    parser.add_argument("command", choices=["kills"])
    parser.add_argument(
        "victims", nargs="*", choices=[*VICTIMS, []], help="all where none is named"
    )
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=50, help="how many kills of each victim")
    options = parser.parse_args()
    if unknown := set(options.victims) - set(VICTIMS):
        parser.error(f"no victim {', '.join(unknown)}")
    ends: Counter[str] = Counter()
    problems = 0
    with TemporaryDirectory() as folder:
        laboratory = Laboratory(Path(folder))
        try:
            for victim in options.victims or VICTIMS:
                for seed in range(options.first, options.first + options.count):
                    kill = laboratory.kill(victim, seed)
                    ends[kill.end] += 1
                    problems += len(kill.problems)
                    for problem in kill.problems:
                        print(problem, flush=True)
        finally:
            laboratory.close()
    for end, count in sorted(ends.items()):
        print(f"{count:5} {end}")
    print(f"{ends.total():5} kills, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
