"""Cases that do not fit into memory are unsupported; those of much memory run in another process.

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
from dmlconf.cases.building.tensor_entry import LARGEST_EXPECTED_ELEMENTS
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
from dmlconf.verdicts.verdict import ReasonKind, Status
from dmlconf.workers.memory import (
    LIMIT_VARIABLE,
    MUCH,
    judged_bytes,
    machine_memory,
    parts_that_fit,
    shortage,
    tensor_bytes,
)
from tests.cli.process import dmlconf, dmlconf_here, environment

RELU = """\
operator: ACTIVATION_RELU
cases:
  - desc:
      InputTensor: {Sizes: [%d, 1024, 1024], DataType: FLOAT16, fill: {normal: {least: 0}}}
      OutputTensor: {Sizes: [%d, 1024, 1024], DataType: FLOAT16}
"""
"""A case with two tensors; each takes 2 MiB times the number that stands for `%d`."""

HUGE_INPUTS = """\
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
"""A case with 1,024 inputs; the two elements of each are 32 GiB apart, so all take 32 TiB."""


def write_relu(folder: Path, mebi_elements: int) -> Path:
    """Write a case whose tensors have this many times 2^20 elements; return its file."""
    path = folder / "large.yaml"
    path.write_text(RELU % (mebi_elements, mebi_elements))
    return path


def relu_case(folder: Path, mebi_elements: int) -> Case:
    return build(next(load_suite([write_relu(folder, mebi_elements)]).plan()))


def test_output_may_have_more_elements_than_one_with_expected_values(tmp_path: Path) -> None:
    actual = relu_case(tmp_path, 65)
    assert actual.outputs()["OutputTensor"].ElementCount > LARGEST_EXPECTED_ELEMENTS
    assert tensor_bytes(actual) == 2 * 65 * 2 << 20
    assert shortage(actual, machine=1 << 40) is None


def test_shortage_names_needed_and_available_memory(tmp_path: Path) -> None:
    actual = relu_case(tmp_path, 512)  # Two tensors of 1 GiB; each may be needed four times.
    machine = shortage(actual, machine=4 << 30)
    assert machine == "needs up to 8.0 GiB of memory, and this machine has 4.0 GiB"
    device = shortage(actual, device=1 << 30, machine=1 << 40)
    assert device == "its tensors have 2.0 GiB, and the device 1.0 GiB"


def test_a_small_case_fits_into_any_memory(tmp_path: Path) -> None:
    small = tmp_path / "small.yaml"
    small.write_text((RELU % (1, 1)).replace("1024, 1024", "2, 3"))
    assert shortage(build(next(load_suite([small]).plan())), device=0, machine=0) is None


def test_memory_of_this_machine_is_plausible() -> None:
    assert 1 << 28 < machine_memory() < 1 << 50


@pytest.fixture
def _fresh() -> Iterator[None]:
    """Clear the cache of the memory limit, for the test and after it."""
    machine_memory.cache_clear()
    yield
    machine_memory.cache_clear()


@pytest.mark.usefixtures("_fresh")
def test_an_environment_variable_limits_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "512")
    assert machine_memory() == 512 << 20
    reason = shortage(relu_case(tmp_path, 64))  # Two tensors of 128 MiB, each needed four times.
    assert reason == "needs up to 1.0 GiB of memory, and this machine has 512.0 MiB"
    assert shortage(relu_case(tmp_path, 32)) is None


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("value", ["", "much", "1e3", str(1 << 40)])
def test_invalid_or_too_large_memory_limit_is_ignored(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    whole = machine_memory()
    machine_memory.cache_clear()
    monkeypatch.setenv(LIMIT_VARIABLE, value)
    assert machine_memory() == whole


@pytest.mark.slow
def test_a_case_beyond_the_memory_limit_is_unsupported(tmp_path: Path) -> None:
    file = write_relu(tmp_path, 64)
    done = dmlconf(tmp_path, "run", file, "--log", "x.jsonl", **{LIMIT_VARIABLE: "512"})
    assert done.returncode == 7, "nothing passed, and nothing failed"
    [verdict] = read_log(tmp_path / "x.jsonl").verdicts
    assert verdict.status is Status.UNSUPPORTED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.MEMORY
    assert verdict.reason.message.endswith("this machine has 512.0 MiB")


@pytest.mark.parametrize("device_memory", [None, 1 << 50])
def test_case_of_16_tib_is_unsupported_on_any_device(
    tmp_path: Path, device_memory: int | None
) -> None:
    has = Capabilities(FEATURE_LEVELS[-1], frozenset(DataType), device_memory)
    reason = unsupported_reason(relu_case(tmp_path, 1 << 22), has)  # Two tensors of 8 TiB.
    assert reason is not None
    assert reason.kind is ReasonKind.MEMORY


def test_case_with_inputs_of_32_tib_is_unsupported(
    tmp_path: Path,
) -> None:
    path = tmp_path / "join.yaml"
    path.write_text(HUGE_INPUTS)
    process = dmlconf_here(tmp_path, "run", str(path))
    assert "1 unsupported" in process.stdout, process.stdout + process.stderr


@pytest.mark.slow
def test_case_of_much_memory_runs_in_another_process(tmp_path: Path) -> None:
    """Only another process needs a temporary folder.

    The case may take 128 MiB, more than an eighth of 200 MiB, but not of 4,000 MiB.
    """
    text = RELU.replace("normal: {least: 0}", "sequence") % (1, 1)
    (tmp_path / "relu.yaml").write_text(text, encoding="utf-8")
    done = dmlconf(tmp_path, "run", "relu.yaml", "--log", "run.jsonl", **{LIMIT_VARIABLE: "200"})
    assert "1 unchecked" in done.stdout

    without_temporary_folder = (
        "import tempfile; tempfile.tempdir = '/proc/none'; "
        "from dmlconf.cli.entry_point import main; main()"
    )

    def run_with_memory(mebibytes: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", without_temporary_folder, "run", "relu.yaml"]
        env = environment(tmp_path, TMPDIR="/proc", **{LIMIT_VARIABLE: str(mebibytes)})
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    much = run_with_memory(200)
    assert much.returncode == 4
    assert "numpy needs a temporary folder for its processes" in much.stderr
    assert "1 unchecked" in run_with_memory(4000).stdout


def test_validate_refuses_large_cases_without_the_tag_large(tmp_path: Path) -> None:
    # Judging takes 64 bytes for each of 2 * 4 * 2**20 elements.
    text = RELU.replace("normal: {least: 0}", "sequence") % (4, 4)
    (tmp_path / "relu.yaml").write_text(text, encoding="utf-8")
    refused = dmlconf_here(tmp_path, "validate", "relu.yaml", "--no-warnings")
    assert refused.returncode == 3
    assert "relu.yaml:3:3: activation_relu/relu may take 512 MiB of memory" in refused.stderr
    assert "add the tag large" in refused.stderr
    tagged = text.replace("  - desc:", "  - tags: [large]\n    desc:")
    (tmp_path / "relu.yaml").write_text(tagged, encoding="utf-8")
    assert dmlconf_here(tmp_path, "validate", "relu.yaml", "--no-warnings").returncode == 0


def test_parts_have_limited_items_and_bytes() -> None:
    sizes = [5, 1, 1, 1, 1, 9, 2]
    parts = list(parts_that_fit(sizes, lambda size: size, most_items=2, most_bytes=6))
    assert parts == [[5, 1], [1, 1], [1], [9], [2]]


@pytest.mark.whole
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/clear_refs")
def test_no_bundled_case_but_layers_of_networks_takes_much_memory(bundled_suite: Suite) -> None:
    """The largest case of each template with the tag `sizes` stands for all.

    Layers of networks have the tag `model`, and not `sizes`.
    """
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
    assert largest
    wrong = {}
    for _, planned in largest.values():
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before = _status("VmRSS")
        list(judged([planned], backend, against))
        taken = _status("VmHWM") - before
        if taken > MUCH:
            wrong[planned.identifier] = f"{taken >> 20} MiB"
    assert wrong == {}


def _status(name: str) -> int:
    """Return a number of bytes from this process's status, such as that of the line `VmRSS`."""
    text = Path("/proc/self/status").read_text("ascii")
    return int(text.partition(f"{name}:")[2].split()[0]) << 10
