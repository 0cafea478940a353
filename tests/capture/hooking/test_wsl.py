"""In WSL 2, `capture` sees what applications give to libdirectml.so, and changes nothing.

The tests load libraries that stand in for those of WSL 2, since these need a device.

The tested code is in `dmlconf/capture/hooking/hooks.py`, `dmlconf/capture/hooking/dispatches.py`,
`dmlconf/capture/hooking/copies.py`, `dmlconf/capture/hooking/guard.py`,
`dmlconf/capture/hooking/patches.py`, `dmlconf/capture/hooking/systems/linux.py`,
`dmlconf/capture/hooking/systems/linux_loading.py`, `dmlconf/capture/launching.py` and
`dmlconf/cli/commands/writing/capture.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.cases.loading.loader import load_suite, valid_case
from tests.capture.hooking.application import THREADS, A, B
from tests.capture.hooking.scripts import in_process
from tests.cli.process import beginning, dmlconf_here, text_of
from tests.workers.processes import running

HERE = Path(__file__).parent
APPLICATION = HERE / "application.py"
SUM = [a + b for a, b in zip(A, B, strict=True)]
RESULTS = {
    "add": SUM,
    "graph": [max(each, 0.0) for each in SUM],
    "refused": 0x80070057,  # E_INVALIDARG.
    "threads": SUM * THREADS,
}
"""What the application prints."""


Capturing = Callable[..., Any]


@pytest.fixture
def capture_application(tmp_path: Path, wsl: Path, capfd: pytest.CaptureFixture[str]) -> Capturing:
    """A function that captures the application into `cases`.

    Its arguments are the library, options and environment variables. It returns what the
    application, a process of its own, prints, and dmlconf's standard error.
    """

    def capturing(library: str, *options: str, **more: str) -> Any:
        program = (str(APPLICATION), str(wsl / library))
        more = {"DMLCONF_WSL_LIBRARIES": str(wsl), **more}
        done = dmlconf_here(tmp_path, "capture", "-o", "cases", *options, "--", *program, **more)
        assert done.returncode == 0, done.stderr
        return json.loads(capfd.readouterr().out), done.stderr

    return capturing


@pytest.mark.slow
@pytest.mark.parametrize("library", ["application.so", "late.so"])
def test_operators_and_graphs_become_cases(
    tmp_path: Path, capture_application: Capturing, library: str
) -> None:
    results, stderr = capture_application(library)
    assert results == RESULTS
    assert "Captured 1 graph of 2 nodes and 1 operator of their own: 4 cases in 3 files" in stderr
    assert "CreateOperator refused 1 times: DML_OPERATOR_TYPE 9999: E_INVALIDARG" in stderr
    assert "failure" not in stderr
    cases = {c.identifier: c for c in map(valid_case, load_suite([tmp_path / "cases"]).plan())}
    assert cases.keys() == {
        "activation_relu/captured/float32-1x1x2x3",
        "element_wise_add/captured/float32-1x1x2x3",
        "element_wise_add/captured/float32-1x1x2x3-2",
        "graphs/captured/graph-1-of-2-nodes",
    }
    added = cases["element_wise_add/captured/float32-1x1x2x3"]
    # Once by `add`, and once by each thread.
    assert added.about.note == f"Compiled {1 + THREADS} times."
    assert added.desc["BTensor"].Owned
    assert "descriptors-volatile" in cases["graphs/captured/graph-1-of-2-nodes"].tags


@pytest.mark.slow
def test_library_with_a_hash_in_its_name_is_captured(
    tmp_path: Path, wsl: Path, capture_application: Capturing
) -> None:
    renamed = tmp_path / "libdirectml.0ab1.so"
    renamed.write_bytes((wsl / "libdirectml.so").read_bytes())
    _, stderr = capture_application("late.so", APPLICATION_DIRECTML=str(renamed))
    assert "Captured 1 graph" in stderr


@pytest.mark.slow
def test_data_of_dispatches_is_that_of_the_application(
    tmp_path: Path, capture_application: Capturing
) -> None:
    options = ("--data", "all", "--dispatches", "20")
    results, stderr = capture_application("application.so", *options)
    assert results == RESULTS
    assert f"Kept the data of {2 + THREADS} dispatches" in stderr
    cases = [valid_case(each) for each in load_suite([tmp_path / "cases" / "dispatches"]).plan()]
    assert len(cases) == 2 + THREADS  # Those of `add`, of `graph` and of each thread.
    for case in cases:
        inputs = [each.ravel().tolist() for each in case.inputs().values()]
        assert inputs == [list(A), list(B)]
    judged = dmlconf_here(tmp_path, "run", "cases/dispatches", "-b", "recording:cases/dispatches")
    assert judged.returncode == 0, judged.stderr


FORKS = """
import os
import sys
from tests.capture.hooking.application import Application

if BEGUN:
    Application(sys.argv[1]).add()
child = os.fork() == 0
application = Application(sys.argv[1])
application.graph() if child else application.add()
application.close()
if not child:
    assert os.wait()[1] == 0
"""
"""A program whose child compiles a graph, while it compiles an operator."""


@pytest.mark.slow
@pytest.mark.parametrize("begun", [False, True])
def test_what_a_child_compiles_is_not_taken_for_what_its_parent_does(
    tmp_path: Path, wsl: Path, begun: bool
) -> None:
    (tmp_path / "forks.py").write_text(FORKS.replace("BEGUN", str(begun)), encoding="utf-8")
    program = ("forks.py", str(wsl / "application.so"))
    command = ("capture", "-o", "cases", "--data", "all", "--", *program)
    done = dmlconf_here(tmp_path, *command, DMLCONF_WSL_LIBRARIES=str(wsl))
    assert done.returncode == 0, done.stderr
    assert (
        "Captured 1 graph of 2 nodes and 1 operator of their own: 4 cases in 3 files" in done.stderr
    )
    added = load_suite([tmp_path / "cases" / "element_wise_add"]).plan()
    notes = [valid_case(each).about.note for each in added]
    assert "Compiled 2 times." in notes if begun else "Compiled 2 times." not in notes
    judged = dmlconf_here(tmp_path, "run", "cases/dispatches", "-b", "recording:cases/dispatches")
    assert judged.returncode == 0, judged.stderr


FILLS_FOLDER = """
import runpy
import sys
from pathlib import Path

Path("cases").mkdir()
Path("cases/other.yaml").write_text("of another", encoding="utf-8")
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Does what another `capture` does meanwhile, and then runs another program."""


@pytest.mark.slow
def test_folder_that_another_process_fills_meanwhile_is_left_alone(
    tmp_path: Path, wsl: Path
) -> None:
    (tmp_path / "fills.py").write_text(FILLS_FOLDER, encoding="utf-8")
    program = ("fills.py", str(APPLICATION), str(wsl / "application.so"))
    command = ("capture", "-o", "cases", "--", *program)
    done = dmlconf_here(tmp_path, *command, DMLCONF_WSL_LIBRARIES=str(wsl))
    assert done.returncode == 0, done.stderr
    assert "cases holds files by now, so the cases are written to cases-2" in done.stderr
    assert [path.name for path in (tmp_path / "cases").iterdir()] == ["other.yaml"]
    assert len(list(load_suite([tmp_path / "cases-2"]).plan())) == 4


@pytest.mark.slow
def test_dispatch_keeps_tensors_bound_at_its_submission(tmp_path: Path, wsl: Path) -> None:
    script = """
hooks = capture()
application = Application(sys.argv[1])
results += [application.again(), application.graph()]
hooks.end()
application.close()
d3d12 = ctypes.CDLL("libd3d12.so")
assert d3d12.standin_d3d12_alive() == 0, "dmlconf holds a buffer"
"""
    results, found = in_process(tmp_path, wsl, script)
    assert results == [RESULTS["graph"]] * 2
    assert found.failures == []
    first, second = found.dispatches
    assert first == second


@pytest.mark.slow
def test_tensors_that_a_command_list_uploads_are_captured(tmp_path: Path, wsl: Path) -> None:
    # Command lists of run_cases.py upload the inputs.
    given = tmp_path / "given"
    shutil.copytree(HERE / "given" / "graphs", given)
    file = given / "documented.yaml"
    text = file.read_text(encoding="utf-8").replace("Flags: [OWNED_BY_DML], ", "")
    file.write_text(f"tags: [descriptors-volatile]\n{text}", encoding="utf-8")
    program = (str(HERE / "run_cases.py"), str(given))
    more = {"DMLCONF_WSL_LIBRARIES": str(wsl), "DMLCONF_DIRECTML": str(wsl / "libdirectml.so")}
    options = ("-o", "cases", "--data", "all")
    done = dmlconf_here(tmp_path, "capture", *options, "--", *program, **more)
    assert done.returncode == 0, done.stderr
    judged = dmlconf_here(tmp_path, "run", "cases/dispatches", "-b", "recording:cases/dispatches")
    assert judged.returncode == 0, judged.stderr


@pytest.mark.slow
def test_option_data_weights_keeps_only_weights(
    tmp_path: Path, capture_application: Capturing
) -> None:
    capture_application("application.so", "--data", "weights")
    cases = {c.identifier: c for c in map(valid_case, load_suite([tmp_path / "cases"]).plan())}
    inputs = cases["element_wise_add/captured/float32-1x1x2x3"].inputs()
    np.testing.assert_array_equal(inputs["BTensor"].ravel(), np.array(B, np.float32))
    assert not np.array_equal(inputs["ATensor"].ravel(), np.array(A, np.float32))


@pytest.mark.slow
def test_failures_of_dmlconf_do_not_reach_the_application(capture_application: Capturing) -> None:
    results, stderr = capture_application(
        "application.so", "--data", "all", STANDIN_MOST_COPIES="0"
    )
    assert results == RESULTS
    assert "A failure of dmlconf, which the program did not notice" in stderr
    assert "E_OUTOFMEMORY" in stderr
    assert "Captured 1 graph" in stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "most"), [("graph", 0), ("graph", 1), ("add", 0), ("add", 1), ("add", 2)]
)
def test_dispatch_is_not_kept_without_enough_memory(
    tmp_path: Path, wsl: Path, call: str, most: int
) -> None:
    # The tensors of `graph` are bound late: their copies are made when the list is submitted. Of
    # `add`, the weight that is taken over is copied first.
    script = f"""
hooks = capture()
os.environ["STANDIN_MOST_COPIES"] = "{most}"
application = Application(sys.argv[1])
results.append(application.{call}())
hooks.end()
application.close()
d3d12 = ctypes.CDLL("libd3d12.so")
assert d3d12.standin_d3d12_alive() == 0, "dmlconf holds a buffer"
"""
    results, found = in_process(tmp_path, wsl, script)
    assert results == [RESULTS[call]]
    assert {"E_OUTOFMEMORY" in each for each in found.failures} == {True}
    assert found.dispatches == []


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2])
def test_memory_for_one_of_two_operators_suffices_for_its_weight(
    tmp_path: Path, wsl: Path, most: int
) -> None:
    # One initialiser takes over a weight of each of two operators, which have the same desc.
    script = f"""
hooks = capture(dispatches=0)
os.environ["STANDIN_MOST_COPIES"] = "{most}"
application = Application(sys.argv[1])
results.append(application.pair())
hooks.end()
application.close()
d3d12 = ctypes.CDLL("libd3d12.so")
assert d3d12.standin_d3d12_alive() == 0, "dmlconf holds a buffer"
"""
    results, found = in_process(tmp_path, wsl, script)
    assert results == [SUM]
    assert ["E_OUTOFMEMORY" in each for each in found.failures] == [True] * (2 - most)
    [operator] = found.operators
    assert [*operator.weights] == ["BTensor"]


@pytest.mark.slow
@pytest.mark.parametrize("library", ["application.so", "late.so"])
def test_device_made_before_the_hooks_is_watched(tmp_path: Path, wsl: Path, library: str) -> None:
    script = """
application = Application(sys.argv[1])
d3d12, directml = (ctypes.CDLL(f"lib{name}.so") for name in ("d3d12", "directml"))
def alive():
    return d3d12.standin_d3d12_alive(), directml.standin_directml_alive()
before = alive()
hooks = capture()
assert alive() == before, "dmlconf's own device is left"
results += [application.add(), application.graph()]
hooks.end()
application.close()
assert alive() == (0, 0)
"""
    results, found = in_process(tmp_path, wsl, script, library)
    assert results == [RESULTS["add"], RESULTS["graph"]]
    assert found.failures == []
    assert found.library == str(wsl / "libdirectml.so")
    assert [len(found.graphs), len(found.dispatches)] == [1, 2]


@pytest.mark.slow
def test_library_bound_before_the_hooks_makes_watched_devices(tmp_path: Path, wsl: Path) -> None:
    # Without a device of dmlconf's own, only the application's next device is watched.
    script = """
first = Application(sys.argv[1])
os.environ["STANDIN_NO_DEVICE"] = "1"
hooks = capture()
del os.environ["STANDIN_NO_DEVICE"]
results.append(first.add())
results.append(Application(sys.argv[1]).graph())
hooks.end()
"""
    results, found = in_process(tmp_path, wsl, script)
    assert results == [RESULTS["add"], RESULTS["graph"]]
    assert ["DXGI_ERROR_UNSUPPORTED" in each for each in found.failures] == [True]
    assert [len(found.graphs), found.devices, len(found.dispatches)] == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("library", ["application.so", "late.so"])
def test_nothing_is_recorded_after_the_hooks_end(tmp_path: Path, wsl: Path, library: str) -> None:
    # Byte 16 of _r_debug has the address of a function that the dynamic linker calls when it loads
    # a library. The hooks write a jump there.
    script = """
def linker():
    state = ctypes.c_uint64.in_dll(ctypes.CDLL(None), "_r_debug")
    return ctypes.string_at(ctypes.c_uint64.from_address(ctypes.addressof(state) + 16).value, 16)
function = linker()
hooks = capture()
assert linker() != function
application = Application(sys.argv[1])
results.append(application.add())
hooks.end()
assert linker() == function
journal = (folder / "journal.jsonl").read_bytes()
results.append(application.graph())
application.close()
results.append(Application(sys.argv[1]).add())
assert (folder / "journal.jsonl").read_bytes() == journal
"""
    results, found = in_process(tmp_path, wsl, script, library)
    assert results == [RESULTS["add"], RESULTS["graph"], RESULTS["add"]]
    assert [found.devices, len(found.graphs), len(found.dispatches)] == [1, 0, 1]


@pytest.mark.slow
def test_library_that_is_loaded_again_is_watched_again(tmp_path: Path, wsl: Path) -> None:
    script = """
hooks = capture()
for _ in range(3):
    application = Application(sys.argv[1])
    results.append(application.add())
    application.unload()
    assert "libdirectml.so" not in Path("/proc/self/maps").read_text()
hooks.end()
"""
    results, found = in_process(tmp_path, wsl, script)
    assert results == [RESULTS["add"]] * 3
    assert found.failures == []
    assert [found.devices, len(found.dispatches)] == [3, 3]


@pytest.mark.slow
def test_refusal_quotes_an_unknown_function_of_the_linker(tmp_path: Path, wsl: Path) -> None:
    # Until the hooks end, the function begins with their jump, `ff 25`.
    script = """
from dmlconf.capture.hooking.systems.current import system
hooks = capture()
results.append(system.refusal())
hooks.end()
results.append(system.refusal())
"""
    (during, after), _ = in_process(tmp_path, wsl, script)
    assert "the dynamic linker's function for debuggers is unknown: ff 25" in during
    assert after is None


IGNORES_CTRL_C = """
import os
import signal
import time
from pathlib import Path

signal.signal(signal.SIGINT, signal.SIG_IGN)
Path("number").write_text(str(os.getpid()) + "\\n", encoding="utf-8")
time.sleep(300)
"""


@pytest.mark.slow
def test_second_ctrl_c_kills_a_program_that_ignores_one(tmp_path: Path, wsl: Path) -> None:
    (tmp_path / "stubborn.py").write_text(IGNORES_CTRL_C, encoding="utf-8")
    command = ("capture", "-o", "cases", "--", "stubborn.py")
    process = beginning(tmp_path, *command, DMLCONF_WSL_LIBRARIES=str(wsl))
    while not text_of(tmp_path / "number").endswith("\n"):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.5)  # A program that obeys Ctrl-C would end.
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=8)  # dmlconf kills it after ten seconds.
    assert "it ended with -9" in errors
    assert not running(int(text_of(tmp_path / "number")))
