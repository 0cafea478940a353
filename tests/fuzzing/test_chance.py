"""Random choices of `fuzz` are within their limits, and the same on every machine and Python.

The tested code is in `dmlconf/fuzzing/chance.py`.
"""

from __future__ import annotations

from itertools import permutations

from dmlconf.fuzzing.chance import Chance


def test_random_numbers_are_the_same_everywhere() -> None:
    chance = Chance(1, "GATHER", 7)
    numbers = [chance.bits() for _ in range(3)]
    assert numbers == [10828589446410094986, 9814474732793435676, 3693166996152835229]


def test_different_keys_give_different_random_numbers() -> None:
    assert Chance(1, "GATHER").bits() != Chance(1, "TILE").bits()
    assert Chance("1", 2).bits() != Chance("12").bits()


def test_choices_stay_within_their_limits_and_reach_all_values() -> None:
    chance = Chance(0)
    assert {chance.below(3) for _ in range(100)} == {0, 1, 2}
    assert {chance.between(-1, 1) for _ in range(100)} == {-1, 0, 1}
    assert {chance.pick("ab") for _ in range(100)} == {"a", "b"}
    weighted = (("a", 1), ("never", 0), ("b", 2))
    assert {chance.weighted(weighted) for _ in range(100)} == {"a", "b"}
    assert {tuple(chance.shuffled(range(3))) for _ in range(100)} == set(permutations(range(3)))
