"""`diagnose --order` finds the earlier cases without which a case would pass.

A plugin keeps state from one case to the next.

The tested code is in `dmlconf/diagnosis/order_dependence.py`, `dmlconf/cli/runs/diagnose_order.py`,
`dmlconf/cli/commands/results/diagnose.py`, `dmlconf/reports/runs/remarks.py` and
`dmlconf/cli/options/selection.py`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.diagnosis.order_dependence import minimal
from dmlconf.run_log.log import read_log
from tests.backends.installing import plugin
from tests.cli.process import dmlconf_here

PLUGIN = '''
import os
from dmlconf.backends.registry import create as other, parse
from dmlconf.backends.protocol import Outputs

class Backend:
    """Negates `alone`; after `first` and `second`, also `victim`, and crashes at `fragile`."""
    def __init__(self):
        self.inner = other(parse("faulty:zeros,on=nothing-at-all"))
        self.met = set()
    def environment(self): return self.inner.environment()
    def capabilities(self): return self.inner.capabilities()
    def close(self): self.inner.close()
    def run(self, cases):
        for case, outcome in zip(cases, self.inner.run(cases)):
            name = case.identifier.rpartition("/")[2]
            self.met.add(name)
            if name == "fragile" and {"first", "second"} <= self.met:
                os._exit(9)
            wrong = name == "alone" or name == "victim" and {"first", "second"} <= self.met
            if wrong:
                outcome = Outputs({key: -array for key, array in outcome.arrays.items()})
            yield outcome

def create(options):
    return Backend()
'''

CASE = """  - name: {name}
    note: Two by two.
    desc:
      InputTensor: {{Sizes: [2], DataType: FLOAT32, values: [1, 2]}}
      OutputTensor: {{Sizes: [4], DataType: FLOAT32}}
      Repeats: [2]
    expect: {{OutputTensor: [1, 2, 1, 2]}}
"""

EARLIER = [*(f"case-{n}" for n in range(20)), "first", "mid", "second"]
"""Cases that pass; after `first` and `second`, `fragile` crashes."""

NAMES = ["alone", *(f"case-{n}" for n in range(9)), "first", "mid", "second", "last", "victim"]
"""Cases of which `alone` and `victim` fail."""


def write_cases(folder: Path, names: Sequence[str]) -> None:
    cases = "operator: TILE\ncases:\n" + "".join(CASE.format(name=name) for name in names)
    (folder / "tile.yaml").write_text(cases)


ENOUGH_TIME = ("--time", "100000")
"""An option of `diagnose`; the default of a minute may be too short on a slow machine."""


@pytest.fixture(autouse=True)
def _cases_and_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the plugin, and write the cases NAMES."""
    plugin(tmp_path, monkeypatch, "keeping", PLUGIN)
    write_cases(tmp_path, NAMES)


@pytest.mark.diagnosis
def test_the_smallest_sequence_is_found_and_repeats_the_failure(tmp_path: Path) -> None:
    run = ("run", "-b", "keeping", "-q", "-j", "1")
    done = dmlconf_here(tmp_path, *run, "tile.yaml", "--log", "run.jsonl")
    assert done.returncode == 1, done.stdout + done.stderr
    asked = ("diagnose", "--order", *ENOUGH_TIME, "run.jsonl", "-o", "out")
    done = dmlconf_here(tmp_path, *asked)
    assert done.returncode == 0, done.stdout + done.stderr
    alone, victim = done.stdout.split("tile/tile/victim\n")
    assert "none: it fails alone in a new process, too" in alone
    assert "fails only after 2 of the 14 cases that came before it in its process" in victim
    [file] = (tmp_path / "out").glob("*/sequence.txt")
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert lines == ["tile/tile/first", "tile/tile/second", "tile/tile/victim"]
    again = dmlconf_here(tmp_path, *run, "tile.yaml", "--cases", str(file))
    assert again.returncode == 1
    assert (
        f"repeat   dmlconf run tile.yaml -b keeping -j 1 --cases out/{file.parent.name}" in victim
    )
    assert "1 of 3 cases fails the run" in again.stdout + again.stderr
    file.write_text("\n".join(lines[1:]))
    assert dmlconf_here(tmp_path, *run, "tile.yaml", "--cases", str(file)).returncode == 0


@pytest.mark.diagnosis
def test_repeating_command_has_the_challenge_of_the_run(tmp_path: Path) -> None:
    run = ("run", "-b", "keeping", "-q", "-j", "1", "--challenge", "7", "tile.yaml")
    assert dmlconf_here(tmp_path, *run, "--log", "run.jsonl").returncode == 1
    done = dmlconf_here(tmp_path, "diagnose", "--order", "run.jsonl", "-o", "out")
    assert "repeat   dmlconf run tile.yaml -b keeping -j 1 --challenge 7 --cases " in done.stdout


@pytest.mark.diagnosis
@pytest.mark.parametrize(
    ("remaining", "expected_text"),
    [
        (
            ["mid", "second", "victim"],
            "failed neither alone nor after the 2 cases that came before it in its process\n"
            "  note     the suite does not have 12 cases of the log that came before it\n",
        ),
        (
            ["victim"],
            "did not fail alone, and the suite has none of the cases that came before it\n"
            "  note     the suite does not have 14 cases of the log that came before it\n",
        ),
    ],
)
def test_cases_that_the_suite_now_lacks_are_reported(
    tmp_path: Path, remaining: list[str], expected_text: str
) -> None:
    run = ("run", "-b", "keeping", "-q", "-j", "1", "tile.yaml", "--log", "run.jsonl")
    assert dmlconf_here(tmp_path, *run).returncode == 1
    write_cases(tmp_path, remaining)
    done = dmlconf_here(tmp_path, "diagnose", "--order", "run.jsonl")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.startswith("Warning: the log: there is no case tile/tile/alone")
    alone, victim = done.stdout.split("tile/tile/victim\n")
    assert alone == "tile/tile/alone\n  order    unknown: the suite does not have it\n"
    assert victim.startswith(f"  order    it {expected_text}")


@pytest.mark.diagnosis
@pytest.mark.parametrize(
    "last", [["fragile"], [*(f"later-{n}" for n in range(3)), "fragile", "last"]]
)
def test_crash_is_reported_with_the_earlier_cases_it_needs(tmp_path: Path, last: list[str]) -> None:
    # A batch has 16 cases; `first` and `second` are in an earlier one than `fragile`.
    write_cases(tmp_path, [*EARLIER, *(f"more-{n}" for n in range(9)), *last])
    run = ("run", "-b", "keeping", "-j", "1", "tile.yaml")
    done = dmlconf_here(tmp_path, *run, "--log", "run.jsonl")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Broke down, though every case ran through when it ran again" in done.stdout
    # All cases without an outcome at the crash ran again. On a slow machine, the outcomes of some
    # cases before `fragile` had arrived.
    verdicts = read_log(tmp_path / "run.jsonl").verdicts
    ran_again = [each.case for each in verdicts if each.execution.process != 1]
    suspects = [f"tile/tile/{name}" for name in last[-len(ran_again) :]]
    assert sorted(ran_again) == sorted(suspects)
    assert "tile/tile/fragile" in suspects
    others = f" or one of {len(suspects) - 1} that ran with it" if len(suspects) > 1 else ""
    crash = f"  crash at {suspects[0]}{others}: its process ended with exit code 9\n"
    assert crash in done.stdout
    assert "cases before it may matter: dmlconf diagnose --order" in done.stdout
    without_option = dmlconf_here(tmp_path, "diagnose", "run.jsonl")
    assert without_option.returncode == ExitCode.NOTHING_SELECTED
    assert "try --order" in without_option.stderr

    asked = ("diagnose", "--order", *ENOUGH_TIME, "run.jsonl", "-o", "out")
    found = dmlconf_here(tmp_path, *asked)
    assert found.returncode == 0, found.stdout + found.stderr
    title, rest = found.stdout.split("\n", 1)
    assert title == "tile/tile/fragile"
    count = len(EARLIER) + 9 + last.index("fragile")
    assert f"crashes only after 2 of the {count} cases that came before it in its process" in rest
    [file] = (tmp_path / "out").glob("*/sequence.txt")
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert lines == [f"tile/tile/{name}" for name in ("first", "second", "fragile")]
    again = dmlconf_here(tmp_path, *run, "--cases", str(file))
    assert "crash at tile/tile/" in again.stdout


@pytest.mark.diagnosis
def test_crash_of_a_case_alone_needs_no_earlier_case(tmp_path: Path) -> None:
    run = ("run", "-b", "faulty:crash,on=first", "-q", "-j", "1", "tile.yaml")
    done = dmlconf_here(tmp_path, *run, "--log", "run.jsonl")
    assert done.returncode == 1
    assert "Broke down, though" not in done.stdout
    found = dmlconf_here(tmp_path, "diagnose", "--order", "run.jsonl")
    assert found.returncode == 0
    assert found.stdout == (
        "tile/tile/first\n  order    none: it crashes alone in a new process, too\n"
        "  runs     1 sequence\n"
    )


@pytest.mark.slow
def test_impossible_output_folder_is_refused_before_the_search(tmp_path: Path) -> None:
    run = ("run", "-b", "keeping", "-q", "-j", "1", "tile.yaml", "--log", "run.jsonl")
    assert dmlconf_here(tmp_path, *run).returncode == 1
    for order in ((), ("--order",)):
        done = dmlconf_here(tmp_path, "diagnose", *order, "run.jsonl", "-o", "tile.yaml/x")
        assert (done.returncode, done.stdout) == (2, "")
        assert "-o tile.yaml/x: Not a directory" in done.stderr


def fails_with(needed: Sequence[str], tried: list[Sequence[str]], part: Sequence[str]) -> bool:
    tried.append(part)
    return set(needed) <= set(part)


def test_minimal_finds_exactly_the_cases_that_a_failure_needs() -> None:
    source = random.Random(5)
    for count in (1, 2, 3, 7, 40):
        items = [str(n) for n in range(count)]
        for needed in (source.sample(items, min(count, size)) for size in (1, 2, 5)):
            tried: list[Sequence[str]] = []
            found, whole = minimal(items, partial(fails_with, needed, tried), math.inf)
            assert (sorted(found), whole) == (sorted(needed), True)
            assert list(found) == [item for item in items if item in found]
            assert len(tried) <= 6 * len(needed) * (count.bit_length() + 1)


def test_minimal_returns_all_items_if_no_time_is_left() -> None:
    assert minimal(["a", "b"], lambda part: True, 0.0) == (("a", "b"), False)


def test_order_without_a_log_is_refused(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "diagnose", "--order", "tile/documented/x", "-b", "numpy")
    assert done.returncode == 2
    assert "--order needs the LOG of a run, which says what came before; " in done.stderr
    assert "there is no file tile/documented/x" in done.stderr
