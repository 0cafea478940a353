"""`--shard K/N` divides a suite into N parts, with each case in exactly one of them.

The tested code is in `dmlconf/engine/shards.py` and `dmlconf/cli/options/shards.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from dmlconf.engine.shards import Shard, balanced, parse_shard, shard_number
from tests.cli.process import dmlconf_here, write
from tests.fleet.suites import MATRIX

NAMES = [f"gather/matrix/case[{number}]" for number in range(1000)]


def test_shard_follows_from_the_identifier_alone() -> None:
    # Other versions of dmlconf must give the same numbers.
    assert [shard_number(name, 8) for name in NAMES[:6]] == [1, 1, 2, 8, 8, 6]


def test_shards_of_many_cases_have_similar_sizes() -> None:
    sizes = [sum(shard_number(name, 8) == number for name in NAMES) for number in range(1, 9)]
    assert sum(sizes) == len(NAMES)
    even = len(NAMES) / 8
    assert all(0.72 * even < size < 1.28 * even for size in sizes)


def test_balanced_shards_take_nearly_equal_times() -> None:
    random = Random(1)
    seconds = {name: random.expovariate(1) for name in NAMES}
    numbers = balanced(seconds, 8)
    # The order of the cases does not matter.
    assert balanced(dict(reversed(seconds.items())), 8) == numbers
    loads = [sum(seconds[n] for n in NAMES if numbers[n] == number) for number in range(1, 9)]
    assert max(loads) - min(loads) < 0.01 * sum(loads)


@pytest.mark.parametrize("text", ["0/8", "9/8", "3", "3/0", "-1/8", "3/8/9", "a/b", ""])
def test_text_that_names_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="shard"):
        parse_shard(text)


def test_shard_is_parsed_from_its_number_and_count() -> None:
    assert parse_shard("3/8") == Shard(3, 8)


def listed(folder: Path, *arguments: str) -> list[str]:
    return dmlconf_here(folder, "list", "tile.yaml", *arguments).stdout.split()


def test_case_stays_in_its_shard_when_cases_are_added(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    shards = [listed(tmp_path, "--shard", f"{number}/3") for number in (1, 2, 3)]
    every = listed(tmp_path)
    assert len(every) == 4
    assert sorted(case for shard in shards for case in shard) == sorted(every)
    write(tmp_path, MATRIX.replace("[0, 1, 2]", "[7, 2, 1, 0, 9]"))
    more = [listed(tmp_path, "--shard", f"{number}/3") for number in (1, 2, 3)]
    assert sum(map(len, more)) == 6
    assert all(set(before) <= set(now) for before, now in zip(shards, more, strict=True))


def test_shard_by_balances_the_seconds_of_a_log(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    assert dmlconf_here(tmp_path, "run", "tile.yaml", "--log", "run.jsonl").returncode == 1
    log = tmp_path / "run.jsonl"
    records = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for record, seconds in zip(records[1:5], (3.0, 1.0, 1.0, 1.0), strict=True):
        record["seconds"] = seconds
    log.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    shard_by = ("--shard-by", "run.jsonl")
    shards = [listed(tmp_path, "--shard", f"{number}/2", *shard_by) for number in (1, 2)]
    # One shard has the case of 3 seconds, the other the three cases of 1 second.
    assert sorted(map(len, shards)) == [1, 3]
    assert [records[1]["case"]] in shards


def test_shard_by_without_a_shard_is_refused(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    (tmp_path / "run.jsonl").touch()
    done = dmlconf_here(tmp_path, "list", "tile.yaml", "--shard-by", "run.jsonl")
    assert done.returncode == 2
    assert "--shard-by balances shards: select one with --shard" in done.stderr


def test_shard_without_cases_is_reported(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    empty = next(f"{n}/50" for n in range(1, 51) if not listed(tmp_path, "--shard", f"{n}/50"))
    done = dmlconf_here(tmp_path, "run", "tile.yaml", "--shard", empty)
    assert done.returncode == 5
    assert f"none of the 4 cases is in shard {empty}" in done.stderr
