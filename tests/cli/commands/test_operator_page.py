"""`dmlconf operators NAME` shows what the catalogue says of an operator.

The tested code is in `dmlconf/reports/operators.py`, `dmlconf/reports/operator_text.py`,
`dmlconf/cli/pages/case_counts.py` and `dmlconf/cli/commands/running/operators.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

from click.testing import CliRunner

from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.cli.entry_point import cli
from dmlconf.reports.operators import operator_page
from tests.cli.process import dmlconf_here
from tests.each import for_each


@cache
def page(name: str) -> str:
    result = CliRunner().invoke(cli, ["operators", name, "--markdown"])
    assert result.exit_code == 0
    return result.output


def section(text: str, title: str) -> str:
    """Return the section below the heading `## title`."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_page_shows_support_by_feature_level() -> None:
    support = section(page("resample2"), "Support")
    newest, older = support.split("From feature level ")[1:]
    assert newest.startswith("6_2:")
    assert "| `InputTensor` | 1 to 4 | FLOAT32, FLOAT16, INT8, UINT8 |" in newest
    assert older.startswith("5_1:")
    assert "| `InputTensor` | 1 to 4 | FLOAT32, FLOAT16 |" in older


def test_page_of_special_case_links_to_general_operator() -> None:
    assert "Special case of [RESAMPLE3](resample3.md) with Antialiased = false" in page("resample2")


def test_page_shows_constraints_precision_and_known_errors() -> None:
    text = page("top_k")
    assert "`OutputValueTensor`" in section(text, "Precision")
    errors = section(text, "Known errors of the page")
    assert "| K must be less than the size of the axis. | K may equal it. |" in errors
    for constraint in operator("TOP_K").constraints:
        assert f"| `{constraint.name}` | `{constraint.require}` |" in section(text, "Constraints")


def test_page_counts_cases_by_file_name_and_in_total(tmp_path: Path) -> None:
    rows = re.findall(
        r"^\| `?(\w+)`? \| ([\d,]+) \|$", section(page("tile"), "Cases in the suite"), re.M
    )
    *files, total = [(name, int(count.replace(",", ""))) for name, count in rows]
    assert {"documented", "matrix", "boundary", "invalid"} <= {name for name, _ in files}
    assert total == ("all", sum(count for _, count in files))
    listed = dmlconf_here(tmp_path, "list", "-o", "TILE")
    assert total[1] == len(listed.stdout.splitlines())


@for_each(operator_names())
def test_rows_have_as_many_cells_as_their_tables_have_columns(name: str) -> None:
    columns = rows = above = 0
    for line in operator_page(operator(name), Counter(documented=1, matrix=1000)).splitlines():
        cells = line.count("|") - 1
        if line.startswith("|---"):
            columns = cells
            assert above == columns
        elif line.startswith("|") and columns:
            assert cells == columns
            rows += 1
        elif not line.startswith("|"):
            columns = 0
        above = cells
    assert rows > 0


def test_the_options_markdown_and_json_together_are_refused() -> None:
    result = CliRunner().invoke(cli, ["operators", "TILE", "--markdown", "--json"])
    assert result.exit_code == 2
    assert "not both" in result.output
