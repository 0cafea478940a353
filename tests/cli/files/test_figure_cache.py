"""What an earlier run computed is cached, and used only if cases and recordings are unchanged.

The tested code is in `dmlconf/judging/figure_cache.py`, `dmlconf/engine/against.py` and
`dmlconf/cli/common/cache.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dmlconf.documents.store import Store
from tests.cli.process import dmlconf_here, write

CASE_FILE = """
operator: GEMM
cases:
  - name: products
    note: Each is one product.
    matrix: {Value: "=range(1, 22)"}
    desc:
      ATensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: ["=Value"]}
      BTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [2]}
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}
      TransA: DML_MATRIX_TRANSFORM_NONE
      TransB: DML_MATRIX_TRANSFORM_NONE
      Alpha: 1.0
      Beta: 1.0
    expect: {OutputTensor: ["=2 * Value"]}
"""

COUNT = 21
"""The number of cases in CASE_FILE: a run of fewer than 20 caches nothing."""

Verdicts = dict[str, dict[str, Any]]


def run(
    folder: Path,
    *options: str,
    code: int = 0,
    backend: str = "numpy",
    more: tuple[str, ...] = (),
) -> Verdicts:
    """Run the case file, and return the verdicts of its log by case, without times."""
    log = folder / "run.jsonl"
    log.unlink(missing_ok=True)
    cache = {"DMLCONF_CACHE": str(folder / "cache")}
    arguments = ("run", "gemm.yaml", "-b", backend, "-j", "1", "--log", str(log), *more)
    done = dmlconf_here(folder, *options, *arguments, **cache)
    assert done.returncode == code, done.stderr
    records = map(json.loads, log.read_text("utf-8").splitlines())
    return {
        each["case"]: {name: value for name, value in each.items() if name != "seconds"}
        for each in records
        if each["record"] == "verdict"
    }


def change_cache(folder: Path, part: str, change: Callable[[Any], None]) -> int:
    """Change and count the cached records of a part, such as `figures`."""
    store = Store(folder / "cache" / "figures")
    count = 0
    for path in store.folder.iterdir():
        group = store.get(path.stem)
        if isinstance(group, list):
            continue  # The list of the cases of a recording.
        for record in group[part].values():
            change(record)
            count += 1
        store.put(path.stem, group)
    return count


def change_figures(folder: Path, **figures: Any) -> int:
    """Change these figures of each cached comparison; return the number of comparisons."""
    return change_cache(folder, "figures", lambda outputs: outputs["OutputTensor"].update(figures))


def change_judgements(folder: Path) -> int:
    """Mark each cached judgement's values as recorded; return the number of judgements."""
    return change_cache(folder, "judged", lambda record: record.__setitem__(1, "recorded"))


def provenances(verdicts: Verdicts) -> set[str]:
    return {each["expectation"] for each in verdicts.values()}


def margins(verdicts: Verdicts) -> set[float]:
    """Return the margins of all outputs, each an error as a share of its limit."""
    return {each["figures"]["OutputTensor"]["margin"] for each in verdicts.values()}


def test_a_second_run_takes_figures_from_the_cache(tmp_path: Path) -> None:
    write(tmp_path, CASE_FILE, "gemm.yaml")
    first = run(tmp_path)
    assert len(first) == COUNT
    assert run(tmp_path) == first
    assert change_figures(tmp_path, margin=0.25) == COUNT
    assert margins(run(tmp_path)) == {0.25}, "the second run does not use the cache"
    assert margins(run(tmp_path, "--no-cache")) == {0.0}


CHANGES = pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FLOAT32", "FLOAT16"),
        ("Beta: 1.0", "Beta: 0.5"),
        ("name: products", "name: others"),
        (
            '["=Value"]}\n      BTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [2]}',
            '["=2 * Value"]}\n      BTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}',
        ),
        ("name: products", "name: products\n    tags: [half-precision]"),
        ("    expect:", "    tolerance: {OutputTensor: {ulp: 1}}\n    expect:"),
    ],
)
"""Changes of CASE_FILE; each makes other cases, which pass."""


@CHANGES
def test_cached_figures_are_used_only_for_the_same_case(tmp_path: Path, old: str, new: str) -> None:
    write(tmp_path, CASE_FILE, "gemm.yaml")
    run(tmp_path)
    assert change_figures(tmp_path, margin=0.25) == COUNT
    write(tmp_path, CASE_FILE.replace(old, new), "gemm.yaml")
    assert margins(run(tmp_path)) == {0.0}


def test_cached_figures_are_not_used_for_other_outputs(tmp_path: Path) -> None:
    write(tmp_path, CASE_FILE, "gemm.yaml")
    run(tmp_path)
    assert change_figures(tmp_path) == COUNT
    verdicts = run(tmp_path, code=1, backend="faulty:negated").values()
    assert {each["status"] for each in verdicts} == {"failed"}


def test_cached_figures_are_not_used_for_other_expected_values(tmp_path: Path) -> None:
    write(tmp_path, CASE_FILE, "gemm.yaml")
    run(tmp_path)
    write(tmp_path, CASE_FILE.replace("=2 * Value", "=2 * Value + 1"), "gemm.yaml")
    assert {each["status"] for each in run(tmp_path, code=1).values()} == {"failed"}
    assert change_figures(tmp_path) == COUNT, "figures of a failure were cached"


def test_cached_figures_of_a_failure_are_not_used(tmp_path: Path) -> None:
    write(tmp_path, CASE_FILE, "gemm.yaml")
    first = run(tmp_path)
    assert change_figures(tmp_path, margin=3.0, differing=1) == COUNT
    assert run(tmp_path) == first


def test_cached_figures_that_lack_an_output_are_not_used(tmp_path: Path) -> None:
    write(tmp_path, CASE_FILE, "gemm.yaml")
    first = run(tmp_path)
    assert change_cache(tmp_path, "figures", dict.clear) == COUNT
    assert run(tmp_path) == first


@pytest.mark.slow
def test_cached_figures_of_a_removed_dispute_are_not_used(tmp_path: Path) -> None:
    # The backend `faulty:scaled` returns 1.1 times what is right.
    scaled = CASE_FILE.replace("=2 * Value", "=2.2 * Value")
    disputed = scaled.replace("    expect:", "    disputes: reference\n    expect:")
    write(tmp_path, disputed, "gemm.yaml")
    run(tmp_path, backend="faulty:scaled")
    assert change_figures(tmp_path) == COUNT
    write(tmp_path, scaled, "gemm.yaml")
    verdicts = run(tmp_path, code=1, backend="faulty:scaled").values()
    assert {each["reason"]["kind"] for each in verdicts} == {
        "expectation contradicts the reference"
    }


def test_a_second_run_takes_judgements_from_the_cache(tmp_path: Path) -> None:
    write(tmp_path, CASE_FILE, "gemm.yaml")
    assert provenances(run(tmp_path)) == {"documented"}
    assert change_judgements(tmp_path) == COUNT
    assert provenances(run(tmp_path)) == {"recorded"}, "the second run does not use the cache"


@CHANGES
def test_cached_judgements_are_used_only_for_the_same_entry(
    tmp_path: Path, old: str, new: str
) -> None:
    write(tmp_path, CASE_FILE, "gemm.yaml")
    run(tmp_path)
    assert change_judgements(tmp_path) == COUNT
    write(tmp_path, CASE_FILE.replace(old, new), "gemm.yaml")
    assert provenances(run(tmp_path)) == {"documented"}


UNSTATED = CASE_FILE.replace('    expect: {OutputTensor: ["=2 * Value"]}\n', "")


def record(folder: Path, backend: str) -> None:
    """Record the outcomes of a backend as if they were DirectML's."""
    name = "directml-1.0.dmlrec"
    done = dmlconf_here(folder, "record", "gemm.yaml", "-b", backend, "-o", name)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_cached_judgements_are_used_only_for_the_same_recording(tmp_path: Path) -> None:
    against = ("--against", "recording:directml-1.0.dmlrec")
    write(tmp_path, UNSTATED, "gemm.yaml")
    record(tmp_path, "faulty:level=6_4")
    assert provenances(run(tmp_path, more=against)) == {"recorded"}
    assert change_cache(tmp_path, "judged", lambda record: record.__setitem__(1, "stated")) == COUNT
    assert provenances(run(tmp_path, more=against)) == {"stated"}
    record(tmp_path, "faulty:negated")
    verdicts = run(tmp_path, code=1, more=against).values()
    assert {each["status"] for each in verdicts} == {"failed"}


@pytest.mark.slow
def test_the_cached_list_of_cases_belongs_to_one_recording(
    tmp_path: Path,
) -> None:
    # One of the 22 cases is not recorded at first; the 21 others are enough for a cache.
    write(tmp_path, UNSTATED.replace("range(1, 22)", "range(1, 23)"), "gemm.yaml")
    (tmp_path / "recordings").mkdir()
    one = ("--case", "gemm/gemm/products[Value=5]", "-o", "recordings/one.dmlrec")
    others = ("-k", "not Value=5", "-o", "recordings/one.dmlrec")
    recording = ("record", "gemm.yaml", "-b", "faulty:level=6_4")
    assert dmlconf_here(tmp_path, *recording, *others).returncode == 0
    first = run(tmp_path)
    assert [name for name, each in first.items() if each["status"] == "unchecked"] == [
        "gemm/gemm/products[Value=5]"
    ]
    assert run(tmp_path) == first
    (tmp_path / "recordings" / "one.dmlrec").unlink()
    assert dmlconf_here(tmp_path, *recording, *one).returncode == 0
    assert [name for name, each in run(tmp_path).items() if each["status"] == "passed"] == [
        "gemm/gemm/products[Value=5]"
    ]
    store = Store(tmp_path / "cache" / "figures")
    for path in store.folder.iterdir():
        if isinstance(store.get(path.stem), list):
            store.put(path.stem, [])
        else:
            path.unlink()  # With a cached judgement, a run would not look for a recording.
    assert {each["status"] for each in run(tmp_path, code=7).values()} == {"unchecked"}


def test_cached_facts_are_used_only_for_the_same_entry(
    tmp_path: Path,
) -> None:
    write(tmp_path, CASE_FILE, "gemm.yaml")
    first = run(tmp_path)
    facts = {"Alpha": 7.5}  # The last item of a record holds facts.
    assert change_cache(tmp_path, "cases", lambda record: record.__setitem__(-1, facts)) == COUNT
    assert all(each["facts"] == facts for each in run(tmp_path).values())
    write(tmp_path, CASE_FILE.replace("Alpha: 1.0", "Alpha: 1"), "gemm.yaml")
    assert {each["facts"]["Alpha"] for each in run(tmp_path).values()} == {1}
    write(tmp_path, CASE_FILE, "gemm.yaml")
    assert change_cache(tmp_path, "cases", lambda record: record.clear()) > 0
    assert run(tmp_path) == first, "a damaged record is used"


def test_coverage_after_a_run_is_that_without_the_cache(tmp_path: Path) -> None:
    write(tmp_path, CASE_FILE, "gemm.yaml")
    run(tmp_path)
    command = ("coverage", "gemm.yaml", "-o", "GEMM", "--missing")
    cached = dmlconf_here(tmp_path, *command, DMLCONF_CACHE=str(tmp_path / "cache"))
    assert "10 of 76 documented parts of 1 operator covered" in cached.stdout
    assert cached.stdout == dmlconf_here(tmp_path, "--no-cache", *command).stdout


@pytest.mark.parametrize(
    "command", [("run", "gemm.yaml", "-b", "numpy", "-j", "1"), ("coverage", "gemm.yaml")]
)
def test_a_changed_case_that_breaks_a_constraint_is_refused(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    write(tmp_path, CASE_FILE, "gemm.yaml")
    run(tmp_path)
    # Only the seventh case breaks the constraint; loading checks only the first.
    broken = CASE_FILE.replace(
        "BTensor: {Sizes: [1, 1, 1, 1]", 'BTensor: {Sizes: [1, 1, "=Rows", 1]'
    )
    broken = broken.replace("values: [2]", 'values: "=(2, 2)[:Rows]"')
    broken = broken.replace("    desc:", '    let: {Rows: "=1 + (Value == 7)"}\n    desc:')
    write(tmp_path, broken, "gemm.yaml")
    cache = {"DMLCONF_CACHE": str(tmp_path / "cache")}
    done = dmlconf_here(tmp_path, *command, **cache)
    assert done.returncode == 3
    assert "but expects no rejection" in done.stderr


DIVISIONS = """
operator: ELEMENT_WISE_DIVIDE
cases:
  - name: by-zero
    note: Any quotients are right.
    matrix: {Value: "=range(1, 22)"}
    desc:
      ATensor: {Sizes: [2], DataType: INT8, values: ["=Value", 2]}
      BTensor: {Sizes: [2], DataType: INT8, values: [0, 0]}
      OutputTensor: {Sizes: [2], DataType: INT8}
    expect: {OutputTensor: [0, 2]}
"""


def warnings(folder: Path) -> str:
    """Return what `validate` writes to standard error about the case file, which is valid."""
    done = dmlconf_here(folder, "validate", "gemm.yaml", DMLCONF_CACHE=str(folder / "cache"))
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
def test_validate_judges_no_case_of_which_a_run_has_judged_an_element(tmp_path: Path) -> None:
    write(tmp_path, DIVISIONS, "gemm.yaml")
    assert {each["status"] for each in run(tmp_path, code=7).values()} == {"unchecked"}
    assert "[Value=1] and 20 more: the rules permit any value" in warnings(tmp_path)
    assert change_cache(tmp_path, "cases", lambda record: record.__setitem__(3, True)) == COUNT
    assert warnings(tmp_path) == "", "validate does not use the cache"
    write(tmp_path, DIVISIONS.replace('"=Value"', '"=Value + 1"'), "gemm.yaml")
    assert "the rules permit any value" in warnings(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("divisors", "judged"), [("[0, 0]", False), ("[0, 1]", True)])
def test_a_run_notes_whether_an_element_is_judged(
    tmp_path: Path, divisors: str, judged: bool
) -> None:
    write(tmp_path, DIVISIONS.replace("[0, 0]", divisors), "gemm.yaml")
    run(tmp_path, code=0 if judged else 7)
    noted: list[bool] = []
    assert change_cache(tmp_path, "cases", lambda record: noted.append(record[3])) == COUNT
    assert set(noted) == {judged}
    assert ("the rules permit any value" in warnings(tmp_path)) != judged


@pytest.mark.slow
def test_every_run_warns_of_a_stale_recording(tmp_path: Path) -> None:
    write(tmp_path, UNSTATED, "gemm.yaml")
    (tmp_path / "recordings").mkdir()
    recording = ("record", "gemm.yaml", "-b", "faulty:level=6_4", "-o", "recordings/one.dmlrec")
    assert dmlconf_here(tmp_path, *recording).returncode == 0
    write(tmp_path, UNSTATED.replace("values: [2]", "values: [3]"), "gemm.yaml")
    arguments = ("run", "gemm.yaml", "-b", "faulty:level=5_0", "-j", "1")
    for _ in range(2):
        done = dmlconf_here(tmp_path, *arguments, DMLCONF_CACHE=str(tmp_path / "cache"))
        assert f"PASSED: {COUNT} passed" in done.stdout
        assert "one.dmlrec has another desc" in done.stderr
        assert change_figures(tmp_path) == COUNT, "the second run would find no figures"
