"""Hostile input takes neither gigabytes nor minutes, and causes no traceback.

The tested code is in `dmlconf/limits.py`, `dmlconf/expressions.py`,
`dmlconf/cases/loading/matrix.py`, `dmlconf/cases/loading/discovery.py`,
`dmlconf/cases/selecting/keywords.py`, `dmlconf/cases/selecting/where.py`,
`dmlconf/documents/files.py`, `dmlconf/documents/trees.py`, `dmlconf/documents/schema.py`,
`dmlconf/cli/options/case_lists.py` and `dmlconf/cli/common/configuration.py`.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import DMLCONF, TILE, dmlconf_here, environment, write

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux limits memory like this"
)

MATRIX = """
operator: TILE
cases:
  - name: stated
    matrix: {{A: "={expression}"{more}}}
    desc:
      InputTensor: {{Sizes: [2], DataType: FLOAT32, values: [1, 2]}}
      OutputTensor: {{Sizes: [4], DataType: FLOAT32}}
      Repeats: [2]
    expect: {{OutputTensor: [1, 2, 1, 2]}}
"""


def run_with_limits(
    directory: Path, *arguments: str, seconds: int = 30
) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    return subprocess.run(
        [*DMLCONF, *arguments],
        cwd=directory,
        env=environment(directory, OPENBLAS_NUM_THREADS="1"),
        capture_output=True,
        encoding="utf-8",
        preexec_fn=limit,
        check=False,
    )


@pytest.mark.slow
def test_a_list_of_cases_without_end_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    done = run_with_limits(tmp_path, "run", "tile.yaml", "--cases", "/dev/zero")
    assert done.returncode == 2
    assert "/dev/zero: has more than 67,108,864 bytes" in done.stderr


def test_a_list_of_cases_may_come_from_a_pipe(tmp_path: Path) -> None:
    write(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", "echo tile/tile/stated > pipe"], cwd=tmp_path):
        done = run_with_limits(tmp_path, "list", "tile.yaml", "--cases", "pipe")
    assert done.stdout == "tile/tile/stated\n"


@pytest.mark.parametrize(
    ("expression", "more", "limit"),
    [
        ("tuple(range(4096) for a in range(4096) for b in range(64))", "", "65,536 values"),
        # Each of 16 * 4,096 * 15 names would have 4,000 numbers.
        pytest.param(
            "tuple(tuple(range(4000)) for a in range(16))",
            ', B: "=range(4096)", C: "=range(15)"',
            "67,108,864 characters",
            marks=pytest.mark.hostile,
        ),
    ],
    ids=["values", "names"],
)
def test_a_matrix_that_would_fill_the_memory_is_refused(
    tmp_path: Path, expression: str, more: str, limit: str
) -> None:
    write(tmp_path, MATRIX.format(expression=expression, more=more))
    done = run_with_limits(tmp_path, "list", "tile.yaml", seconds=10)
    assert done.returncode == 3
    assert f"more than {limit}" in done.stderr


@pytest.mark.hostile
def test_the_matrices_of_a_file_share_one_budget_of_steps(tmp_path: Path) -> None:
    # One matrix takes about 4 million steps.
    expression = "(sum(1 for a in range(2000) for b in range(2000)),)"
    first, _, entry = MATRIX.format(expression=expression, more="").partition("  - ")
    entries = "".join(f"  - {entry}".replace("stated", f"number-{n}") for n in range(9))
    write(tmp_path, first + entries)
    # The steps until the refusal take 15 seconds of a fast processor.
    done = run_with_limits(tmp_path, "validate", "tile.yaml", seconds=300)
    assert done.returncode == 3
    assert "more than 20,000,000 steps" in done.stderr


@pytest.mark.slow
def test_a_condition_that_takes_too_many_steps_is_refused(tmp_path: Path) -> None:
    condition = "any(a + b + c < 0 for a in range(4096) for b in range(4096) for c in range(4096))"
    done = run_with_limits(tmp_path, "list", "-o", "TILE", "--where", condition)
    assert done.returncode == 2
    assert "more than 200,000 steps" in done.stderr


@pytest.mark.slow
def test_a_file_with_fifteen_thousand_mistakes_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "operator: TILE\ncases:\n" + "  - note: There is no desc.\n" * 15_000)
    done = run_with_limits(tmp_path, "validate", "tile.yaml")
    assert done.returncode == 3
    assert "15000 problems found" in done.stderr


@pytest.mark.slow
def test_a_log_with_a_million_mistakes_is_refused(tmp_path: Path) -> None:
    run = ("run", write(tmp_path), "-b", "faulty:zeros", "--log", "run.jsonl")
    assert dmlconf_here(tmp_path, *run).returncode == 1
    header, verdict, footer = (tmp_path / "run.jsonl").read_text("utf-8").splitlines()
    wrong = json.loads(verdict)
    wrong["reason"]["differences"] = [[]] * 1_000_000
    text = "\n".join((header, json.dumps(wrong), footer))
    (tmp_path / "run.jsonl").write_text(text, encoding="utf-8")
    done = run_with_limits(tmp_path, "report", "run.jsonl")
    assert done.returncode == 3, done.stderr
    assert "run.jsonl:2: not a record of a run log: `reason.differences[0]`" in done.stderr


@pytest.mark.parametrize("keywords", ["(" * 300 + "tile" + ")" * 300, "not " * 5000 + "tile"])
def test_keywords_may_nest_300_parentheses_or_5000_negations(tmp_path: Path, keywords: str) -> None:
    write(tmp_path)
    done = dmlconf_here(tmp_path, "list", "tile.yaml", "-k", keywords)
    assert done.stdout == "tile/tile/stated\n"


def test_an_unclosed_parenthesis_among_900_is_named(tmp_path: Path) -> None:
    write(tmp_path)
    keywords = "(not " * 900 + "tile" + ")" * 899
    done = dmlconf_here(tmp_path, "list", "tile.yaml", "-k", keywords)
    assert done.returncode == 2
    assert "the parenthesis at column 1 is not closed" in done.stderr


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("[" * 1000 + "]" * 1000, "nested deeper than 40 levels"),
        ("9" * 5000, "a number of more than 400 characters"),
        ("0x" + "f" * 5000, "a number of more than 400 characters"),
        # Only the syntax error is reported, and not the depth of the next line.
        ("x\n[" + ".".join("a" * 50) + "]", "Invalid value"),
    ],
)
def test_a_configuration_beyond_the_limits_is_refused(
    tmp_path: Path, value: str, problem: str
) -> None:
    write(tmp_path)
    (tmp_path / "dmlconf.toml").write_text(f"timeout = {value}\n", encoding="utf-8")
    done = dmlconf_here(tmp_path, "list", "tile.yaml")
    assert done.returncode == 3
    assert problem in done.stderr


def test_a_configuration_of_deep_tables_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "dmlconf.toml").write_text(f"[{'.'.join('a' * 50)}]\n", encoding="utf-8")
    done = dmlconf_here(tmp_path, "list", "tile.yaml")
    assert done.returncode == 3
    assert "nested deeper than 40 levels" in done.stderr


def test_a_case_file_below_1500_nested_folders_is_found(tmp_path: Path) -> None:
    make = "import os\nfor n in range(1500):\n    os.mkdir('a')\n    os.chdir('a')\n"
    make += f"open('deep.yaml', 'w').write({TILE!r})\n"
    subprocess.run([sys.executable, "-c", make], cwd=tmp_path, check=True)
    try:
        done = dmlconf_here(tmp_path, "list", ".")
    finally:  # Python's functions for removing trees are recursive.
        subprocess.run(["rm", "-rf", str(tmp_path / "a")], check=True)
    assert done.stdout == "tile/deep/stated\n"


def _unprivileged(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run dmlconf as root, but without the privilege to ignore permissions."""
    return subprocess.run(
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *DMLCONF, *arguments],
        cwd=directory,
        env=environment(directory, DMLCONF_LOG_DIRECTORY=str(directory.parent / "logs")),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0,
    reason="only root can give a folder to another user",
)


@needs_root
@pytest.mark.hostile
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "-o", "TILE", "--quick", "-q"], 0),
        (["list", "-o", "TILE"], 0),
        (["config"], 0),
        (["validate", "tile.yaml"], 3),
        (["validate", "."], 3),
        (["run", "tile.yaml"], 3),
        (["report", "run.jsonl"], 3),
        (["verify", "it.dmlcert"], 3),
        (["run", "-o", "TILE", "--quick", "--log", "run.jsonl"], 2),
        (["run", "-o", "TILE", "--quick", "--report", "json:out.json"], 2),
        (["run", "-o", "TILE", "--quick", "--cases", "list.txt"], 2),
    ],
)
def test_a_working_folder_without_permission_gives_no_traceback(
    tmp_path: Path, arguments: list[str], code: int
) -> None:
    folder = tmp_path / "of another user"
    folder.mkdir(mode=0o700)
    write(folder)
    os.chown(folder, 65534, 65534)  # The user and the group `nobody`.
    done = _unprivileged(folder, *arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


@needs_root
def test_unreadable_folder_of_cases_is_reported(tmp_path: Path) -> None:
    write(tmp_path)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    os.chown(closed, 65534, 65534)
    done = _unprivileged(tmp_path, "list", ".")
    assert done.returncode == 3
    assert "closed: cannot be read: Permission denied" in done.stderr
