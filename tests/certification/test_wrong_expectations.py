"""`dmlconf certify` refuses outputs that match a case's expectation if the expectation is wrong.

The tested code is in `dmlconf/certification/making.py` and `dmlconf/judging/contradictions.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dmlconf.backends.protocol import Outputs
from dmlconf.backends.recording.file import recording_bytes
from dmlconf.backends.recording.model import entry_of
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import ExpectedOutputs
from tests.backends.recordings import recording
from tests.cases.suites import MEAN
from tests.certification.suite import PROFILE
from tests.cli.process import dmlconf_here

SUITE = MEAN + "    expect: {OutputTensor: [999]}\n"
"""A mean of 1, 2, 3 and 5, which is 2.75, with a wrong expectation."""


def test_outputs_that_match_a_wrong_expectation_are_not_certified(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    path = tmp_path / "suite" / "matrix.yaml"
    path.write_text(SUITE, encoding="utf-8")
    (tmp_path / "small.yaml").write_text(PROFILE, encoding="utf-8")
    case = build(next(load_suite([path]).plan()))
    assert isinstance(case.expectation, ExpectedOutputs)
    as_expected = entry_of(case, Outputs(case.expectation.outputs))
    recorded = replace(recording({}), entries={case.identifier: as_expected})
    (tmp_path / "x.dmlrec").write_bytes(recording_bytes(recorded))
    arguments = ["suite", "-b", "recording:x.dmlrec", "--profile", "small.yaml", "-q"]
    done = dmlconf_here(tmp_path, "certify", *arguments, "-o", "it.dmlcert")
    assert done.returncode == 1
    assert "the expected value and the reference contradict each other: 999 is not" in done.stderr
    assert not (tmp_path / "it.dmlcert").exists()
