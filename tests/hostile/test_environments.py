"""In unusual environments dmlconf ends with a documented exit code and without a traceback.

The tested code is in `dmlconf/cli/entry_point.py`, `dmlconf/cli/common/logs.py`,
`dmlconf/cli/output/console.py`, `dmlconf/cli/output/files.py`, `dmlconf/run_log/log.py`,
`dmlconf/workers/scratch.py` and `dmlconf/workers/pool.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dmlconf.run_log.log import read_log
from tests.cli.process import DMLCONF, TILE, environment, script

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(sys.platform != "linux", reason="needs a shell and /proc"),
]

RUN = "run case.yaml --log run.jsonl"

SITUATIONS: dict[str, tuple[str, set[int]]] = {
    "no environment at all": (f"env -i $D {RUN}", {0}),
    "no home": (f"env -u HOME $D {RUN}", {0}),
    "a home that does not exist": ("env HOME=/nowhere/at/all $D run case.yaml", {0}),
    "the language C in ASCII": (f"env LC_ALL=C PYTHONUTF8=0 PYTHONIOENCODING=ascii $D {RUN}", {0}),
    "an unknown language": (f"env LC_ALL=xx_YY.nothing $D {RUN}", {0}),
    "no columns": (f"env COLUMNS=0 $D {RUN}", {0}),
    "columns that are no numbers": (f"env COLUMNS=wide LINES=-1 $D {RUN}", {0}),
    "a million columns": (f"env COLUMNS=1000000 $D {RUN}", {0}),
    "an unknown terminal": (f"env TERM=none FORCE_COLOR=1 $D {RUN}", {0}),
    "an unknown time zone": (f"env TZ=Nowhere/Land $D {RUN}", {0}),
    "closed streams": (f"$D {RUN} <&- >&- 2>&-", {0}),
    "a closed output": (f"$D {RUN} >&-", {0, 8}),
    "a pipe that nobody reads": (f"$D {RUN} | true; exit ${{PIPESTATUS[0]}}", {0}),
    "few open files": (f"ulimit -n 12; $D {RUN}", {0}),
    "few open files and workers": (f"ulimit -n 16; $D {RUN} -b faulty:no-output -j 4", {1, 4}),
    "files of at most 0 bytes": (f"ulimit -f 0; $D {RUN}", {2, 6}),
    "files of at most 0 bytes and workers": (
        f"ulimit -f 0; $D {RUN} -b faulty:no-output",
        {1, 2, 4, 6},
    ),
    "a temporary folder that cannot be written": (
        f"env TMPDIR=/proc $D {RUN} -b faulty:no-output",
        {1},
    ),
    "a log folder that is a file": ("env DMLCONF_LOG_DIRECTORY=case.yaml $D run case.yaml", {0, 2}),
    "a log folder that cannot be created": (
        "env DMLCONF_LOG_DIRECTORY=/proc/x $D run case.yaml",
        {0, 2},
    ),
    "a log in a folder that is a file": ("$D run case.yaml --log case.yaml/run.jsonl", {2}),
    "a log in a new folder": ("$D run case.yaml --log no/such/run.jsonl", {0}),
    "a log that is the case": ("$D run case.yaml --log case.yaml", {0, 2, 3}),
    "ignored signals": (
        f"trap '' INT TERM HUP PIPE; $D {RUN} | true; exit ${{PIPESTATUS[0]}}",
        {0},
    ),
    "ignored children": (f"trap '' CHLD; $D {RUN} -b faulty:no-output -j 2", {1}),
    "a deleted folder": (f"mkdir d; cd d; rmdir ../d; $D {RUN}", {2, 3}),
    "little memory": (f"export OPENBLAS_NUM_THREADS=1; ulimit -v 500000; $D {RUN}", {0}),
    "little stack": (f"ulimit -s 256; $D {RUN}", {0}),
    "warnings that are errors": (f"env PYTHONWARNINGS=error $D {RUN}", {0}),
    "optimised Python": (f"env PYTHONOPTIMIZE=2 $D {RUN}", {0}),
}
"""Commands of a shell, in which `$D` is dmlconf, and the exit codes that each may have."""


@pytest.mark.parametrize("name", SITUATIONS)
def test_an_unusual_environment_gives_a_documented_exit_code(tmp_path: Path, name: str) -> None:
    command, codes = SITUATIONS[name]
    (tmp_path / "case.yaml").write_text(TILE, encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", f"IFS=; {command}"],  # With an empty IFS, the path in $D may have spaces.
        cwd=tmp_path,
        env=environment(tmp_path, D=script(tmp_path)),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode in codes, done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode not in (0, 1):
        assert done.stderr.strip()
    if (tmp_path / "run.jsonl").exists() and done.returncode in (0, 1):
        assert read_log(tmp_path / "run.jsonl").complete


PIPE_BYTES = 4096


def test_a_large_report_passes_a_small_pipe(tmp_path: Path) -> None:
    import fcntl

    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    process = subprocess.Popen(
        [*DMLCONF, "run", "-o", "TILE", "--report", "json", "-q"],
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.DEVNULL,
        env=environment(tmp_path),
    )
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        content = stream.read()
    assert process.wait(timeout=60) == 0
    assert len(content) > 100 * PIPE_BYTES
    report = json.loads(content)
    assert len(report["verdicts"]) == report["run"]["selected"] > 500
