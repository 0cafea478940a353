"""A run log is refused if a fact, such as a tensor's type and sizes, does not suit its field.

The tested code is in `dmlconf/cases/logged_facts.py`, `dmlconf/cases/facts.py` and
`dmlconf/run_log/lines.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.facts import facts_of
from dmlconf.cases.loading.loader import Suite
from dmlconf.cases.logged_facts import facts_problem
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import operator_names
from tests.cli.process import TILE, dmlconf_here, write


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"InputTensor": 1.5}, "`InputTensor` of the facts must be a tensor such as FLOAT16 2x3"),
        ({"InputTensor": None}, "must be a tensor"),
        ({"OutputTensor": "FLOAT99 2"}, "must be a tensor"),
        ({"OutputTensor": "FLOAT32 2x"}, "must be a tensor"),
        ({"OutputTensor": "FLOAT32 " + "9" * 5000}, f"not 'FLOAT32 {'9' * 48}..."),
        ({"OutputTensor": ["FLOAT32 2"]}, "must be a tensor"),
        ({"Repeats": "FLOAT32 2"}, "a list of numbers"),
        ({"Repeats": [10**30]}, "a list of numbers"),
        ({"Repeats": 2}, "a list of numbers"),
        ({"RepeatsCount": [[1]]}, "a number"),
        ({"RepeatsCount": [1]}, "a number"),
        ({"data": 5}, "a list of text"),
        ({"in_place": [5]}, "a list of text"),
        ({"Unknown": [[[[[[1]]]]]]}, "a value of a desc"),
    ],
)
def test_a_fact_of_the_wrong_type_is_refused(facts: dict[str, Any], problem: str) -> None:
    assert problem in str(facts_problem("TILE", facts))


@pytest.mark.parametrize(
    ("operator", "facts", "problem"),
    [
        ("JOIN", {"InputTensors": "FLOAT32 2"}, "must be a list, each a tensor such as FLOAT16"),
        ("JOIN", {"InputTensors": ["FLOAT32 2", 3]}, "must be a list, each a tensor"),
        ("GEMM", {"FusedActivation": [[[[[[1]]]]]]}, "must be a value of a desc"),
        ("ACTIVATION_ELU", {"Alpha": "infinite"}, "must be a number"),
    ],
)
def test_wrong_facts_of_special_fields_are_refused(
    operator: str, facts: dict[str, Any], problem: str
) -> None:
    assert problem in str(facts_problem(operator, facts))


@pytest.mark.parametrize(
    ("operator", "facts"),
    [
        ("TILE", {"InputTensor": "FLOAT32 2", "Repeats": [2], "RepeatsCount": 1, "data": ["a"]}),
        ("JOIN", {"InputTensors": ["FLOAT32 2", "FLOAT32 3"], "Axis": 0}),
        ("GEMM", {"FusedActivation": {"operator": "ACTIVATION_RELU"}}),
        ("ACTIVATION_ELU", {"Alpha": 1.5}),
        ("ACTIVATION_ELU", {"Alpha": "inf"}),
    ],
)
def test_facts_that_suit_their_fields_are_accepted(operator: str, facts: dict[str, Any]) -> None:
    assert facts_problem(operator, facts) is None


def test_unknown_fields_and_operators_may_have_any_plain_value() -> None:
    assert facts_problem("TILE", {"New": [1, "x", {"a": None}]}) is None
    assert facts_problem("NEW_OPERATOR", {"InputTensor": 1.5}) is None


def test_tensors_of_graphs_may_have_any_name() -> None:
    assert facts_problem("GRAPHS", {"x": "FLOAT32 2", "NodeCount": 3}) is None
    assert "must be a tensor" in str(facts_problem("GRAPHS", {"x": 3}))


@pytest.mark.whole
def test_facts_of_bundled_cases_are_accepted(
    bundled_suite: Suite,
) -> None:
    seen: set[tuple[str, ...]] = set()
    for planned in bundled_suite.plan():
        names = planned.template.operator_name, *planned.template.tags[:1]
        if names not in seen and "model" not in names:
            seen.add(names)
            facts = json.loads(json.dumps(facts_of(build(planned)), default=str))
            assert facts_problem(planned.template.operator_name, facts) is None
    assert {operator for operator, *_ in seen} == {*operator_names(), GRAPHS}


@pytest.mark.parametrize(
    "command",
    [
        ("report", "log.jsonl", "--report", "junit:x.xml"),
        ("compare", "log.jsonl", "log.jsonl"),
        ("merge", "log.jsonl", "-o", "merged.jsonl"),
        ("run", "tile.yaml", "--resume", "log.jsonl"),
    ],
)
def test_commands_refuse_a_log_with_a_wrong_fact(tmp_path: Path, command: tuple[str, ...]) -> None:
    write(tmp_path, TILE.replace("[1, 2, 1, 2]", "[1, 2, 1, 3]"))
    assert dmlconf_here(tmp_path, "run", "tile.yaml", "--log", "log.jsonl").returncode == 1
    log = tmp_path / "log.jsonl"
    text = log.read_text("utf-8")
    assert '"InputTensor":"FLOAT32 2"' in text
    log.write_text(text.replace('"InputTensor":"FLOAT32 2"', '"InputTensor":1.5'), encoding="utf-8")
    done = dmlconf_here(tmp_path, *command)
    assert done.returncode == 3
    assert "log.jsonl:2: not a record of a run log: `InputTensor` of the facts" in done.stderr
