"""A backend that violates its protocol breaks the cases concerned, or is refused; the run goes on.

The tested code is in `dmlconf/workers/boundary.py` (checks of what a backend returns),
`dmlconf/workers/batch.py`, `dmlconf/workers/worker.py` and `dmlconf/backends/errors.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.backends.installing import plugin
from tests.cli.process import dmlconf, dmlconf_here

CASES = """
operator: TILE
cases:
  - matrix: {{Number: "=range({count})"}}
    desc:
      InputTensor: {{Sizes: [2], DataType: FLOAT32, values: [1, 2]}}
      OutputTensor: {{Sizes: [4], DataType: FLOAT32}}
      Repeats: [2]
    expect: {{OutputTensor: [1, 2, 1, 2]}}
"""
"""A file of `count` equal cases."""

BACKEND = '''
"""A backend that misbehaves in the way that its option names, most often at its third case.

With the option `malformed`, cases 1, 3, 5 and so on have the outcomes of `OUTCOMES` in their order;
with `unusual`, those of `HARMLESS`.
"""

import math
import sys
from dataclasses import replace

import numpy as np

from dmlconf.backends.numpy.backend import create as reference, run_case
from dmlconf.backends.protocol import Breakdown, Environment, Fault, FaultKind, Outputs, Rejection
from dmlconf.tensors.sample import Sample


class Poison:
    """Can be pickled; to unpickle it raises an error."""

    def __reduce__(self):
        return _raise, ()


class PoisonArray(np.ndarray):
    """An array that is an ordinary one, except that to unpickle it raises an error."""

    def __reduce__(self):
        return _raise, ()


class Explosive(Outputs):
    """Outputs that raise an error if anything reads one of their fields."""

    def __getattribute__(self, name):
        raise RuntimeError("do not touch")


class Mute(Exception):
    """An exception that raises another one if it is converted to text."""

    def __str__(self):
        raise RuntimeError("no text")


def _raise():
    raise RuntimeError("unpickled")


def sample(indices, values):
    at, elements = np.array(indices, np.int64), np.array(values, np.float32)
    return Sample(np.dtype(np.float32), (4,), "0" * 64, at, elements)


RIGHT = np.array([1, 2, 1, 2], np.float32)
NAME = "OutputTensor"
OUTCOMES = {
    "none": None,
    "a number": 5,
    "a class": Outputs,
    "arrays as lists": Outputs({NAME: [1, 2, 1, 2]}),
    "arrays in a list": Outputs([RIGHT]),
    "no arrays": Outputs(None),
    "objects": Outputs({NAME: np.array([1, 2, 1, None], object)}),
    "text elements": Outputs({NAME: np.array(["a"] * 4)}),
    "a name that is no text": Outputs({5: RIGHT}),
    "NaN seconds": Outputs({NAME: RIGHT}, math.nan),
    "negative seconds": Outputs({NAME: RIGHT}, -1.0),
    "seconds as text": Outputs({NAME: RIGHT}, "1"),
    "a fault that is text": Outputs({NAME: RIGHT}, 0.0, ("broken",)),
    "a number instead of faults": Outputs({NAME: RIGHT}, 0.0, 5),
    "an unknown kind of fault": Outputs({NAME: RIGHT}, 0.0, (Fault("rusty", "squeaks"),)),
    "elements as text": Outputs({NAME: RIGHT}, 0.0, (Fault(FaultKind.INPUT, "x", NAME, "1"),)),
    "a fault of no output": Outputs({NAME: RIGHT}, 0.0, (Fault(FaultKind.INPUT, "x", "No"),)),
    "no elements of no output": Outputs(
        {NAME: RIGHT}, 0.0, (Fault(FaultKind.INPUT, "x", elements=np.array([], int)),)
    ),
    "a sample beyond the end": Outputs({}, samples={NAME: sample([0, 4], [1, 2])}),
    "a sample of fewer elements than indices": Outputs({}, samples={NAME: sample([0, 3], [1])}),
    "a sample of one element": Outputs({}, samples={NAME: sample([3], [2])}),
    "elements beyond the end": Outputs(
        {NAME: RIGHT}, 0.0, (Fault(FaultKind.INPUT, "x", NAME, np.array([4])),)
    ),
    "more elements than memory": Outputs({NAME: np.broadcast_to(RIGHT[0], (1 << 40,))}),
    "infinite dispatch seconds": Outputs({NAME: RIGHT}, 0.0, (), (math.inf,)),
    "endless faults": Outputs({NAME: RIGHT}, 0.0, iter(lambda: Fault(FaultKind.INPUT, "x"), 5)),
    "no stage": Rejection(None, "E_FAIL"),
    "constraints as text": Rejection("CreateOperator", "E_INVALIDARG", "all"),
    "an unknown breakdown": Breakdown("tired", "wants to sleep"),
    "no message": Breakdown("crash", None),
    "poison in place of text": Breakdown("crash", Poison()),
    "explosive": Explosive({}),
}
HARMLESS = {
    "a poisonous array": Outputs({NAME: RIGHT.view(PoisonArray)}),
    "another order of bytes": Outputs({NAME: RIGHT.astype(">f4")}),
    "every second element": Outputs({NAME: np.repeat(RIGHT, 2)[::2]}),
    "seconds of NumPy": Outputs({NAME: RIGHT}, np.float32(0.5)),
}


class Unruly:
    def __init__(self, what):
        self.what = what
        print("printed as it starts")
        if what == "exits as it starts":
            sys.exit(0)
        if what == "mute as it starts":
            raise Mute

    def environment(self):
        right = reference("").environment()
        return {
            "no environment": None,
            "a version that is a number": replace(right, version=5),
            "endless details": replace(right, details={"a": "x" * 1_000_000}),
            "poisonous details": replace(right, details={"a": Poison()}),
        }.get(self.what, right)

    def capabilities(self):
        right = reference("").capabilities()
        return {
            "no capabilities": 5,
            "a level as text": replace(right, feature_level="6_4"),
            "unknown data types": replace(right, data_types=frozenset({"FLOAT3"})),
        }.get(self.what, right)

    def close(self):
        raise RuntimeError("does not close")

    def run(self, cases):
        if self.what == "nothing":
            return None
        return self._outcomes(cases)

    def _outcomes(self, cases):
        odd = {"malformed": OUTCOMES, "unusual": HARMLESS}.get(self.what, {})
        for case in cases:
            print("printed", flush=True)
            number = int(case.identifier.partition("=")[2].rstrip("]"))
            if odd and number % 2:
                yield list(odd.values())[number // 2]
                continue
            if "=2]" in case.identifier:
                if self.what == "too few":
                    return
                if self.what == "exits":
                    sys.exit(0)
                if self.what == "mute":
                    raise Mute
                if self.what == "longer":
                    yield Outputs({NAME: np.repeat(RIGHT, 2)})
                    continue
                if self.what == "surrogates":
                    raise RuntimeError("half \\udc80")
                if self.what in ("too many", "endless"):
                    yield run_case(case)
                while self.what == "endless":
                    yield run_case(case)
            yield run_case(case)


create = Unruly
'''

# BACKEND is text: the keys of its dictionaries are read from its lines.
_NAMES_OF_OUTCOMES = [
    line.split('"')[1]
    for line in BACKEND.split("OUTCOMES = {")[1].split("\nHARMLESS")[0].splitlines()
    if line.startswith('    "')
]
_NAMES_OF_HARMLESS = [
    line.split('"')[1]
    for line in BACKEND.split("HARMLESS = {")[1].split("\n}\n")[0].splitlines()
    if line.startswith('    "')
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install_and_write_cases(tmp_path, monkeypatch)


def install_and_write_cases(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the plugin, and write five cases, into a folder; return the folder."""
    plugin(folder, monkeypatch, "unruly", BACKEND)
    (folder / "case.yaml").write_text(CASES.format(count=5), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder / "plugin"))
    return folder


def run(folder: Path, misbehaviour: str, *, cases: int = 5) -> tuple[int, list[Verdict]]:
    """Return the exit code and verdicts of a run whose backend has the option `misbehaviour`."""
    done = dmlconf(
        folder,
        "run",
        "case.yaml",
        "-b",
        f"unruly:{misbehaviour}",
        "--log",
        "run.jsonl",
        "--report",
        "json",
        "--report",
        "markdown:x.md",
        "--report",
        "junit:x.xml",
    )
    assert done.returncode in (0, 1), done.stderr
    assert "bug in dmlconf itself" not in done.stderr  # A plugin's own traceback may be shown.
    report = json.loads(done.stdout)  # What the plugin prints is not in the report.
    assert len(report["verdicts"]) == cases
    return done.returncode, list(read_log(folder / "run.jsonl").verdicts)


def run_five_cases(folder: Path, misbehaviour: str) -> tuple[int, list[Status], str]:
    """Run five cases; return the exit code, every status, and the message about the third case."""
    code, verdicts = run(folder, misbehaviour)
    reason = verdicts[2].reason
    return code, [verdict.status for verdict in verdicts], reason.message if reason else ""


def verdicts_around_each(
    paths: pytest.TempPathFactory, misbehaviour: str, names: Sequence[str]
) -> tuple[int, dict[str, list[Verdict]]]:
    """Run cases, of which number 2 * i + 1 has the outcome `names[i]`, and the others right ones.

    Return the exit code, and for each name the verdicts on its case and on both neighbours.
    """
    count = 2 * len(names) + 1
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = install_and_write_cases(paths.mktemp(misbehaviour), monkeypatch)
        (folder / "case.yaml").write_text(CASES.format(count=count), encoding="utf-8")
        code, verdicts = run(folder, misbehaviour, cases=count)
    return code, {name: verdicts[2 * i : 2 * i + 3] for i, name in enumerate(names)}


@pytest.fixture(scope="module")
def malformed(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, list[Verdict]]]:
    return verdicts_around_each(tmp_path_factory, "malformed", _NAMES_OF_OUTCOMES)


@pytest.fixture(scope="module")
def unusual(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, list[Verdict]]]:
    return verdicts_around_each(tmp_path_factory, "unusual", _NAMES_OF_HARMLESS)


THIRD_BROKEN = [Status.PASSED, Status.PASSED, Status.BROKEN, Status.PASSED, Status.PASSED]


@pytest.mark.slow
@pytest.mark.parametrize("misbehaviour", _NAMES_OF_OUTCOMES)
def test_a_malformed_outcome_breaks_only_its_own_case(
    malformed: tuple[int, dict[str, list[Verdict]]], misbehaviour: str
) -> None:
    code, verdicts = malformed
    before, concerned, after = verdicts[misbehaviour]
    assert code == 1
    assert (before.status, concerned.status, after.status) == (
        Status.PASSED,
        Status.BROKEN,
        Status.PASSED,
    )
    assert concerned.reason is not None
    assert concerned.reason.message.startswith("the backend ")


@pytest.mark.breakdown
@pytest.mark.parametrize("misbehaviour", ["too few", "exits", "mute", "surrogates"])
def test_backend_that_stops_in_a_batch_breaks_one_case(folder: Path, misbehaviour: str) -> None:
    code, actual, _ = run_five_cases(folder, misbehaviour)
    assert (code, actual) == (1, THIRD_BROKEN)


@pytest.mark.breakdown
@pytest.mark.parametrize("misbehaviour", ["too many", "endless"])
def test_too_many_outcomes_break_the_last_case(folder: Path, misbehaviour: str) -> None:
    code, actual, _ = run_five_cases(folder, misbehaviour)
    assert (code, actual) == (1, [Status.PASSED] * 4 + [Status.BROKEN])
    last = read_log(folder / "run.jsonl").verdicts[4].reason
    assert last is not None
    assert "more than 5 outcomes for the batch of 5 cases" in last.message
    # In a batch of one case, this case is the last.
    alone = dmlconf(folder, "run", "case.yaml", "-k", "=2", "-b", f"unruly:{misbehaviour}")
    assert alone.returncode == 1
    assert "1 broken" in alone.stdout


@pytest.mark.slow
def test_none_in_place_of_outcomes_breaks_every_case(folder: Path) -> None:
    code, actual, message = run_five_cases(folder, "nothing")
    assert (code, actual) == (1, [Status.BROKEN] * 5)
    assert "NoneType" in message


@pytest.mark.slow
@pytest.mark.parametrize("misbehaviour", _NAMES_OF_HARMLESS)
def test_right_outcomes_of_unusual_form_pass(
    unusual: tuple[int, dict[str, list[Verdict]]], misbehaviour: str
) -> None:
    code, verdicts = unusual
    assert code == 0
    assert [verdict.status for verdict in verdicts[misbehaviour]] == [Status.PASSED] * 3


@pytest.mark.parametrize(
    ("misbehaviour", "message"),
    [
        ("no environment", "it returned None, not Environment"),
        ("a version that is a number", "version is 5, not text"),
        ("endless details", "details has 1,000,009 characters as JSON"),
        ("no capabilities", "it returned 5, not Capabilities"),
        ("a level as text", "feature_level is '6_4', not a FeatureLevel"),
        ("unknown data types", "data_types is 'FLOAT3', not a DataType"),
        ("exits as it starts", "its process ended with exit code 0 at the start"),
        ("mute as it starts", "Mute: an exception whose text raises another one"),
    ],
)
def test_backend_that_cannot_start_or_describe_itself_is_refused(
    folder: Path, misbehaviour: str, message: str
) -> None:
    done = dmlconf_here(folder, "run", "case.yaml", "-b", f"unruly:{misbehaviour}")
    assert done.returncode == 4
    assert "Error: " in done.stderr
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_details_that_cannot_be_unpickled_break_no_case(folder: Path) -> None:
    code, actual, _ = run_five_cases(folder, "poisonous details")
    assert (code, actual) == (0, [Status.PASSED] * 5)


@pytest.mark.slow
def test_malformed_outcome_is_an_error_of_the_backend(
    malformed: tuple[int, dict[str, list[Verdict]]],
) -> None:
    reason = malformed[1]["arrays as lists"][1].reason
    assert reason is not None
    assert reason.kind is ReasonKind.BACKEND_ERROR
    assert "arrays['OutputTensor'] is a list, not a NumPy array" in reason.message


@pytest.mark.slow
def test_output_with_too_many_elements_is_a_failure(folder: Path) -> None:
    code, verdicts = run(folder, "longer")
    assert code == 1
    two_passed = [Status.PASSED, Status.PASSED]
    assert [each.status for each in verdicts] == [*two_passed, Status.FAILED, *two_passed]
    reason = verdicts[2].reason
    assert reason is not None
    assert reason.kind is ReasonKind.WRONG_SIZES
