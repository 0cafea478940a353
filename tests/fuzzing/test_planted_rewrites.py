"""`dmlconf fuzz --graphs` inserts patterns into random graphs.

A pattern is a small graph that a compiler might rewrite wrongly, to a mutant.

The tested code is in `dmlconf/fuzzing/planted_rewrites.py`, `dmlconf/fuzzing/graphs.py`,
`dmlconf/fuzzing/plan.py`, `dmlconf/fuzzing/saving.py` and `dmlconf/cases/loading/rewrites.py`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.loading.rewrites import case_rewrite, rewritten
from dmlconf.cases.model import CaseTemplate, PlannedCase
from dmlconf.fuzzing.graphs import planted_case
from dmlconf.fuzzing.plan import Fuzz, Kind
from dmlconf.fuzzing.planted_rewrites import plantable, rewrite_files
from dmlconf.fuzzing.saving import in_folder, save_cases
from dmlconf.fuzzing.search import MOST_ELEMENTS
from dmlconf.reference.evaluation import evaluate
from dmlconf.resources import cases_directory

OPERATORS = ("ACTIVATION_RELU", "ELEMENT_WISE_ADD", "ELEMENT_WISE_ABS", "REDUCE", "CAST")

PATTERN = """\
graph: one pattern
cases:
  - name: near-miss
    matrix: {Maximum: [6, 7]}
    inputs:
      x: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1, -2, 9]}
    nodes:
      c: {operator: ACTIVATION_RELU, desc: {InputTensor: x, OutputTensor: {}}}
      y: {operator: ELEMENT_WISE_CLIP,
          desc: {InputTensor: c, OutputTensor: {}, Min: -6, Max: =Maximum}}
    outputs: {y: y}
    rewrite:
      name: drop-relu-before-clip
      breaks: minimum-is-not-negative
      nodes:
        y: {operator: ELEMENT_WISE_CLIP,
            desc: {InputTensor: x, OutputTensor: {}, Min: -6, Max: =Maximum}}
"""


@pytest.fixture
def pattern(tmp_path: Path) -> CaseTemplate:
    (tmp_path / "pattern.yaml").write_text(PATTERN)
    [template] = load_suite([tmp_path / "pattern.yaml"]).templates
    return template


def planted_cases(pattern: CaseTemplate, count: int) -> list[PlannedCase]:
    """Return random graphs, each with the pattern and up to three other nodes."""
    return [planted_case(OPERATORS, 1, number, 3, [pattern]) for number in range(count)]


def test_planted_graphs_have_the_pattern_and_its_rewrite(
    pattern: CaseTemplate,
) -> None:
    counts, copied, maxima = set(), set(), set()
    for case in planted_cases(pattern, 30):
        graph = valid_case(case)
        assert isinstance(graph, GraphCase)
        assert not graph.violations()
        names = graph.graph.by_name
        assert {"p_c", "p_y"} <= names.keys()
        counts.add(len(names))
        copied.add("p_x_copy" in names)
        [clip] = [node for node in graph.graph.operator_nodes if node.name == "p_y"]
        maxima.add(clip.desc["Max"])
        rewrite = case_rewrite(case.template)
        assert rewrite is not None
        assert rewrite.breaks == "minimum-is-not-negative"
        source = rewritten(case).graph.sources()["p_y", "InputTensor"]
        assert source in ("p_x", ("p_x_copy", "OutputTensor"))
    assert len(counts) >= 4
    assert copied == {True, False}
    assert maxima == {6, 7}


def test_most_planted_graphs_differ_from_their_mutants(pattern: CaseTemplate) -> None:
    different = 0
    for case in planted_cases(pattern, 30):
        with np.errstate(all="ignore"):
            right, wrong = evaluate(valid_case(case)), evaluate(rewritten(case))
        different += any(right[name].tobytes() != wrong[name].tobytes() for name in right)
    assert different >= 20


def test_saved_graph_keeps_its_rewrite(pattern: CaseTemplate, tmp_path: Path) -> None:
    case = in_folder(planted_cases(pattern, 1)[0], tmp_path / "saved")
    [path] = save_cases([case])
    [again] = load_suite([path]).plan()
    assert case_rewrite(again.template) == case_rewrite(case.template)
    assert {*rewritten(again).graph.by_name} == {*rewritten(case).graph.by_name}


def test_about_every_third_graph_has_a_rewrite(
    pattern: CaseTemplate,
) -> None:
    numbers = range(30)
    plain = list(Fuzz(OPERATORS[:2], 5, Kind.GRAPHS, 2).cases(numbers))
    mixed = list(Fuzz(OPERATORS[:2], 5, Kind.GRAPHS, 2, (pattern,)).cases(numbers))
    have = [case_rewrite(case.template) is not None for case in mixed]
    assert 5 <= sum(have) <= 15
    assert all(0 < sum(have[at : at + 10]) < 10 for at in (0, 10, 20))
    assert [a.template.data for a, has in zip(plain, have, strict=True) if not has] == [
        b.template.data for b, has in zip(mixed, have, strict=True) if not has
    ]


def test_seed_and_number_determine_a_planted_graph(
    pattern: CaseTemplate,
) -> None:
    entries = [case.template.data for case in planted_cases(pattern, 4)]
    digest = sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()
    assert digest[:16] == "9798df52c1d0e6a9"


def test_only_patterns_of_the_given_operators_are_planted(pattern: CaseTemplate) -> None:
    assert plantable([pattern], ("ACTIVATION_RELU", "ELEMENT_WISE_CLIP")) == (pattern,)
    assert plantable([pattern], ("ACTIVATION_RELU",)) == ()


@pytest.mark.parametrize("elements", [MOST_ELEMENTS, MOST_ELEMENTS + 1])
def test_only_patterns_without_large_tensors_are_planted(tmp_path: Path, elements: int) -> None:
    large = PATTERN.replace("[1, 1, 1, 3]", f"[1, 1, 1, {elements}]")
    (tmp_path / "large.yaml").write_text(
        large.replace("values: [1, -2, 9]", "fill: {sequence: {start: -9}}")
    )
    [template] = load_suite([tmp_path / "large.yaml"]).templates
    planted = plantable([template], ("ACTIVATION_RELU", "ELEMENT_WISE_CLIP"))
    assert planted == ((template,) if elements == MOST_ELEMENTS else ())


def test_rewrite_files_are_files_of_the_bundled_suite() -> None:
    files = list(rewrite_files())
    assert {"rewrites-fusion.yaml", "rewrites-quantization.yaml"} <= {path.name for path in files}
    assert {path.parent for path in files} == {cases_directory() / "graphs"}
    assert all(path.is_file() for path in files)
