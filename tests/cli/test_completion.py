"""The shell completes operators, levels, formats and other values of options.

The tested code is in `dmlconf/cli/common/completion.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest

from dmlconf.cli.common import completion

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


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
def test_the_beginning_of_a_value_is_completed_with_all_that_fit(
    complete: Complete, beginning: str, completions: list[str]
) -> None:
    parameter: Any = click.Option(["--any"])
    assert complete(click.Context(click.Command("run")), parameter, beginning) == completions
