"""`--challenge NUMBER` makes most fills generate other data.

Cases that are documented or state their outputs keep their data.

The tested code is in `dmlconf/tensors/fills.py`, `dmlconf/cases/building/operator_build.py`,
`dmlconf/cases/model.py`, `dmlconf/cases/loading/rewrites.py`, `dmlconf/cli/options/selection.py`,
`dmlconf/cli/runs/run_target.py`, `dmlconf/cli/commands/running/show.py`,
`dmlconf/reports/runs/heading.py` and `dmlconf/reports/runs/summary.py` (the command that repeats a
case).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.loading.rewrites import rewritten
from dmlconf.cases.model import Case
from dmlconf.resources import cases_directory
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.fills import FILLS, challenged, fill
from tests.cli.process import dmlconf_here

SUITE = """\
operator: ELEMENT_WISE_ADD
cases:
  - name: generated
    desc: &desc
      ATensor: {Sizes: [1, 1, 4, 5], DataType: FLOAT32, fill: {uniform: {low: 0, high: 1, seed: 1}}}
      BTensor: {Sizes: [1, 1, 4, 5], DataType: FLOAT32, fill: {uniform: {low: 0, high: 1, seed: 2}}}
      OutputTensor: {Sizes: [1, 1, 4, 5], DataType: FLOAT32}
  - name: equal
    desc:
      ATensor: {Sizes: [1, 1, 4, 5], DataType: FLOAT32, fill: {uniform: {low: 0, high: 1}}}
      BTensor: {Sizes: [1, 1, 4, 5], DataType: FLOAT32, fill: {uniform: {low: 0, high: 1, seed: 0}}}
      OutputTensor: {Sizes: [1, 1, 4, 5], DataType: FLOAT32}
  - name: mixed
    desc:
      ATensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [1, 2]}
      BTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, fill: {integers: {low: 1, high: 9}}}
      OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}
  - name: documented
    tags: [documented]
    desc: *desc
  - name: stated
    desc:
      ATensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, fill: {integers: {low: 0, high: 99}}}
      BTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [.nan]}
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}
    expect: {OutputTensor: [.nan]}
"""
"""A challenge changes only the fills of `generated`, `equal` and `mixed`."""

GRAPH = """\
graph: a rewritten graph that states its output
cases:
  - name: clip
    inputs:
      x: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, fill: {uniform: {low: 7, high: 9, seed: 1}}}
    nodes:
      c: {operator: ACTIVATION_RELU, desc: {InputTensor: x, OutputTensor: {}}}
      y: {operator: ELEMENT_WISE_CLIP, desc: {InputTensor: c, OutputTensor: {}, Min: -6, Max: 6}}
    outputs: {y: y}
    expect: {y: [6, 6]}
    origin: every number is above 6
    rewrite:
      name: drop-relu-before-clip
      breaks: minimum-is-not-negative
      nodes:
        y: {operator: ELEMENT_WISE_CLIP, desc: {InputTensor: x, OutputTensor: {}, Min: -6, Max: 6}}
"""
"""A graph that states its output, with the graph into which a compiler could rewrite it."""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """The folder `add`, which holds SUITE."""
    folder = tmp_path / "add"
    folder.mkdir()
    (folder / "small.yaml").write_text(SUITE)
    return folder


def cases(folder: Path, challenge: int | None) -> dict[str, Case]:
    """Return the cases of a folder by name, built with a challenge unless it is None."""
    plan = load_suite([folder], challenge=challenge).plan()
    return {planned.identifier.rpartition("/")[2]: build(planned) for planned in plan}


def same(a: Case, b: Case, name: str = "ATensor") -> bool:
    return np.array_equal(a.inputs()[name], b.inputs()[name], equal_nan=True)


def test_challenge_changes_generated_data_but_no_desc(suite: Path) -> None:
    plain, with_challenge, other = (cases(suite, number) for number in (None, 1, 2))
    assert plain.keys() == with_challenge.keys()
    for name in ("ATensor", "BTensor"):
        assert not same(plain["generated"], with_challenge["generated"], name)
        assert not same(with_challenge["generated"], other["generated"], name)
    assert with_challenge["generated"].desc == plain["generated"].desc
    assert with_challenge["generated"].identifier == plain["generated"].identifier


def test_the_same_challenge_gives_the_same_data(suite: Path) -> None:
    largest = 2**64 - 1
    for name, case in cases(suite, largest).items():
        again = cases(suite, largest)[name]
        assert same(case, again)
        assert same(case, again, "BTensor")


def test_equal_tensors_stay_equal_under_a_challenge(suite: Path) -> None:
    with_challenge = cases(suite, 7)
    equal, generated = with_challenge["equal"].inputs(), with_challenge["generated"].inputs()
    assert np.array_equal(equal["ATensor"], equal["BTensor"])
    assert not np.array_equal(generated["ATensor"], generated["BTensor"])


def test_challenge_keeps_listed_documented_and_stated_data(
    suite: Path,
) -> None:
    plain, with_challenge = cases(suite, None), cases(suite, 1)
    assert same(plain["mixed"], with_challenge["mixed"])
    assert not same(plain["mixed"], with_challenge["mixed"], "BTensor")
    for name in ("documented", "stated"):
        assert same(plain[name], with_challenge[name])
        assert same(plain[name], with_challenge[name], "BTensor")


def test_rewritten_graph_has_the_data_of_its_challenged_case(
    tmp_path: Path,
) -> None:
    (tmp_path / "clip.yaml").write_text(GRAPH)
    [planned] = load_suite([tmp_path], challenge=7).plan()
    data, data_of_mutant = build(planned).inputs()["x"], rewritten(planned).inputs()["x"]
    assert np.array_equal(data, data_of_mutant)


def test_challenged_data_stays_within_the_range_of_its_fill(suite: Path) -> None:
    for challenge in range(1, 30):
        data = cases(suite, challenge)["mixed"].inputs()["BTensor"]
        assert ((data >= 1) & (data <= 9)).all()


def test_only_constants_and_periodic_sequences_keep_their_data() -> None:
    assert challenged("constant", {"value": 3}, 5) == {"value": 3}
    assert challenged("sequence", {"start": 1, "period": 3}, 5) == {"start": 1, "period": 3}
    assert challenged("sequence", {"start": 1}, 5) != {"start": 1}
    others = FILLS.keys() - {"constant", "sequence"}
    assert others
    for name in others:
        assert challenged(name, {"seed": 1}, 5) != {"seed": 1}


def specials(seed: int, challenge: int | None = None) -> Array:
    """Return 26 numbers of the fill `specials`, which repeats its 13 numbers of FLOAT32."""
    arguments: Mapping[str, Any] = {"seed": seed}
    if challenge is not None:
        arguments = challenged("specials", arguments, challenge)
    return fill("specials", (26,), DataType.FLOAT32, arguments)


def pairs_of(one: Array, other: Array) -> set[tuple[bytes, bytes]]:
    """Return the pairs of numbers at the same index, as bytes."""
    return {(a.tobytes(), b.tobytes()) for a, b in zip(one, other, strict=True)}


def test_challenge_keeps_the_pairs_of_special_numbers() -> None:
    usual = pairs_of(specials(0), specials(5))
    for challenge in range(1, 20):
        assert pairs_of(specials(0, challenge), specials(5, challenge)) == usual


def test_largest_seed_does_not_overflow_under_a_challenge() -> None:
    # NumPy adds seeds and indices in INT64.
    largest = 2**63 - 1
    assert len(specials(largest, 1)) == 26
    with pytest.raises(OverflowError):
        specials(largest + 1)


@pytest.mark.parametrize("data_type", DataType)
def test_challenged_sequence_keeps_its_count_of_different_numbers(
    data_type: DataType,
) -> None:
    for challenge in range(1, 20):
        arguments = challenged("sequence", {"start": 2}, challenge)
        plain = fill("sequence", (100,), data_type, {"start": 2})
        changed = fill("sequence", (100,), data_type, arguments)
        assert len(np.unique(changed)) == len(np.unique(plain))
        # With 4 bits, a challenge may shift the sequence by its whole period.
        assert data_type.bits < 8 or not np.array_equal(changed, plain)


def test_run_and_show_take_a_challenge_and_reports_name_it(suite: Path, tmp_path: Path) -> None:
    done = dmlconf_here(
        tmp_path,
        "run",
        "add",
        "-b",
        "faulty:scaled",
        "--challenge",
        "77",
        "--report",
        "json:r.json",
    )
    assert done.returncode == 1
    assert "5 cases, challenge 77" in done.stdout
    assert "--challenge 77 --case element_wise_add/small/generated" in done.stdout
    assert json.loads((tmp_path / "r.json").read_text())["run"]["options"]["challenge"] == 77
    shown = [
        dmlconf_here(tmp_path, "show", "element_wise_add/small/generated", "add", *more).stdout
        for more in ((), ("--challenge", "1"), ("--challenge", "2"))
    ]
    assert len(set(shown)) == 3, "each challenge shows other data"


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", str(2**64)])
def test_invalid_challenge_is_refused(suite: Path, tmp_path: Path, number: str) -> None:
    done = dmlconf_here(tmp_path, "run", "add", "--challenge", number)
    assert done.returncode == 2
    assert "Invalid value for '--challenge'" in done.stderr


def test_recording_passes_only_with_its_own_challenge(suite: Path, tmp_path: Path) -> None:
    # `faulty:level=6_4` has no fault. A recording of numpy may not judge numpy.
    process = dmlconf_here(
        tmp_path, "record", "add", "-b", "faulty:level=6_4", "-o", "r.dmlrec", "--challenge", "5"
    )
    assert process.returncode == 0
    same_challenge = dmlconf_here(
        tmp_path, "run", "add", "-b", "recording:r.dmlrec", "--challenge", "5", "-q"
    )
    assert same_challenge.returncode == 0
    assert "5 passed" in same_challenge.stdout
    for other in (("--challenge", "6"), ()):
        done = dmlconf_here(tmp_path, "run", "add", "-b", "recording:r.dmlrec", *other)
        assert done.returncode == 1
        # No challenge changes the data of the cases `documented` and `stated`.
        assert "3 of 5 cases fail the run (3 broken); 2 passed" in done.stdout
        assert "the recording has a different desc or different inputs" in done.stdout


@pytest.mark.slow
def test_challenge_makes_no_recording_of_the_suite_stale(tmp_path: Path) -> None:
    folder = cases_directory() / "gather"
    done = dmlconf_here(tmp_path, "run", folder, "--challenge", "5", "-q")
    assert done.returncode == 0
    assert "Record again" not in done.stderr
