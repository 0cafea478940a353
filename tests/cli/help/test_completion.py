"""In the shell, operators, levels, formats, cases and other values of options are completed.

The tested code is in `dmlconf/cli/common/completion.py`, `dmlconf/cli/entry_point.py`,
`dmlconf/cli/options/case_lists.py` and `dmlconf/cli/options/named_operators.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from dmlconf.cli.common import completion
from dmlconf.cli.options.case_lists import listed_cases
from tests.cli.process import dmlconf, dmlconf_here

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def test_completion_for_an_unknown_shell_is_refused(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, _DMLCONF_COMPLETE="powershell_source")
    assert (done.returncode, done.stdout) == (2, "")
    message = "_DMLCONF_COMPLETE=powershell_source: use bash_source, zsh_source or fish_source"
    assert message in done.stderr
    script = dmlconf_here(tmp_path, _DMLCONF_COMPLETE="zsh_source")
    assert script.returncode == 0
    assert "#compdef dmlconf" in script.stdout


@pytest.mark.parametrize(
    ("complete", "beginning", "completions"),
    [
        (completion.complete_operator, "til", ["TILE"]),
        (completion.complete_level, "3", ["3_0", "3_1"]),
        (completion.completion_among(("html", "json", "junit")), "j", ["json", "junit"]),
        (completion.complete_backend, "faul", ["faulty"]),
        (
            completion.complete_backend,
            "directml:meta",
            ["directml:metacommands=on", "directml:metacommands=off", "directml:metacommands=both"],
        ),
        (
            completion.complete_backend,
            "directml:adapter=1,ha",
            [
                "directml:adapter=1,half=on",
                "directml:adapter=1,half=off",
                "directml:adapter=1,half=both",
            ],
        ),
        (completion.complete_backend, "faulty:zer", ["faulty:zeros"]),
        (completion.complete_backend, "numpy:", []),
        (
            completion.complete_case,
            "tile/documented/",
            ["tile/documented/example-1-three-by-three"],
        ),
    ],
)
def test_the_beginning_of_a_value_is_completed(
    complete: Complete, beginning: str, completions: list[str]
) -> None:
    parameter: Any = click.Option(["--any"])
    assert complete(click.Context(click.Command("run")), parameter, beginning) == completions


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(tmp_path: Path, shell: str) -> None:
    done = dmlconf(tmp_path, _DMLCONF_COMPLETE=f"{shell}_source")
    assert f"_DMLCONF_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.slow
def test_the_program_completes_operators_and_cases_for_bash(tmp_path: Path) -> None:
    def completed(words: str, number: int) -> list[str]:
        done = dmlconf(
            tmp_path, _DMLCONF_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(number)
        )
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert completed("dmlconf run -o argm", 3) == ["ARGMAX", "ARGMIN"]
    cases = completed("dmlconf show tile/doc", 2)
    assert cases == ["tile/documented/example-1-three-by-three"]


@pytest.mark.slow
def test_completion_reads_no_list_of_cases_and_prints_no_hint(tmp_path: Path) -> None:
    # A run would explain that `Conv` is a name of ONNX, and that there is no file missing.txt.
    words = "dmlconf list -o Conv --cases missing.txt --feature-level 3"
    done = dmlconf(tmp_path, _DMLCONF_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD="7")
    assert done.stdout == "plain,3_0\nplain,3_1\n"
    assert done.stderr == ""
    context = click.Context(click.Command("list"), resilient_parsing=True)
    assert listed_cases(context, click.Option(["--cases"]), "-") is None
