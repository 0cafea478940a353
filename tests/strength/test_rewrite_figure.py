"""The figure "by rewrite" counts the rewrites and conditions that cases prove.

A near miss is a graph that breaks one condition of a rewrite. It proves the condition if the
rewritten graph fails.

The tested code is in `dmlconf/strength/rewrite_figure.py`, `dmlconf/reports/strength/rewrites.py`,
`dmlconf/cases/loading/rewrites.py` and `schemas/rewrites.yaml`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmlconf.cases.loading.rewrites import lint_rewrites, rewrites
from tests.cli.process import dmlconf_here

NEAR_MISS = """\
graph: near misses
cases:
  - name: near-miss
    inputs:
      x: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1, -2, 3]}
    nodes:
      c: {operator: ACTIVATION_RELU, desc: {InputTensor: x, OutputTensor: {}}}
      y: {operator: ELEMENT_WISE_CLIP, desc: {InputTensor: c, OutputTensor: {}, Min: -6, Max: 6}}
    outputs: {y: y}
    rewrite:
      name: drop-relu-before-clip
      breaks: minimum-is-not-negative
      nodes:
        y: {operator: ELEMENT_WISE_CLIP, desc: {InputTensor: x, OutputTensor: {}, Min: -6, Max: 6}}
"""
"""A graph that needs its relu, since the clip after it keeps negative numbers from -6 on."""


def _figure(folder: Path, text: str, code: int = 0) -> dict[str, object]:
    """Return the report's part on the condition that the near miss breaks."""
    (folder / "near.yaml").write_text(text)
    options = "--figure", "rewrites", "-q", "--report", "json:s.json"
    result = dmlconf_here(folder, "strength", "near.yaml", *options)
    assert result.returncode == code, result.stderr
    rows = json.loads((folder / "s.json").read_text())["rewrites"]["rewrites"]
    [row] = [row for row in rows if row["name"] == "drop-relu-before-clip"]
    part: dict[str, object] = row["conditions"]["minimum-is-not-negative"]
    return part


@pytest.mark.slow
def test_a_near_miss_proves_its_condition(tmp_path: Path) -> None:
    assert _figure(tmp_path, NEAR_MISS) == {"cases": 1, "proven": True, "unproven": []}


@pytest.mark.slow
def test_near_miss_with_hiding_data_proves_nothing(tmp_path: Path) -> None:
    part = _figure(tmp_path, NEAR_MISS.replace("[1, -2, 3]", "[1, 2, 3]"))
    assert not part["proven"]
    assert part["unproven"] == ["graphs/near/near-miss: the rewritten graph passes"]


def test_failing_rewrite_without_broken_condition_is_reported(
    tmp_path: Path,
) -> None:
    text = NEAR_MISS.replace("      breaks: minimum-is-not-negative\n", "")
    (tmp_path / "near.yaml").write_text(text)
    options = "--figure", "rewrites", "-q", "-v", "--fail-under", "rewrites=100"
    result = dmlconf_here(tmp_path, "strength", "near.yaml", *options)
    assert result.returncode == 1
    assert "the rewritten graph fails, although the rewrite is right" in result.stderr
    assert "no case: drop-relu-before-clip, without minimum-is-not-negative" in result.stderr


@pytest.mark.slow
def test_option_sample_does_not_apply_to_rewrites(
    tmp_path: Path,
) -> None:
    entry = NEAR_MISS.partition("cases:\n")[2]
    (tmp_path / "near.yaml").write_text(NEAR_MISS + entry.replace("near-miss", "another"))
    options = "strength", "near.yaml", "--sample", "1", "-q", "--report", "json:s.json"
    alone = dmlconf_here(tmp_path, *options, "--figure", "rewrites").stdout
    assert "by rewrite: " in alone
    assert "a sample" not in alone
    rows = json.loads((tmp_path / "s.json").read_text())["rewrites"]["rewrites"]
    assert sum(cases["cases"] for row in rows for cases in row["conditions"].values()) == 2
    beside = dmlconf_here(tmp_path, *options, "--figure", "rewrites", "--figure", "graphs")
    assert "a sample: at most 1 case of" in beside.stdout


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: drop-relu-before-clip", "name: drop-relu-before-clop", "no rewrite"),
        ("breaks: minimum", "breaks: minimal", "did you mean minimum-is-not-negative?"),
        (
            "{InputTensor: x, OutputTensor: {}, Min",
            "{InputTensor: z, OutputTensor: {}, Min",
            "the rewritten graph: there is no node, graph input or constant z",
        ),
    ],
)
def test_a_mistake_in_a_rewrite_of_a_case_is_reported(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    (tmp_path / "near.yaml").write_text(NEAR_MISS.replace(old, new))
    result = dmlconf_here(tmp_path, "validate", "near.yaml")
    assert result.returncode == 3
    assert message in result.stdout + result.stderr


def test_the_list_of_rewrites_is_valid() -> None:
    assert len(rewrites()) > 0
    assert lint_rewrites() == []


def test_each_rewrite_has_a_source_with_an_address() -> None:
    urls = {
        name: [source.url for source in rewrite.sources if source.url]
        for name, rewrite in rewrites().items()
    }
    assert [name for name, found in urls.items() if not found] == []
    assert "https://github.com/openxla/xla/issues/42732" in urls["cancel-log-of-exp"]
    relay = "https://github.com/apache/tvm/blob/v0.18.0/src/relay/transforms/fold_scale_axis.cc"
    assert relay in urls["fold-scale-into-filter"]


@pytest.mark.parametrize(
    "source",
    [
        "XLA",
        "{repository: openxla/xla}",
        "{repository: xla, issue: 1}",
        "{repository: openxla/xla, issue: 0}",
        "{repository: openxla/xla, file: ../a.cc}",
        "{repository: openxla/xla, issue: 1, pull_request: 2}",
        "{repository: openxla/xla, issue: 1, revision: v1.0}",
        "{page: learn.microsoft.com}",
    ],
)
def test_source_without_one_valid_location_is_refused(tmp_path: Path, source: str) -> None:
    text = f"""\
format: 1
rewrites:
  - {{name: a, kind: elimination, does: x, right_if: {{b: c}}, sources: [{source}]}}
"""
    (tmp_path / "rewrites.yaml").write_text(text)
    problems = [problem.message for problem in lint_rewrites(tmp_path / "rewrites.yaml")]
    assert any("sources" in message for message in problems), problems


def test_a_rewrite_without_conditions_is_refused(tmp_path: Path) -> None:
    text = """\
format: 1
rewrites:
  - {name: a, kind: elimination, does: x, right_if: {}, sources: [XLA]}
"""
    (tmp_path / "rewrites.yaml").write_text(text)
    assert any(
        "right_if" in problem.message for problem in lint_rewrites(tmp_path / "rewrites.yaml")
    )
