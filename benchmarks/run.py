"""Measure dmlconf against its peer, in one run: `python -m benchmarks.run [--small]`.

With `--small` everything runs once, on few cases, and the peer is this Python's own onnx.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
CASES: Final = HERE.parent / "cases"
ONE_CASE: Final = "gather/documented/example-1-1d-remapping"
PEER_TESTS: Final = r"^test_(gather_\d|gather_neg|scatter_elements|tile|argmin|concat)"
RUNS: Final = 9


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured.

    Attributes:
        runs: how often each process runs, after one that does not count.
        cases: of dmlconf, for the throughput.
        peer_tests: the pattern of the peer's tests that are set against these cases.
        matrix: the numbers of cases whose growth is measured.
    """

    runs: int
    cases: Path
    peer_tests: str
    matrix: tuple[int, ...]


WHOLE: Final = Size(RUNS, CASES, PEER_TESTS, (1_000, 10_000, 100_000))
SMALL: Final = Size(0, CASES / "tile", r"^test_tile", (100, 1_000))

MATRIX: Final = """
operator: GATHER
cases:
  - matrix: {{Number: "=range(4096)", Group: "=range({groups})"}}
    where: =Group * 4096 + Number < {count}
    desc:
      InputTensor: {{Sizes: [2, 3, 4], DataType: FLOAT32, fill: sequence}}
      IndicesTensor:
        Sizes: [1, 1, 5]
        DataType: UINT32
        fill: {{integers: {{low: 0, high: 3, seed: =Number}}}}
      OutputTensor: {{Sizes: [2, 3, 5], DataType: FLOAT32}}
      Axis: 2
      IndexDimensions: 1
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One finished process: wall seconds, and peak memory in MiB."""

    seconds: float
    mebibytes: float
    output: str


NOTHING_CHECKED: Final = 7
"""The exit code of a run whose cases have no expectation."""


def sample(command: Sequence[str], code: int = 0) -> Sample:
    """Run a process to its end, which must have this exit code, and return its usage."""
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        output.seek(0)
        text = output.read().decode()
    if os.waitstatus_to_exitcode(status) != code:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return Sample(seconds, usage.ru_maxrss / 1024, text)


def side_by_side(commands: dict[str, Sequence[str]], runs: int) -> dict[str, list[Sample]]:
    """Run the commands in turn, after one run of each, which counts only if it is the only one."""
    samples = {name: [sample(command)] for name, command in commands.items()}
    if runs:
        samples = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            samples[name].append(sample(command))
    return samples


def seconds(samples: list[Sample]) -> float:
    """Return the median of the samples' wall seconds."""
    return statistics.median(s.seconds for s in samples)


def ratio(samples: list[Sample], others: list[Sample]) -> float:
    """Return the median of the pairs' ratios."""
    return statistics.median(a.seconds / b.seconds for a, b in zip(samples, others, strict=True))


def make_peer(directory: Path) -> str:
    """Install the peer into its own environment, and return its Python."""
    venv.create(directory, with_pip=True)
    python = str(directory / ("Scripts" if os.name == "nt" else "bin") / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "onnx"], check=True)
    return python


def cold_start(dmlconf: str, peer: str, size: Size) -> None:
    """Measure one case from a fresh process."""
    file = str(CASES / "gather" / "documented.yaml")
    samples = side_by_side(
        {
            "numpy": [sys.executable, "-c", "import numpy"],
            "dmlconf": [dmlconf, "run", file, "--case", ONE_CASE],
        },
        size.runs,
    )
    one_test = [peer, str(HERE / "peer_onnx.py"), "^test_gather_0_cpu$"]
    peers = side_by_side({"peer": one_test}, min(3, size.runs))
    print("cold start, one case")
    print(f"  import numpy       {seconds(samples['numpy']):.3f} s")
    print(
        f"  dmlconf            {seconds(samples['dmlconf']):.3f} s, "
        f"{ratio(samples['dmlconf'], samples['numpy']):.2f} times import numpy"
    )
    print(
        f"  peer               {seconds(peers['peer']):.3f} s, "
        f"{seconds(peers['peer']) / seconds(samples['dmlconf']):.1f} times dmlconf"
    )


def throughput(dmlconf: str, peer: str, directory: Path, size: Size) -> None:
    """Measure cases per second over the suite."""
    log = directory / "suite.jsonl"
    samples = side_by_side(
        {
            "dmlconf": [dmlconf, "run", str(size.cases), "--log", str(log)],
            "peer": [peer, str(HERE / "peer_onnx.py"), size.peer_tests],
        },
        min(3, size.runs),
    )
    footer = json.loads(log.read_text("utf-8").splitlines()[-1])
    ours = sum(footer["summary"].values())
    words = samples["peer"][-1].output.split()
    theirs, inside = int(words[0]), float(words[4])
    whole_ours = ours / seconds(samples["dmlconf"])
    whole_theirs = theirs / seconds(samples["peer"])
    run_ours, run_theirs = ours / footer["seconds"], theirs / inside
    print(f"throughput, {ours:,} cases of dmlconf, {theirs} of the peer ({words[2]} failed)")
    print(
        f"  whole process      {whole_ours:,.0f} and {whole_theirs:,.1f} cases per second, "
        f"ratio {whole_ours / whole_theirs:,.0f}"
    )
    print(
        f"  run alone          {run_ours:,.0f} and {run_theirs:,.0f} cases per second, "
        f"ratio {run_ours / run_theirs:,.1f}"
    )


def growth(dmlconf: str, directory: Path, size: Size) -> None:
    """Measure time and memory at growing numbers of cases."""
    print("growth, matrix cases")
    for count in size.matrix:
        path = directory / f"matrix-{count}.yaml"
        path.write_text(MATRIX.format(groups=count // 4096 + 1, count=count), encoding="utf-8")
        log = directory / f"matrix-{count}.jsonl"
        taken = sample([dmlconf, "run", str(path), "--log", str(log)], NOTHING_CHECKED)
        footer = json.loads(log.read_text("utf-8").splitlines()[-1])
        assert sum(footer["summary"].values()) == count
        each = taken.seconds / count * 1e6
        text = f"{taken.seconds:7.2f} s, {each:4.0f} us per case, peak {taken.mebibytes:.0f} MiB"
        print(f"  {count:>7,}            {text}")


def main() -> None:
    """Print every measure."""
    dmlconf = shutil.which("dmlconf", path=str(Path(sys.executable).parent))
    if dmlconf is None:
        raise SystemExit("install dmlconf into this Python's environment first")
    with tempfile.TemporaryDirectory(prefix="dmlconf-benchmark-") as name:
        directory = Path(name)
        os.environ["DMLCONF_LOG_DIRECTORY"] = str(directory / "logs")
        small = "--small" in sys.argv
        size = SMALL if small else WHOLE
        peer = sys.executable if small else make_peer(directory / "peer")
        cold_start(dmlconf, peer, size)
        throughput(dmlconf, peer, directory, size)
        growth(dmlconf, directory, size)


if __name__ == "__main__":
    main()
