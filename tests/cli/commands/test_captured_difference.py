"""If a model's outputs are wrong on DirectML, `dmlconf capture` says what software is suspect.

The tested code is in `dmlconf/cli/output/captured_difference.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.capture.captured import captured_from
from dmlconf.capture.dispatch_cases import FOLDER, write_dispatches
from dmlconf.capture.hooking.arrays import ArrayStore
from dmlconf.capture.journal import read_journal
from dmlconf.cli.output.captured_difference import report_difference, suspect
from dmlconf.verdicts.verdict import Identity, Judgement, Status, Verdict
from tests.cli.commands.test_capture import RELU, dispatch, journal

PROGRAM = ("-c", "import sys; print('First difference: y', *sys.argv[1:])")
"""Stands for the module that ran the model; it prints its arguments."""


@pytest.mark.parametrize(
    ("factor", "sentence"),
    [
        (1.0, "Every dispatch is right, so ONNX Runtime's DirectML provider is suspect"),
        (1.5, "DirectML is suspect: its dispatch activation_relu/00002-activation-relu/dispatch-2"),
    ],
)
def test_the_suspect_follows_from_the_verdicts_on_dispatches(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], factor: float, sentence: str
) -> None:
    store = ArrayStore(tmp_path, 1 << 20)
    ones = np.ones((1, 1, 2, 3), np.float32)
    path = journal(
        tmp_path / "journal",
        {"event": "compile", "number": 1, **RELU, "flags": 0},
        dispatch(1, store, -ones, ones * 0),
        dispatch(1, store, ones, ones * np.float32(factor)),
        dispatch(1, store, ones * 2, ones * 2 * np.float32(factor)),
    )
    write_dispatches(tmp_path / "out", captured_from(read_journal(path)), tmp_path)
    report_difference(tmp_path / "out", PROGRAM, has_dispatches=True)
    printed = capfd.readouterr()
    assert "First difference: y --find-difference" in printed.out
    assert sentence in printed.err


def test_a_capture_without_data_suggests_capturing_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report_difference(tmp_path, PROGRAM, has_dispatches=False)
    assert "Capture it with --data all to learn whether" in capfd.readouterr().err


def test_nothing_is_suspect_if_all_dispatches_were_left_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / FOLDER).mkdir()
    report_difference(tmp_path, PROGRAM, has_dispatches=True)
    assert "All dispatches were left out, so it is unknown whether" in capfd.readouterr().err


def test_an_operator_with_a_wrong_page_is_named() -> None:
    identity = Identity("resample3/captured/dispatch-1", "RESAMPLE3", ())
    others = [
        Identity("graphs/a/b", "GRAPHS", ()),
        Identity("activation_relu/a", "ACTIVATION_RELU", ()),
    ]
    passed = [Verdict(each, Judgement(Status.PASSED)) for each in (*others, identity)]
    # The page of RESAMPLE3 is known to be wrong.
    assert "is known of RESAMPLE3." in suspect(passed)
    assert "page" not in suspect(passed[:2])
