"""Cases that do not fit into memory are unsupported, and their tensors are never made.

The tested code is in `dmlconf/workers/memory.py`, `dmlconf/engine/plan_verdicts.py`,
`dmlconf/judging/judge.py` and `dmlconf/cli/commands/writing/validate.py`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dmlconf.backends import registry
from dmlconf.backends.protocol import Capabilities
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import Suite, load_suite, valid_case
from dmlconf.cases.model import Case, CaseTemplate, PlannedCase
from dmlconf.cases.selecting.selection import LARGE_TAG
from dmlconf.catalogue.model import FEATURE_LEVELS
from dmlconf.engine.against import suite_expectations
from dmlconf.engine.session import in_process, judged
from dmlconf.judging.judge import unsupported_reason
from dmlconf.resources import cases_directory
from dmlconf.run_log.log import read_log
from dmlconf.tensors.datatypes import DataType
from dmlconf.verdicts.verdict import ReasonKind
from dmlconf.workers.memory import MUCH, judged_bytes, machine_memory, shortage, tensor_bytes
from tests.cli.process import dmlconf, dmlconf_here, environment

VARIABLE = "DMLCONF_MEMORY_MIB"

LARGE = """\
operator: ACTIVATION_RELU
cases:
  - desc:
      InputTensor: {Sizes: [%d, 1024, 1024], DataType: FLOAT16, fill: {normal: {least: 0}}}
      OutputTensor: {Sizes: [%d, 1024, 1024], DataType: FLOAT16}
"""


MANY = """\
operator: JOIN
cases:
  - matrix: {Count: [1024]}
    desc:
      InputTensors:
        repeat: =Count
        of: {Sizes: [2], Strides: [4294967295], DataType: FLOAT64, fill: sequence}
      OutputTensor: {Sizes: [=2 * Count], DataType: FLOAT64}
      Axis: 0
"""
"""Input buffers of 32 TiB."""


def large(folder: Path, mebi_elements: int) -> Path:
    path = folder / "large.yaml"
    path.write_text(LARGE % (mebi_elements, mebi_elements))
    return path


def case(folder: Path, mebi_elements: int) -> Case:
    return build(next(load_suite([large(folder, mebi_elements)]).plan()))


def test_a_case_may_have_more_than_2_to_the_26_elements(tmp_path: Path) -> None:
    actual = case(tmp_path, 65)
    assert tensor_bytes(actual) == 2 * 65 << 21
    assert shortage(actual, machine=1 << 40) is None


def test_the_reason_of_a_shortage_names_needed_and_available_memory(tmp_path: Path) -> None:
    actual = case(tmp_path, 512)  # Two tensors of 1 GiB.
    machine = shortage(actual, machine=4 << 30)
    assert machine == "needs up to 8.0 GiB of memory, and this machine has 4.0 GiB"
    device = shortage(actual, device=1 << 30, machine=1 << 40)
    assert device == "its tensors have 2.0 GiB, and the device 1.0 GiB"


def test_a_small_case_fits_into_any_memory(tmp_path: Path) -> None:
    small = tmp_path / "small.yaml"
    small.write_text((LARGE % (1, 1)).replace("1024, 1024", "2, 3"))
    assert shortage(build(next(load_suite([small]).plan())), device=0, machine=0) is None


def test_the_memory_of_this_machine_is_plausible() -> None:
    assert 1 << 28 < machine_memory() < 1 << 50


@pytest.fixture
def _fresh() -> Iterator[None]:
    """Clear the cache of the memory limit, for the test and after it."""
    machine_memory.cache_clear()
    yield
    machine_memory.cache_clear()


@pytest.mark.usefixtures("_fresh")
def test_the_environment_bounds_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "512")
    assert machine_memory() == 512 << 20
    reason = shortage(case(tmp_path, 64))  # Two tensors of 128 MiB, each four times.
    assert reason == "needs up to 1.0 GiB of memory, and this machine has 512.0 MiB"
    assert shortage(case(tmp_path, 32)) is None


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("value", ["", "much", "1e3", str(1 << 40)])
def test_an_invalid_memory_bound_is_ignored(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    whole = machine_memory()
    machine_memory.cache_clear()
    monkeypatch.setenv(VARIABLE, value)
    assert machine_memory() == whole


def test_a_case_beyond_the_memory_bound_is_unsupported(tmp_path: Path) -> None:
    file = large(tmp_path, 64)
    done = dmlconf(tmp_path, "run", file, "--log", "x.jsonl", **{VARIABLE: "512"})
    assert done.returncode == 7, "nothing passed, and nothing failed"
    [verdict] = read_log(tmp_path / "x.jsonl").verdicts
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.MEMORY
    assert verdict.reason.message.endswith("this machine has 512.0 MiB")


@pytest.mark.parametrize("memory", [None, 1 << 50])
def test_a_case_that_no_machine_holds_is_unsupported(tmp_path: Path, memory: int | None) -> None:
    has = Capabilities(FEATURE_LEVELS[-1], frozenset(DataType), memory)
    reason = unsupported_reason(case(tmp_path, 1 << 22), has)
    assert reason is not None
    assert reason.kind is ReasonKind.MEMORY


def test_inputs_of_32_tib_are_unsupported_and_never_made(tmp_path: Path) -> None:
    path = tmp_path / "join.yaml"
    path.write_text(MANY)
    process = dmlconf_here(tmp_path, "run", str(path))
    assert "1 unsupported" in process.stdout, process.stdout + process.stderr


def test_a_case_that_may_take_much_memory_runs_in_another_process(tmp_path: Path) -> None:
    """A worker process needs a temporary folder: without one, a case of much memory cannot run.

    With more memory the run's own process runs the same case, and needs no such folder.
    """
    text = LARGE.replace("normal: {least: 0}", "sequence") % (1, 1)
    (tmp_path / "relu.yaml").write_text(text, encoding="utf-8")
    done = dmlconf(tmp_path, "run", "relu.yaml", "--log", "run.jsonl", **{VARIABLE: "200"})
    assert "1 unchecked" in done.stdout
    without_folder = {"TMPDIR": "/proc", VARIABLE: "200"}
    probe = (
        "import tempfile; tempfile.tempdir = '/proc/none'; "
        "from dmlconf.cli.entry_point import main; main()"
    )
    code = [sys.executable, "-c", probe, "run", "relu.yaml"]
    env = environment(tmp_path, **without_folder)
    apart = subprocess.run(code, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert apart.returncode == 4
    assert "numpy needs a temporary folder for its processes" in apart.stderr
    here = environment(tmp_path, **without_folder | {VARIABLE: "4000"})
    together = subprocess.run(
        code, cwd=tmp_path, env=here, capture_output=True, text=True, check=False
    )
    assert "1 unchecked" in together.stdout


def test_validate_refuses_a_case_of_much_memory_without_the_tag_large(tmp_path: Path) -> None:
    text = LARGE.replace("normal: {least: 0}", "sequence") % (4, 4)
    (tmp_path / "relu.yaml").write_text(text, encoding="utf-8")
    refused = dmlconf_here(tmp_path, "validate", "relu.yaml", "--no-warnings")
    assert refused.returncode == 3
    assert "relu.yaml:3:3: activation_relu/relu may take 512 MiB of memory" in refused.stderr
    assert "add the tag large" in refused.stderr
    tagged = text.replace("  - desc:", "  - tags: [large]\n    desc:")
    (tmp_path / "relu.yaml").write_text(tagged, encoding="utf-8")
    assert dmlconf_here(tmp_path, "validate", "relu.yaml", "--no-warnings").returncode == 0


@pytest.mark.whole
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/clear_refs")
def test_no_case_of_the_suite_takes_more_memory_than_allowed(bundled_suite: Suite) -> None:
    """Judge the largest case of each template tagged `sizes`, and measure the peak of memory."""
    numpy = registry.parse("numpy")
    backend = in_process(numpy, registry.create(numpy))
    against, _ = suite_expectations([cases_directory()])
    largest: dict[CaseTemplate, tuple[int, PlannedCase]] = {}
    for planned in bundled_suite.plan():
        tags = planned.template.tags
        assert LARGE_TAG not in tags, planned.identifier
        if "sizes" in tags:
            size = judged_bytes(valid_case(planned))
            if size >= largest.get(planned.template, (0, planned))[0]:
                largest[planned.template] = size, planned
    wrong = {}
    for _, planned in largest.values():
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before = _status("VmRSS")
        list(judged([planned], backend, against))
        taken = _status("VmHWM") - before
        if taken > MUCH:
            wrong[planned.identifier] = taken >> 20
    assert wrong == {}


def _status(name: str) -> int:
    """Return the number of bytes in a line of this process's status."""
    text = Path("/proc/self/status").read_text("ascii")
    return int(text.partition(f"{name}:")[2].split()[0]) << 10
