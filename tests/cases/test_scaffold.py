"""A new case is valid as it stands."""

from __future__ import annotations

from pathlib import Path

from dmlconf.cases.build import build
from dmlconf.cases.loader import Suite, load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.scaffold import pattern_of, scaffold
from tests.cli.process import dmlconf_here


def test_a_new_case_of_every_operator_can_be_built_and_run(
    tmp_path: Path, bundled_suite: Suite
) -> None:
    by_operator: dict[str, list[PlannedCase]] = {}
    for planned in bundled_suite.plan():
        found = by_operator.setdefault(planned.template.operator_name, [])
        if len(found) < 20:
            found.append(planned)
    for name, plan in by_operator.items():
        pattern = pattern_of(map(build, plan))
        if pattern is None:
            continue
        file = tmp_path / f"{name.lower()}.yaml"
        file.write_text(scaffold("new-case", pattern), encoding="utf-8")
        [planned] = load_suite([file]).plan()
        made = build(planned)
        assert made.desc == pattern.desc
        for tensor, array in pattern.inputs().items():
            assert made.inputs()[tensor].tobytes() == array.tobytes()


def test_the_command_writes_a_file_and_none_twice(tmp_path: Path) -> None:
    made = dmlconf_here(tmp_path, "new", "case", "TILE", "--name", "mine", "--output", "mine.yaml")
    assert made.returncode == 0
    ran = dmlconf_here(tmp_path, "run", "mine.yaml", "-b", "numpy")
    assert ran.returncode == 0
    again = dmlconf_here(tmp_path, "new", "case", "TILE", "--output", "mine.yaml")
    assert again.returncode == 2
    assert "it exists already" in again.stderr


def test_the_command_suggests_an_operator(tmp_path: Path) -> None:
    found = dmlconf_here(tmp_path, "new", "case", "TILES")
    assert found.returncode == 2
    assert "did you mean TILE?" in found.stderr
