"""The verification of a certificate says how many verdicts rest on known faults.

The tested code is in `dmlconf/reports/verification.py` and `dmlconf/certification/acceptance.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from tests.certification.suite import PROFILE, printed_text
from tests.cli.process import dmlconf_here
from tests.faults.recordings import directml_recording

SUITE = """
operator: ELEMENT_WISE_MAX
cases:
  - matrix: {Number: [2147483648, 2147483649, 7]}
    desc:
      ATensor: {Sizes: [1], DataType: INT64, fill: {constant: {value: =Number}}}
      BTensor: {Sizes: [1], DataType: INT64, values: [5]}
      OutputTensor: {Sizes: [1], DataType: INT64}
"""
"""DirectML wrongly returns 5 for the first two numbers, a known fault."""


def test_verify_counts_verdicts_by_known_faults(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "matrix.yaml").write_text(SUITE, "utf-8")
    (tmp_path / "small.yaml").write_text(PROFILE, "utf-8")
    outcomes: dict[str, tuple[Case, Outcome]] = {}
    for planned in load_suite([tmp_path / "suite"]).plan():
        case = valid_case(planned)
        returned = np.array([7 if planned.parameters["Number"] == 7 else 5], np.int64)
        outcomes[planned.identifier] = case, Outputs({"OutputTensor": returned})
    backend = directml_recording(tmp_path / "made.dmlrec", outcomes)
    profile = ("--profile", "small.yaml")
    made = dmlconf_here(tmp_path, "certify", "suite", "-b", backend, *profile, "-o", "it.dmlcert")
    assert made.returncode == 0, made.stdout + made.stderr
    allowed = ("--allow-backend", "recording")
    done = dmlconf_here(
        tmp_path, "verify", "it.dmlcert", "suite", *profile, *allowed, "--report", "markdown:it.md"
    )
    sentence = "2 of 3 cases (66.7%): 2 by known faults of DirectML"
    assert sentence in printed_text(done), done.stdout
    assert sentence in (tmp_path / "it.md").read_text("utf-8").replace("\\", "")
