"""Cases notice defects of size, such as a lost last tile, if their sizes and data show them.

The tested code is in `dmlconf/strength/drivers/catalogue.py`,
`dmlconf/strength/drivers/sizes/layers.yaml`, `dmlconf/strength/drivers/figure.py`,
`dmlconf/reports/strength/sizes.py` and `dmlconf/cli/commands/writing/strength.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmlconf.cases.loading.loader import load_suite
from dmlconf.reports.strength.sizes import SizeDefects
from dmlconf.strength.drivers.catalogue import driver_defects, size_defects
from dmlconf.strength.drivers.figure import DefectResult, DriverFigure, Fate
from dmlconf.strength.drivers.parallel import measure_drivers
from tests.cli.process import dmlconf_here

NEGATION = """
operator: ELEMENT_WISE_NEGATE
cases:
  - name: rows
    desc:
      InputTensor: {Sizes: [1, 3, 9, COLUMNS], DataType: FLOAT32, fill: FILL}
      OutputTensor: {Sizes: [1, 3, 9, COLUMNS], DataType: FLOAT32}
"""

PRODUCT = """
operator: GEMM
cases:
  - name: long
    desc:
      ATensor: {Sizes: [1, 1, 4, 2052], DataType: FLOAT16, fill: {uniform: {low: 0, high: 1}}}
      BTensor:
        Sizes: [1, 1, 2052, 40]
        DataType: FLOAT16
        Flags: FLAGS
        fill: {uniform: {low: 0, high: 1, seed: 1}}
      OutputTensor: {Sizes: [1, 1, 4, 40], DataType: FLOAT16}
      TransA: NONE
      TransB: NONE
      Alpha: 0.25
      Beta: 0.0
"""
"""A product of 2,052 terms along K: 16 tiles of 128 terms and a remainder of 4."""

VARIED = "{sequence: {start: 1}}"


def figure_of(directory: Path, text: str) -> DriverFigure:
    file = directory / "model.yaml"
    file.write_text(text, encoding="utf-8")
    plan = list(load_suite([file]).plan())
    applicability, strength = measure_drivers(plan, [file], 1, defects=size_defects())
    return DriverFigure.of(size_defects(), applicability, strength)


def results_by_defect(directory: Path, text: str) -> dict[str, DefectResult]:
    figure = figure_of(directory, text)
    return {pair.defect.name: pair for pair in figure.pairs}


def negation(columns: int, fill: str = VARIED) -> str:
    """Return a suite of one negation of 27 rows."""
    return NEGATION.replace("COLUMNS", str(columns)).replace("FILL", fill)


def test_defects_of_size_have_unique_names_and_causes() -> None:
    names = [defect.name for defect in (*size_defects(), *driver_defects())]
    assert len(set(names)) == len(names)
    assert len(size_defects()) >= 80
    assert all(defect.plausible for defect in size_defects())


@pytest.mark.parametrize("effect", ["is not computed", "is wrong", "repeats the tile before"])
def test_defect_of_a_whole_or_partial_last_tile_is_noticed(tmp_path: Path, effect: str) -> None:
    for columns in (16, 17):  # Two tiles, or two and a column.
        pair = results_by_defect(tmp_path, negation(columns))[f"last tile of 8 columns {effect}"]
        assert pair.fate is Fate.CAUGHT


def test_tensor_of_one_tile_has_no_last_tile_defect(tmp_path: Path) -> None:
    pair = results_by_defect(tmp_path, negation(8))["last tile of 8 columns is not computed"]
    assert pair.fate is Fate.UNMET


def test_equal_elements_hide_a_tile_that_is_repeated(tmp_path: Path) -> None:
    actual = results_by_defect(tmp_path, negation(17, "{constant: {value: 1}}"))
    assert actual["last tile of 8 columns repeats the tile before"].fate is Fate.HIDDEN
    assert actual["last tile of 8 columns is not computed"].fate is Fate.CAUGHT


def test_one_lost_element_of_a_group_of_threads_is_noticed(tmp_path: Path) -> None:
    actual = results_by_defect(tmp_path, negation(100))
    # 27 * 100 elements are two groups of 1,024 and a part of one.
    assert actual["last element of the last whole group of 1024 threads is lost"].tally.caught == 1
    assert actual["last element of each group of 64 threads is lost"].tally.caught == 1


def test_an_index_overflows_only_beyond_its_bits(tmp_path: Path) -> None:
    # 27 * 100 elements are fewer than 2^16, and 27 * 2500 are more.
    few, many = (
        results_by_defect(tmp_path, negation(100)),
        results_by_defect(tmp_path, negation(2500)),
    )
    for name in ("index of an output overflows 16 bits", "index of an input overflows 16 bits"):
        assert few[name].fate is Fate.UNMET
        assert many[name].fate is Fate.CAUGHT


def test_float16_sums_and_lost_remainders_are_noticed(tmp_path: Path) -> None:
    actual = results_by_defect(tmp_path, PRODUCT.replace("FLAGS", "[]"))
    for every in (16, 32, 64):
        assert actual[f"product holds FLOAT16 sums after every {every} terms"].fate is Fate.CAUGHT
    assert actual["products beyond tiles of 128 along K are dropped"].fate is Fate.CAUGHT


def test_owned_weights_of_another_case_are_noticed(tmp_path: Path) -> None:
    name = "weights that DirectML owns are those of the case before"
    assert results_by_defect(tmp_path, PRODUCT.replace("FLAGS", "[]"))[name].fate is Fate.UNMET
    assert (
        results_by_defect(tmp_path, PRODUCT.replace("FLAGS", "[OWNED_BY_DML]"))[name].fate
        is Fate.CAUGHT
    )


def test_a_case_that_hides_a_defect_lowers_the_share(tmp_path: Path) -> None:
    assert SizeDefects(figure_of(tmp_path, negation(17))).share == 100
    spoiled = negation(17, "{constant: {value: 1}}")
    assert SizeDefects(figure_of(tmp_path, spoiled)).share < 100


def test_the_sentence_counts_pairs_of_defect_and_case(tmp_path: Path) -> None:
    figure = figure_of(tmp_path, negation(17))
    ran = sum(pair.tally.ran for pair in figure.pairs)
    assert ran > 1
    (sentence,) = SizeDefects(figure).sentences()
    assert f"{ran:,} of {ran:,} pairs of defect and case (100.00%)" in sentence


def test_figure_sizes_measures_only_cases_of_models(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text(negation(17))
    (tmp_path / "matrix.yaml").write_text(negation(17, "{constant: {value: 1}}"))
    process = dmlconf_here(
        tmp_path,
        "strength",
        ".",
        "--figure",
        "sizes",
        "--fail-under",
        "sizes=100",
        "--report",
        "json:found.json",
        "--report",
        "markdown:found.md",
    )
    assert process.returncode == 0, process.stdout + process.stderr
    data = json.loads((tmp_path / "found.json").read_text())["sizes"]
    assert data["share"] == 100
    assert data["cases_tried"] == 1
    page = (tmp_path / "found.md").read_text()
    assert "| Defect | Operators | Cases that run it | Hidden | Not noticed | Share |" in page
    assert "| last tile of 8 columns is not computed | 1 | 1 | 0 | 0 | 100.00% |" in page
    assert "--figure sizes" in page


def test_sample_of_one_case_reports_no_rarely_noticed_defect(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text(negation(17))
    arguments = ("strength", ".", "--figure", "sizes", "--report", "json:found.json", "--sample")
    counts = []
    for sample in ("1", "3"):
        dmlconf_here(tmp_path, *arguments, sample)
        data = json.loads((tmp_path / "found.json").read_text())["sizes"]
        counts.append(data["pairs_of_few_cases"])
    assert counts[0] is None
    assert counts[1] > 0


def test_hidden_defects_fail_the_command_below_its_threshold(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text(negation(17, "{constant: {value: 1}}"))
    process = dmlconf_here(
        tmp_path, "strength", ".", "--figure", "sizes", "--fail-under", "sizes=100"
    )
    assert process.returncode == 1
    assert "by defect of size" in process.stderr
