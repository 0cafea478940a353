"""`dmlconf capture` makes cases, in the lab, of what ONNX Runtime gives to DirectML.

The tested code is in `dmlconf/capture/hooking/hooks.py`, `dmlconf/capture/captured.py`,
`dmlconf/capture/case_files.py`, `dmlconf/capture/dispatch_cases.py`, `dmlconf/capture/blocks.py`,
`dmlconf/capture/model_runs/first_difference.py`, `dmlconf/capture/model_runs/output_difference.py`,
`dmlconf/cli/commands/writing/capture.py`, `dmlconf/cli/output/captured_cases.py` and
`dmlconf/cli/output/captured_difference.py`.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from dmlconf.capture.captured import captured_from
from dmlconf.capture.journal import read_journal
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from tests.cli.process import dmlconf_here
from tests.lab.running import command, lab
from winelab.packages import packages_directory

pytestmark = pytest.mark.lab

HERE: Final = Path(__file__).parent
FILES: Final = ("app.py", "three_models.py", "net.onnx", "words.onnx", "attention.onnx")
MODELS: Final = ("net", "words", "attention")
CREATE_BINDING_TABLE: Final = 12
COMPILE_GRAPH: Final = 17
"""Slots of two methods in vtables of DirectML."""
ACCESS_VIOLATION: Final = 0xC0000005
JUDGE: Final = ("my-app/dispatches", "-b", "recording:my-app/dispatches")

NODES: Final = {
    "CONVOLUTION": 2,
    "MAX_POOLING": 1,
    "ELEMENT_WISE_IDENTITY": 1,
    "GEMM": 1,
    "ACTIVATION_SOFTMAX1": 1,
}
"""The operators that ONNX Runtime makes of `net.onnx`."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the application; `captured` adds `my-app` to it."""
    subprocess.run(command("packages"), check=True)
    folder = tmp_path_factory.mktemp("capture")
    for name in FILES:
        shutil.copy(HERE / name, folder)
    return folder


@pytest.fixture(scope="module")
def captured(folder: Path) -> subprocess.CompletedProcess[str]:
    """The finished command that captured the cases `my-app`."""
    options = ("-o", "my-app", "--data", "all", "--dispatches", "3")
    done = lab("run", "--", "capture", *options, "--", "app.py", "-o", "own", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_capture_changes_no_output_of_the_application(
    folder: Path, captured: subprocess.CompletedProcess[str]
) -> None:
    plain = lab("python", "--", "app.py", "-o", "own", cwd=folder)
    assert plain.returncode == 0, plain.stderr
    assert captured.stdout == plain.stdout
    assert "['-o', 'own'] __main__" in plain.stdout


def test_graphs_and_operators_become_cases(
    folder: Path, captured: subprocess.CompletedProcess[str]
) -> None:
    suite = load_suite([folder / "my-app" / name for name in (*map(str.lower, NODES), "graphs")])
    cases = [valid_case(planned) for planned in suite.plan()]
    assert all("captured" in case.tags for case in cases)
    # There are 1 graph, 6 nodes and 5 operators; two are the same as others.
    assert len(cases) == 10
    [graph] = [case for case in cases if isinstance(case, GraphCase)]
    assert Counter(node.operator_name for node in graph.graph.operator_nodes) == NODES
    assert "descriptors-volatile" in graph.tags
    owned = [name for name, tensor in graph.graph.inputs.items() if tensor.Flags]
    assert len(owned) == 6  # The weights and biases of two convolutions and of a GEMM.
    convolution = next(case for case in cases if case.operator_name == "CONVOLUTION")
    assert convolution.desc["FusedActivation"] == {
        "operator": "ACTIVATION_RELU",
        "InputTensor": None,
        "OutputTensor": None,
    }
    assert convolution.desc["StartPadding"] == (1, 1)
    assert "1 graph of 6 nodes and 5 operators of their own" in captured.stderr
    assert "Skipped" not in captured.stderr
    assert "failure of dmlconf" not in captured.stderr


def test_captured_cases_pass_on_the_device(
    folder: Path, captured: subprocess.CompletedProcess[str]
) -> None:
    done = lab(
        "run", "--", "run", "my-app", "-b", "directml", "--circumstances", "none", cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED: 27 passed of 27 cases" in done.stdout  # 10 cases and 17 dispatches.


def test_the_option_data_weights_keeps_only_weights(
    folder: Path, captured: subprocess.CompletedProcess[str]
) -> None:
    options = ("-o", "weights", "--data", "weights", "--", "app.py")
    done = lab("run", "--", "capture", *options, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tensors of weights next to the cases" in done.stderr
    assert not (folder / "weights" / "dispatches").exists()
    kept = {path.name for path in (folder / "weights").glob("*/data/*.npy")}
    everything = {path.name for path in (folder / "my-app" / "dispatches" / "data").glob("*.npy")}
    assert 0 < len(kept) < len(everything)
    assert kept <= everything
    [planned] = load_suite([folder / "weights" / "graphs"]).plan()
    case = valid_case(planned)
    assert isinstance(case, GraphCase)
    arrays = case.inputs()
    owned = [name for name, tensor in case.graph.inputs.items() if tensor.Flags]
    assert len(owned) == 6
    assert all(abs(arrays[name]).max() > 0 for name in owned)


def test_capture_of_three_models_is_right_and_changes_no_output(
    folder: Path,
) -> None:
    options = ("-o", "three", "--data", "all", "--block-nodes", "2", "--", "three_models.py")
    done = lab("run", "--", "capture", *options, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    plain = lab("python", "--", "three_models.py", cwd=folder)
    assert plain.returncode == 0, plain.stderr
    assert done.stdout == plain.stdout
    assert [line.split()[0] for line in plain.stdout.splitlines()] == [*MODELS]
    dispatches = folder / "three" / "dispatches"
    judged = dmlconf_here(folder, "run", dispatches, "-b", f"recording:{dispatches}")
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert len(list(dispatches.glob("*-graph.yaml"))) >= len(MODELS)
    blocks = lab("run", "--", "run", "three/blocks", "-b", "directml", cwd=folder)
    assert blocks.returncode == 0, blocks.stdout + blocks.stderr


def test_statistics_are_kept_without_data(folder: Path) -> None:
    options = ("-o", "like", "--data", "statistics", "--", "three_models.py")
    done = lab("run", "--", "capture", *options, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Generated data is like that of the first dispatch in 5 cases" in done.stderr
    assert not list((folder / "like").rglob("*.npy"))
    [planned, *_] = load_suite([folder / "like" / "graphs"]).plan()
    images = [each for each in valid_case(planned).inputs().values() if each.shape == (1, 3, 9, 9)]
    assert images[0].min() >= 0
    assert images[0].max() <= 16 / 17


def test_a_device_made_before_the_hooks_is_watched(folder: Path) -> None:
    shutil.copy(HERE / "late_capture.py", folder)
    done = lab("python", "--", "late_capture.py", "late", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(set(done.stdout.split())) == 1
    found = captured_from(read_journal(folder / "late" / "journal.jsonl"))
    assert found.failures == []
    [graph] = found.graphs
    assert len(graph.parts["nodes"]) == 6
    assert [each.what for each in found.dispatches if each.what is graph] == [graph]


def test_an_interrupted_program_leaves_its_cases(folder: Path) -> None:
    waiting = 'import time\nimport three_models\n\nprint("waits", flush=True)\ntime.sleep(500)\n'
    (folder / "waits.py").write_text(waiting, encoding="utf-8")
    arguments = command("run", "--", "capture", "-o", "interrupted", "--", "waits.py")
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdout=pipe, stderr=pipe, text=True, cwd=folder) as process:
        assert process.stdout is not None
        assert any(line.startswith("waits") for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 6, errors
    assert "The program was interrupted; the cases are those until then." in errors
    assert len(list(load_suite([folder / "interrupted"]).plan())) > len(NODES)


def test_every_dispatch_is_judged_right(
    folder: Path, captured: subprocess.CompletedProcess[str]
) -> None:
    assert "Kept the data of 17 dispatches" in captured.stderr
    done = dmlconf_here(folder, "run", *JUDGE, "--report", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["passed"] == 17
    names = [each["case"].split("/")[1] for each in report["verdicts"]]
    assert names == sorted(names)
    assert names[1] == "00002-convolution"


@pytest.fixture(scope="module")
def with_saboteur(folder: Path) -> Path:
    """A folder with the application and a wrong DirectML.dll."""
    with_saboteur = folder / "wrong"
    libraries = with_saboteur / "packages" / "onnxruntime" / "capi"
    shutil.copytree(packages_directory(), with_saboteur / "packages")
    (libraries / "DirectML.dll").rename(libraries / "real.dll")
    compiler = ["x86_64-w64-mingw32-gcc", "-std=c17", "-O2", "-Wall", "-Wextra", "-Werror"]
    target, source = libraries / "DirectML.dll", HERE / "saboteur.c"
    subprocess.run([*compiler, "-shared", "-o", target, source], check=True)
    for name in FILES:
        shutil.copy(HERE / name, with_saboteur)
    return with_saboteur


@pytest.fixture(scope="module")
def captured_with_saboteur(with_saboteur: Path) -> Path:
    """The folder with the cases `my-app` captured from the wrong DirectML.dll."""
    options = ("-o", "my-app", "--data", "all", "--", "three_models.py", "unfused")
    done = lab("run", "--", "capture", *options, cwd=with_saboteur)
    assert done.returncode == 0, done.stdout + done.stderr
    return with_saboteur


def test_only_the_wrong_dispatch_fails_and_not_its_follower(
    captured_with_saboteur: Path,
) -> None:
    judged = dmlconf_here(captured_with_saboteur, "run", *JUDGE)
    assert judged.returncode == 1
    assert re.findall(r"^FAILED (\S+):", judged.stdout, re.M) == ["gemm/00004-gemm/dispatch-4"]
    [follower] = (captured_with_saboteur / "my-app" / "dispatches").glob("00005-*.yaml")
    text = " ".join(follower.read_text("utf-8").split())
    assert "InputTensor already holds a NaN or an infinity, which dispatch 4 wrote." in text
    assert "tags: [follower]" in text


def test_the_wrong_dispatch_is_reduced(captured_with_saboteur: Path) -> None:
    library = "packages/onnxruntime/capi/DirectML.dll"
    options = ("-b", "directml", "--directml", library, "--log", "run.jsonl")
    again = lab(
        "run",
        "--",
        "run",
        "my-app/dispatches/00004-gemm.yaml",
        *options,
        cwd=captured_with_saboteur,
    )
    assert again.returncode == 1, again.stdout + again.stderr
    done = lab("run", "--", "diagnose", "run.jsonl", "-o", "diagnosis", cwd=captured_with_saboteur)
    assert done.returncode == 0, done.stdout + done.stderr
    reduced = re.search(r"reduced +(\d+) elements became (\d+)", done.stdout)
    assert reduced is not None, done.stdout
    assert int(reduced[2]) < int(reduced[1])


def test_cases_captured_before_a_crash_are_kept(folder: Path) -> None:
    done = lab("run", "--", "capture", "-o", "crashed", "--", "app.py", "crash", cwd=folder)
    assert done.returncode == 1
    assert "The program ended with 77; the cases are those until then." in done.stderr
    assert len(list(load_suite([folder / "crashed"]).plan())) > len(NODES)


@pytest.mark.parametrize(
    ("method", "graph_note"),
    [
        (COMPILE_GRAPH, "Compiled once, and the program ended in that call."),
        (CREATE_BINDING_TABLE, "Compiled once."),
    ],
)
def test_a_crash_in_directml_leaves_the_cases(
    with_saboteur: Path, method: int, graph_note: str
) -> None:
    options = ("-o", f"crash-{method}", "--data", "all", "--", "three_models.py")
    environment = {"DMLCONF_CRASH": str(method)}
    done = lab("run", "--", "capture", *options, environment=environment, cwd=with_saboteur)
    assert done.returncode == 1
    assert (
        f"The program ended with {ACCESS_VIOLATION}; the cases are those until then." in done.stderr
    )
    assert "Traceback" not in done.stderr
    [planned] = load_suite([with_saboteur / f"crash-{method}" / "graphs"]).plan()
    assert valid_case(planned).about.note == graph_note


def test_a_model_is_run_and_compared_with_the_cpu_provider(folder: Path) -> None:
    options = ("-o", "model", "--model", "net.onnx", "--dimension", "batch=1", "--unfused")
    done = lab("run", "--", "capture", *options, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    error = re.search(r"y: at most (\S+) off the CPU provider, whose largest", done.stdout)
    assert error is not None
    assert 0 < float(error[1]) < 1e-6
    assert "Captured 5 operators" in done.stderr


def test_the_first_node_with_another_output_is_named(with_saboteur: Path) -> None:
    options = ("-o", "model", "--model", "net.onnx", "--dimension", "batch=1", "--unfused")
    # The program imports onnxruntime from the current folder.
    (with_saboteur / "onnxruntime").symlink_to("packages/onnxruntime")
    done = lab("run", "--", "capture", *options, "--data", "all", cwd=with_saboteur)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "y: NaN or infinity where the CPU provider has none" in done.stdout
    assert "First difference: y0 of the node /fc (Gemm)" in done.stdout
    assert "alone, with the CPU provider's inputs: NaN or infinity" in done.stdout
    assert "DirectML is suspect: its dispatch gemm/00004-gemm/dispatch-4" in done.stderr


def test_the_provider_is_suspect_if_every_dispatch_is_right(folder: Path) -> None:
    shutil.copy(HERE / "antialias.onnx", folder)
    options = ("-o", "resized", "--model", "antialias.onnx", "--unfused", "--data", "all")
    done = lab("run", "--", "capture", *options, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "First difference: r of the node /resize (Resize)" in done.stdout
    assert "it reads a: the same bits as the CPU provider" in done.stdout
    assert "1 node before it is right" in done.stdout
    assert "Every dispatch is right, so ONNX Runtime's DirectML provider is suspect" in done.stderr
    assert "what is known of RESAMPLE3" in done.stderr
    [planned] = load_suite([folder / "resized" / "resample3"]).plan()
    assert valid_case(planned).desc["Antialiased"]


def test_released_devices_leave_no_handles_and_no_memory_behind(tmp_path: Path) -> None:
    shutil.copy(HERE / "many_devices.py", tmp_path)
    shutil.copytree(HERE / "owned", tmp_path / "owned")
    options = ("-o", "captured", "--data", "all", "--", "many_devices.py", "owned", "30")
    done = lab("run", "--", "capture", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["devices"] for each in counts] == [10, 20, 30]
    assert len({each["handles"] for each in counts}) == 1
    five_mib = 5 << 10
    assert counts[2]["committed_kib"] - counts[1]["committed_kib"] < five_mib
