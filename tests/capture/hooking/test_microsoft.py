"""`capture` sees what an application gives to Microsoft's own libdirectml.so.

Direct3D 12 below it is a stand-in that runs no shader, so the outputs mean nothing.

The tested code is in `dmlconf/capture/hooking/hooks.py`, `dmlconf/capture/hooking/dispatches.py`,
`dmlconf/capture/hooking/systems/linux.py`, `dmlconf/capture/launching.py` and
`dmlconf/cli/commands/writing/capture.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.cases.loading.loader import load_suite, valid_case
from tests.capture.hooking.scripts import in_process
from tests.cli.process import dmlconf, environment

pytestmark = pytest.mark.native

HERE = Path(__file__).parent


def cases(*folders: Path) -> list[Any]:
    return [valid_case(planned) for planned in load_suite(list(folders)).plan()]


def test_what_is_given_to_microsofts_library_is_captured(
    tmp_path: Path, wsl: Path, microsoft: Path
) -> None:
    more = {"DMLCONF_WSL_LIBRARIES": str(wsl), "DMLCONF_DIRECTML": str(microsoft)}
    program = (str(HERE / "run_cases.py"), str(HERE / "given"))
    options = ("-o", "captured", "--data", "all")
    done = dmlconf(tmp_path, "capture", *options, "--", *program, **more)
    assert done.returncode == 0, done.stderr
    assert "failure" not in done.stderr
    alone = subprocess.run(
        [sys.executable, *program],
        capture_output=True,
        text=True,
        env=environment(tmp_path, **more),
    )
    assert json.loads(done.stdout) == json.loads(alone.stdout)
    assert "Captured 1 graph of 2 nodes and 2 operators of their own" in done.stderr

    given = cases(HERE / "given")
    found = cases(tmp_path / "captured" / "gemm", tmp_path / "captured" / "graphs")
    assert [each.desc for each in found[:2]] == [each.desc for each in given[:2]]
    names = [node.operator_name for node in found[2].graph.operator_nodes]
    assert names == ["ELEMENT_WISE_ADD", "ACTIVATION_RELU"]

    dispatched = cases(tmp_path / "captured" / "dispatches")
    assert len(dispatched) == 3
    for expected, actual in zip(given, dispatched, strict=True):
        arrays = expected.inputs().values(), actual.inputs().values()
        for one, other in zip(*arrays, strict=True):
            np.testing.assert_array_equal(one, other)


def test_device_made_before_the_capture_is_watched(
    tmp_path: Path, wsl: Path, microsoft: Path
) -> None:
    script = f"""
from dmlconf.backends.directml.backend import create
from dmlconf.cases.loading.loader import load_suite, valid_case
cases = [valid_case(planned) for planned in load_suite([Path({str(HERE / "given")!r})]).plan()]
backend = create("")
hooks = capture()
results += [type(each).__name__ for each in backend.run(cases)]
hooks.end()
backend.close()
"""
    results, found = in_process(tmp_path, wsl, script, DMLCONF_DIRECTML=str(microsoft))
    assert results == ["Outputs"] * 3
    assert found.failures == []
    assert found.library == str(microsoft)
    assert len(found.graphs) == 1
    assert len({id(each.what) for each in found.dispatches}) == 3
