"""The example in `docs/graphs.md` runs, and the page lists the rules for every graph.

The tested code is in the page `docs/graphs.md`, and in `dmlconf/graphs/wiring.py` (the rules).
"""

from __future__ import annotations

import re
from pathlib import Path

from dmlconf.graphs.wiring import WIRING_RULES
from tests.cli.process import dmlconf_here

PAGE = (Path(__file__).parents[2] / "docs" / "graphs.md").read_text("utf-8")


def test_the_example_is_valid_and_passes(tmp_path: Path) -> None:
    match = re.search(r"```yaml\n(graph:.*?)```", PAGE, re.DOTALL)
    assert match is not None
    (tmp_path / "first.yaml").write_text(match[1], encoding="utf-8")
    assert dmlconf_here(tmp_path, "validate", "first.yaml").returncode == 0
    assert dmlconf_here(tmp_path, "run", "first.yaml").returncode == 0
    shown = dmlconf_here(tmp_path, "show", "graphs/first/sum-and-relu", "first.yaml")
    assert "from product.OutputTensor" in shown.stdout
    assert "to relu.InputTensor, the output before" in shown.stdout


def test_page_lists_exactly_the_rules_of_wiring() -> None:
    _, _, table = PAGE.partition("| Constraint | Requires |\n|---|---|\n")
    rows = table.partition("\n\n")[0].splitlines()
    assert rows == [f"| `{name}` | {meaning} |" for name, meaning in WIRING_RULES.items()]
