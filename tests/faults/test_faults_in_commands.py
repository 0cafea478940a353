"""`run`, `diagnose`, `fuzz` and fleets name known faults, and excuse no other failure.

The tested code is in `dmlconf/excuses/known_faults.py`, `dmlconf/judging/conclusion.py`,
`dmlconf/diagnosis/diagnose.py`, `dmlconf/fleet/service.py`, `dmlconf/cli/commands/running/run.py`,
`dmlconf/cli/commands/running/fuzz.py`, `dmlconf/cli/commands/results/diagnose.py`,
`dmlconf/reports/runs/remarks.py` and `dmlconf/reports/diagnoses/report.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dmlconf
from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.backends.registry import parse
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.catalogue.loader import catalogue_digest
from dmlconf.fleet.service import Batch, Job, finish, prepare, run_cases
from dmlconf.fuzzing.operators import operator_case
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.workers.execution import Limits
from tests.cli.process import dmlconf_here
from tests.faults.recordings import directml_recording

LOW_WORDS = "int64-low-words-compared-as-signed"

SUITE = """
operator: ELEMENT_WISE_MAX
cases:
  - name: of-a-user
    desc:
      ATensor: {Sizes: [3], DataType: INT64, values: [2147483648, 5, 4294967295]}
      BTensor: {Sizes: [3], DataType: INT64, values: [1, 7, 4294967294]}
      OutputTensor: {Sizes: [3], DataType: INT64}
  - name: of-another
    desc:
      ATensor: {Sizes: [1, 1], DataType: INT64, values: [3000000000]}
      BTensor: {Sizes: [1, 1], DataType: INT64, values: [2]}
      OutputTensor: {Sizes: [1, 1], DataType: INT64}
"""

WRONG = {"of-a-user": [1, 7, 4294967295], "of-another": [2]}
"""What DirectML 1.15.4 gives in place of [2147483648, 7, 4294967295] and [3000000000]."""


def suite_in(folder: Path, defect: int = 0) -> tuple[Path, str]:
    """Return the path of SUITE, and the backend of a recording of WRONG.

    Args:
        defect: is added to the last element of each output.
    """
    path = folder / "suite.yaml"
    path.write_text(SUITE, "utf-8")
    outcomes: dict[str, tuple[Case, Outcome]] = {}
    for planned in load_suite([path]).plan():
        case = valid_case(planned)
        values = np.array(WRONG[planned.identifier.rpartition("/")[2]], np.int64)
        values[-1] += defect
        array = values.reshape(case.outputs()["OutputTensor"].Sizes)
        outcomes[planned.identifier] = case, Outputs({"OutputTensor": array})
    return path, directml_recording(folder / "made.dmlrec", outcomes)


def test_run_names_the_known_fault_once(tmp_path: Path) -> None:
    path, backend = suite_in(tmp_path)
    done = dmlconf_here(tmp_path, "run", path, "-b", backend)
    assert done.returncode == 0, done.stdout + done.stderr
    named = [line for line in done.stdout.splitlines() if "compares the low words" in line]
    assert len(named) == 1, done.stdout
    assert named[0].strip().startswith(f"2 {LOW_WORDS}, in DirectML 1.15.4"), named


def test_further_defect_fails_the_run(tmp_path: Path) -> None:
    path, backend = suite_in(tmp_path, defect=1)
    done = dmlconf_here(tmp_path, "run", path, "-b", backend)
    assert done.returncode == 1, done.stdout
    assert "2 failed" in done.stdout


def test_no_known_faults_makes_the_run_fail(tmp_path: Path) -> None:
    path, backend = suite_in(tmp_path)
    done = dmlconf_here(tmp_path, "run", path, "-b", backend, "--no-known-faults")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed" in done.stdout
    assert LOW_WORDS not in done.stdout


def test_diagnosis_names_the_known_fault_and_reduces_nothing(tmp_path: Path) -> None:
    path, backend = suite_in(tmp_path)
    case = "element_wise_max/suite/of-a-user"
    done = dmlconf_here(tmp_path, "diagnose", case, path, "-b", backend)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"A known fault of DirectML: {LOW_WORDS}, in DirectML 1.15.4" in done.stdout
    assert "Not reduced" in done.stdout
    assert "The case does not fail" not in done.stdout


def test_diagnosis_without_known_faults_proposes_a_folder(
    tmp_path: Path,
) -> None:
    path, backend = suite_in(tmp_path)
    case = "element_wise_max/suite/of-a-user"
    plain = dmlconf_here(tmp_path, "diagnose", case, path, "-b", backend, "--no-known-faults")
    assert plain.returncode == 0, plain.stdout + plain.stderr
    assert "known fault" not in plain.stdout
    assert "With -o FOLDER" in plain.stderr
    written = dmlconf_here(tmp_path, *plain.args, "-o", "folder")
    assert written.returncode == 0, written.stdout + written.stderr
    assert "With -o" not in written.stderr


@pytest.mark.parametrize(("known", "status"), [(True, "waived"), (False, "failed")])
def test_worker_waives_known_faults_only_if_the_run_does(
    tmp_path: Path, known: bool, status: str
) -> None:
    path, backend = suite_in(tmp_path)
    job = Job(
        "job",
        dmlconf.__version__,
        load_suite([path]).digest,
        catalogue_digest(),
        (str(path),),
        frozenset({"ELEMENT_WISE_MAX"}),
        None,
        parse(backend),
        "auto",
        Limits(),
    )
    try:
        prepare(replace(job, known_faults=known))
        batch = run_cases("job", ["element_wise_max/suite/of-a-user"])
    finally:
        finish("job")
    assert isinstance(batch, Batch)
    assert [verdict.status for verdict in batch.verdicts] == [status]


def wrong_maximum(a: int, b: int) -> int:
    """Return the greater number by high words, then by low words as signed numbers."""

    def words(number: int) -> tuple[int, int]:
        low = number & 0xFFFF_FFFF
        return number >> 32, low - (1 << 32) if low >> 31 else low

    return a if words(a) > words(b) else b


def wrong_maxima(case: Case) -> Array:
    inputs = np.broadcast_arrays(*(case.inputs()[name] for name in ("ATensor", "BTensor")))
    pairs = zip(*(array.ravel().tolist() for array in inputs), strict=True)
    return np.array([wrong_maximum(*pair) for pair in pairs], np.int64).reshape(inputs[0].shape)


def random_case_with_the_fault(seed: int) -> tuple[int, Case]:
    for number in range(1000):
        case = valid_case(operator_case("ELEMENT_WISE_MAX", seed, number))
        if case.desc["OutputTensor"].DataType is not DataType.INT64 or case.in_place:
            continue
        if (wrong_maxima(case) != evaluate(case)["OutputTensor"]).any():
            return number, case
    raise AssertionError("no case has the fault")


@pytest.mark.parametrize(("defect", "code"), [(0, 0), (1, 1)])
def test_fuzzing_names_the_known_fault_or_finds_a_defect(
    tmp_path: Path, defect: int, code: int
) -> None:
    seed = 44  # It has such a case.
    number, case = random_case_with_the_fault(seed)
    wrong = wrong_maxima(case)
    wrong.reshape(-1)[0] += defect
    outcome = Outputs({"OutputTensor": wrong})
    backend = directml_recording(tmp_path / "made.dmlrec", {case.identifier: (case, outcome)})
    done = dmlconf_here(
        tmp_path,
        "fuzz",
        "-b",
        backend,
        "-o",
        "ELEMENT_WISE_MAX",
        "--seed",
        str(seed),
        "--number",
        str(number),
        "--reduce",
        "0",
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("compares the low words" in done.stdout) is (defect == 0)
