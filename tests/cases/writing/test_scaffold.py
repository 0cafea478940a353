"""`dmlconf new case OPERATOR` writes a case file that is valid without any change.

The tested code is in `dmlconf/cases/writing/scaffold.py` and `dmlconf/cli/commands/writing/new.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.writing.scaffold import pattern_of, scaffold
from tests.bundled import bundled
from tests.cli.process import dmlconf_here

MOST_CANDIDATES = 20
"""How many cases of an operator are built and offered as patterns."""

TRIED_LAST = {"boundary", "captured", "combinations", "invalid", "model", "triples"}
"""Tags of cases that are offered last."""


@pytest.mark.whole
def test_new_cases_have_the_desc_and_inputs_of_their_pattern(
    tmp_path: Path, bundled_suite: Suite
) -> None:
    by_operator: dict[str, list[PlannedCase]] = {}
    for planned in bundled_suite.plan():
        by_operator.setdefault(planned.template.operator_name, []).append(planned)
    for name, plan in by_operator.items():
        plan.sort(key=lambda planned: "documented" not in planned.template.tags)
        plan.sort(key=lambda planned: not TRIED_LAST.isdisjoint(planned.template.tags))
        pattern = pattern_of(map(build, plan[:MOST_CANDIDATES]))
        assert pattern is not None, name
        file = tmp_path / f"{name.lower()}.yaml"
        text = scaffold("new-case", pattern)
        file.write_text(text, encoding="utf-8")
        comments = [line for line in text.splitlines() if line.lstrip().startswith("#")]
        assert max(map(len, comments)) <= 100
        [planned] = load_suite([file]).plan()
        result = build(planned)
        assert result.desc == pattern.desc
        for tensor, array in pattern.inputs().items():
            assert result.inputs()[tensor].tobytes() == array.tobytes()


@pytest.mark.slow
def test_new_case_writes_a_runnable_file_and_overwrites_none(tmp_path: Path) -> None:
    process = dmlconf_here(
        tmp_path, "new", "case", "TILE", "--name", "mine", "--output", "mine.yaml"
    )
    assert process.returncode == 0
    ran = dmlconf_here(tmp_path, "run", "mine.yaml", "-b", "numpy")
    assert ran.returncode == 7, "no case can be judged, since none states what is right"
    text = (tmp_path / "mine.yaml").read_text("utf-8")
    again = dmlconf_here(tmp_path, "new", "case", "TILE", "--output", "mine.yaml")
    assert again.returncode == 2
    assert "it exists already" in again.stderr
    assert (tmp_path / "mine.yaml").read_text("utf-8") == text


@pytest.mark.slow
def test_only_a_file_in_a_checkout_names_its_schema(
    tmp_path: Path,
) -> None:
    schema = tmp_path / "schemas" / "case.schema.json"
    schema.parent.mkdir()
    schema.write_text("{}", encoding="utf-8")
    folder = tmp_path / "cases" / "tile"
    folder.mkdir(parents=True)
    outside = tmp_path.parent / f"{tmp_path.name}-outside.yaml"
    for file in (folder / "deep.yaml", tmp_path / "cases" / "flat.yaml", outside):
        assert dmlconf_here(folder, "new", "case", "TILE", "--output", file).returncode == 0
    marker = "# yaml-language-server: $schema="
    deep, flat = (folder / "deep.yaml").read_text(), (tmp_path / "cases" / "flat.yaml").read_text()
    assert deep.startswith(f"{marker}../../schemas/case.schema.json\noperator: TILE\n")
    assert flat.startswith(f"{marker}../schemas/case.schema.json\noperator: TILE\n")
    assert outside.read_text().startswith("operator: TILE\n")
    assert dmlconf_here(folder, "new", "case", "TILE").stdout.startswith("operator: TILE\n")


@pytest.mark.slow
def test_the_data_type_hint_names_only_supported_types(tmp_path: Path) -> None:
    text = dmlconf_here(tmp_path, "new", "case", "FILL_VALUE_SEQUENCE").stdout
    [hint] = [line for line in text.splitlines() if "FLOAT32 | " in line]
    assert hint.strip("# ").split(" | ") == [
        "FLOAT32",
        "FLOAT16",
        "UINT32",
        "UINT16",
        "UINT8",
        "INT32",
        "INT16",
        "INT8",
        "UINT64",
        "INT64",
    ]


@pytest.mark.slow
def test_constraints_are_listed_with_the_terms_that_they_use(tmp_path: Path) -> None:
    text = dmlconf_here(tmp_path, "new", "case", "GRU").stdout
    assert "    #   activations: " in text
    assert (
        "    # where\n    #   DirectionCount = 2 if Direction == 'BIDIRECTIONAL' else 1\n" in text
    )


@pytest.mark.slow
def test_a_new_convolution_has_channels_and_a_small_filter() -> None:
    plan = bundled("convolution").plan()
    pattern = pattern_of(map(build, plan))
    assert pattern is not None
    image, kernel = pattern.desc["InputTensor"].Sizes, pattern.desc["FilterTensor"].Sizes
    assert min(image[:2]) > 1
    assert all(1 < inner < outer for inner, outer in zip(kernel[2:], image[2:], strict=True))
    assert max(pattern.desc["StartPadding"]) < min(kernel[2:])


def test_an_unknown_operator_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    process = dmlconf_here(tmp_path, "new", "case", "TILES")
    assert process.returncode == 2
    assert "did you mean TILE?" in process.stderr
