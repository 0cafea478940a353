"""Exported programs compile against DirectML.h, and find wrong elements on DirectML in the lab.

The programs run as DLLs in the lab's Python, which has a function that Wine's Direct3D lacks.

The tested code is in `dmlconf/diagnosis/export/cpp.py`, `dmlconf/diagnosis/export/buffers.py` and
`dmlconf/diagnosis/export/templates/`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case, ExpectedOutputs, Provenance
from dmlconf.diagnosis.export.cpp import cpp_program
from dmlconf.diagnosis.reduction.reduce import with_own_data
from dmlconf.reference.evaluation import evaluate
from dmlconf.resources import cases_directory
from tests.diagnosis.export.graph_cases import graph_of
from tests.lab.running import command

pytestmark = pytest.mark.lab

COMPILER: Final = "x86_64-w64-mingw32-g++"
HEADERS: Final = Path(os.environ.get("DMLCONF_DIRECTX_HEADERS", "/usr/include"))

RUN_PROGRAMS: Final = """
import ctypes, os, sys
for name in sys.argv[1:]:
    main = ctypes.CDLL(os.path.abspath(name))["_Z9case_mainiPPc"]
    words = [b"case", b"-", os.environ["DMLCONF_DIRECTML"].encode()]
    print(name, main(3, (ctypes.c_char_p * 4)(*words)), flush=True)
"""

RIGHT_CASES: Final = {
    "gemm/sizes/weights[Flags=OWNED_BY_DML": {},
    "convolution/matrix/lines": {"metacommands": False},
    "gather/matrix/index-types[IndexType=INT64": {"graph": True},
    "element_wise_add1/boundary/float16-fused": {},
    "element_wise_clip1/matrix/special-values[DataType=FLOAT16": {"runs": 2},
    "element_wise_multiply/matrix/in-place": {},
}
"""Beginnings of identifiers of cases in which DirectML is right, and options of the programs."""

RIGHT_GRAPHS: Final = (
    "wiring/unused-inputs-between-used-ones",
    "wiring/top-k-values-only",
    "wiring/outputs-in-another-order",
    "constants/owned-input[DataType=FLOAT16",
    "gemm-activation/",
    "views/",
    "attention/",
    "recurrent/",
)
"""Beginnings of identifiers of graphs in which DirectML is right."""


def case_of(identifier: str) -> Case:
    """Return the first case whose identifier begins so, with explicit data."""
    suite = load_suite([cases_directory() / identifier.partition("/")[0]])
    plan = (p for p in suite.plan() if p.identifier.startswith(identifier))
    return with_own_data(valid_case(next(plan)))


def compiled(folder: Path, name: str, source: str) -> str:
    assert shutil.which(COMPILER), f"install {COMPILER}: apt-get install g++-mingw-w64-x86-64"
    headers = folder / "headers"
    headers.mkdir(exist_ok=True)
    # MinGW has the other headers itself.
    shutil.copy(HEADERS / "directx" / "DirectML.h", headers)
    (folder / f"{name}.cpp").write_text(source)
    program = f"{name}.dll"
    subprocess.run(
        [
            COMPILER,
            "-std=c++17",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-static",
            "-shared",
            "-Dmain=case_main",
            "-Wl,--export-all-symbols",
            "-Iheaders",
            f"{name}.cpp",
            "-o",
            program,
        ],
        cwd=folder,
        check=True,
        timeout=300,
    )
    return program


def run_in_lab(folder: Path, *programs: str) -> str:
    """Run programs, and return their output with a line `NAME EXIT_CODE` for each."""
    (folder / "run.py").write_text(RUN_PROGRAMS)
    done = subprocess.run(
        command("python", "--", "run.py", *programs),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.replace("\r\n", "\n")


def test_programs_of_right_cases_find_no_wrong_element(tmp_path: Path) -> None:
    programs = []
    for number, (identifier, options) in enumerate(RIGHT_CASES.items()):
        source = cpp_program(case_of(identifier), identifier, **options)  # type: ignore[arg-type]  # One option each.
        programs.append(compiled(tmp_path, f"right{number}", source))
    output = run_in_lab(tmp_path, *programs)
    assert output.count("0 wrong elements") == len(RIGHT_CASES), output
    assert all(f"{program} 0\n" in output for program in programs), output


def test_a_program_prints_the_wrong_element(tmp_path: Path) -> None:
    case = case_of("element_wise_add/matrix")
    right = {"OutputTensor": np.add(case.input("ATensor"), case.input("BTensor"))}
    right["OutputTensor"].ravel()[1] += 1
    wrong = replace(case, expectation=ExpectedOutputs(right, Provenance.STATED))
    output = run_in_lab(tmp_path, compiled(tmp_path, "wrong", cpp_program(wrong, "One wrong.")))
    assert "WRONG OutputTensor element 1: expected" in output
    assert "1 wrong elements" in output
    assert "wrong.dll 1\n" in output


def test_a_program_distinguishes_zeros_by_their_sign(tmp_path: Path) -> None:
    case = case_of("gather/boundary/negative")
    zeros = {name: np.zeros_like(array) for name, array in case.inputs().items()}
    right = replace(case, data={**zeros, "IndicesTensor": case.input("IndicesTensor")})
    wrong = replace(
        right,
        expectation=ExpectedOutputs(
            {"OutputTensor": np.negative(evaluate(right)["OutputTensor"])}, Provenance.STATED
        ),
    )
    source = cpp_program(wrong, "Negative zeros.")
    output = run_in_lab(tmp_path, compiled(tmp_path, "zeros", source))
    assert "WRONG OutputTensor element 0: expected -0" in output
    assert "zeros.dll 1\n" in output


def test_programs_of_right_graphs_find_no_wrong_element(tmp_path: Path) -> None:
    programs = [
        compiled(tmp_path, f"graph{number}", cpp_program(graph_of(beginning), beginning))
        for number, beginning in enumerate(RIGHT_GRAPHS)
    ]
    output = run_in_lab(tmp_path, *programs)
    assert output.count("0 wrong elements") == len(RIGHT_GRAPHS), output
    assert all(f"{program} 0\n" in output for program in programs), output


def test_a_program_of_a_graph_prints_the_wrong_element(tmp_path: Path) -> None:
    case = graph_of("wiring/outputs-in-another-order")
    name, right = next(iter(evaluate(case).items()))
    right.ravel()[2] += 1
    wrong = replace(case, expectation=ExpectedOutputs({name: right}, Provenance.STATED))
    output = run_in_lab(tmp_path, compiled(tmp_path, "wrong", cpp_program(wrong, "One wrong.")))
    assert f"WRONG {name} element 2: expected" in output
    assert "1 wrong elements" in output
    assert "wrong.dll 1\n" in output


ONE_HOT: Final = """
graph: one-hot
cases:
  - name: values-along-another-dimension
    note: A known fault of DirectML up to 1.15.4.
    inputs:
      i: {Sizes: [1, 1], DataType: INT32, values: [0]}
      v: {Sizes: [2, 1], DataType: FLOAT32, values: [3, 7]}
    nodes:
      hot:
        operator: ONE_HOT
        desc:
          IndicesTensor: i
          ValuesTensor: v
          OutputTensor: {Sizes: [1, 1], DataType: FLOAT32}
          Axis: 0
      negate:
        operator: ELEMENT_WISE_NEGATE
        desc: {InputTensor: hot, OutputTensor: {}}
    outputs: {y: negate}
"""


def test_a_program_shows_a_mistake_of_the_graph_compiler(tmp_path: Path) -> None:
    (tmp_path / "graph.yaml").write_text(ONE_HOT)
    [planned] = load_suite([tmp_path / "graph.yaml"]).plan()
    source = cpp_program(with_own_data(valid_case(planned)), "The first value for the second.")
    output = run_in_lab(tmp_path, compiled(tmp_path, "hot", source))
    assert "WRONG y element 0: expected -7" in output
    assert "actual -3\n" in output
    assert "hot.dll 1\n" in output


def test_a_graph_with_constants_compiles_as_a_program(tmp_path: Path) -> None:
    # It does not run, since CompileGraph of DirectML 1.15.4 crashes for such graphs in the lab.
    case = graph_of("constants/constant-")
    assert case.graph.constants
    source = cpp_program(case, "A constant.")
    assert "#define HAS_CONSTANTS" in source
    compiled(tmp_path, "constant", source)
