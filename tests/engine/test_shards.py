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
"""Identifiers of a thousand cases, which need not exist."""


def test_a_shard_follows_from_the_identifier_alone() -> None:
    # These numbers are fixed, since machines with other versions of dmlconf must agree.
    assert [shard_number(name, 8) for name in NAMES[:6]] == [1, 1, 2, 8, 8, 6]


def test_shards_of_many_cases_have_similar_sizes() -> None:
    sizes = [sum(shard_number(name, 8) == number for name in NAMES) for number in range(1, 9)]
    assert sum(sizes) == len(NAMES)
    # An eighth is 125 cases, with a standard deviation of 10.5 if numbers are random.
    assert min(sizes) > 90
    assert max(sizes) < 160


def test_shards_balanced_by_measured_seconds_differ_by_less_than_a_hundredth_of_the_whole() -> None:
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


def test_a_shard_is_parsed_from_its_number_and_count() -> None:
    assert parse_shard("3/8") == Shard(3, 8)


def listed(folder: Path, *arguments: str) -> list[str]:
    """Return the cases that `dmlconf list` prints with these options."""
    return dmlconf_here(folder, "list", "tile.yaml", *arguments).stdout.split()


def test_each_case_is_in_one_shard_and_stays_there_when_cases_are_added(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    shards = [listed(tmp_path, "--shard", f"{number}/3") for number in (1, 2, 3)]
    every = listed(tmp_path)
    assert len(every) == 4
    assert sorted(case for shard in shards for case in shard) == sorted(every)
    write(tmp_path, MATRIX.replace("[0, 1, 2]", "[7, 2, 1, 0, 9]"))
    more = [listed(tmp_path, "--shard", f"{number}/3") for number in (1, 2, 3)]
    assert sum(map(len, more)) == 6
    assert all(set(before) <= set(now) for before, now in zip(shards, more, strict=True))


def test_shards_that_a_log_balances_have_equal_sums_of_its_seconds(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    assert dmlconf_here(tmp_path, "run", "tile.yaml", "--log", "run.jsonl").returncode == 1
    log = tmp_path / "run.jsonl"
    records = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for record, seconds in zip(records[1:5], (3.0, 1.0, 1.0, 1.0), strict=True):
        record["seconds"] = seconds
    log.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    shard_by = ("--shard-by", "run.jsonl")
    shards = [listed(tmp_path, "--shard", f"{number}/2", *shard_by) for number in (1, 2)]
    # The case of 3 seconds is in one shard, and the three of 1 second in the other.
    assert sorted(map(len, shards)) == [1, 3]
    assert [records[1]["case"]] in shards


def test_option_shard_by_without_a_shard_is_refused(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    (tmp_path / "run.jsonl").touch()
    done = dmlconf_here(tmp_path, "list", "tile.yaml", "--shard-by", "run.jsonl")
    assert done.returncode == 2
    assert "--shard-by balances shards: select one with --shard" in done.stderr


def test_a_shard_without_cases_is_reported(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    empty = next(f"{n}/50" for n in range(1, 51) if not listed(tmp_path, "--shard", f"{n}/50"))
    done = dmlconf_here(tmp_path, "run", "tile.yaml", "--shard", empty)
    assert done.returncode == 5
    assert f"none of the 4 cases is in shard {empty}" in done.stderr
