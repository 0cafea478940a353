"""Options that are numbers say in the same words, in their help and in messages, what is allowed.

The tested code is in `dmlconf/cli/common/parameter_types.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import dmlconf_here

RUNS = "a whole number from 1 to 1,000,000"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run --repeat 0", f"'0' is not {RUNS}"),
        ("run --repeat -1", f"'-1' is not {RUNS}"),
        ("run --repeat 1e9", f"'1e9' is not {RUNS}"),
        ("run --repeat 1000001", f"'1000001' is not {RUNS}"),
        ("run --repeat nan", f"'nan' is not {RUNS}"),
        ("run --retries -1", "'-1' is not a whole number from 0 to 1,000,000"),
        ("run --jobs 0", "'0' is neither a whole number from 1 to 1,024 nor auto"),
        (
            "run --jobs 1000000000",
            "'1000000000' is neither a whole number from 1 to 1,024 nor auto",
        ),
        ("run --show-failures -1", "'-1' is neither a whole number of at least 0 nor all"),
        ("run --timeout 0", "'0' is not a number above 0"),
        ("run --timeout nan", "'nan' is not a number above 0"),
        ("run --min-passed 101", "'101' is not a number from 0 to 100"),
        ("fuzz --nodes 1.5", "'1.5' is not a whole number from 1 to 100"),
        ("strength --sample inf", "'inf' is not a whole number of at least 1"),
        ("diagnose log.jsonl --time -1", "'-1' is not a number of at least 0"),
    ],
)
def test_numbers_outside_of_their_range_are_refused_with_the_range(
    tmp_path: Path, arguments: str, message: str
) -> None:
    done = dmlconf_here(tmp_path, *arguments.split())
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith(message)


def test_a_fraction_in_a_configuration_is_no_whole_number(tmp_path: Path) -> None:
    (tmp_path / "dmlconf.toml").write_text("[run]\nrepeat = 1.5\n", "utf-8")
    done = dmlconf_here(tmp_path, "run", "-o", "TILE", "--quick")
    assert done.returncode == 3
    assert f"dmlconf.toml:2:1: '1.5' is not {RUNS}" in done.stderr


def test_help_says_which_numbers_are_allowed(tmp_path: Path) -> None:
    text = " ".join(dmlconf_here(tmp_path, "run", "--help").stdout.split())
    assert "[default: 1; from 1 to 1,000,000]" in text
    assert "[default: 60.0; above 0]" in text
    assert "List the N slowest cases. [at least 0]" in text
