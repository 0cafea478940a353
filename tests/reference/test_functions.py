"""Every operator has the functions that it needs, and these name their sources and derivations.

The tested code is in the modules of `dmlconf/reference/` and `dmlconf/permitted/` that the entries
of `schemas/operators/` name as `family`, and in `docs/bounds.md`.
"""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path

from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.catalogue.precision import RuleKind
from dmlconf.reference.evaluation import reference_function
from tests.reference.functions import WITH_OWN_FUNCTIONS, function_of


def takes_the_fields(name: str, part: str = "") -> bool:
    entry = operator(name)
    fields = [field.name for field in entry.fields if field.name not in entry.count_fields]
    try:
        signature(function_of(name, part)).bind(**dict.fromkeys(fields))
    except TypeError:
        return False
    return True


def test_reference_functions_take_the_fields_of_operators() -> None:
    assert [name for name in operator_names() if not takes_the_fields(name)] == []


def test_every_reference_function_documents_its_source() -> None:
    docstrings = {name: reference_function(name).__doc__ or "" for name in WITH_OWN_FUNCTIONS}
    assert len(docstrings) > 100
    assert [name for name, text in docstrings.items() if "Source: " not in text] == []


def test_every_error_scale_names_a_section_of_bounds_md() -> None:
    page = (Path(__file__).parents[2] / "docs" / "bounds.md").read_text("utf-8")
    headings = set(re.findall(r"^## (.+)$", page, re.M))
    found = 0
    for name in WITH_OWN_FUNCTIONS:
        rules = [rule for rules in operator(name).precision.values() for rule in rules]
        if any(rule.kind is RuleKind.ACCUMULATE for rule in rules):
            doc = function_of(name, "error_scale").__doc__ or ""
            found += 1
            section = re.search(r"docs/bounds\.md, ([^.]+)\.", doc)
            assert section, name
            assert " ".join(section[1].split()) in headings, name
    assert found > 20


def test_named_sections_of_bounds_md_exist() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "bounds.md").read_text("utf-8")
    headings = set(re.findall(r"^##+ (.+)$", page, re.M))
    found = 0
    for path in sorted((root / "dmlconf" / "permitted").rglob("*.py")):
        text = " ".join(path.read_text("utf-8").split())
        for named in re.findall(r"docs/bounds\.md, ([A-Z][^.]*)\.", text):
            found += 1
            assert set(re.split(r", | and ", named)) <= headings, f"{path.name}: {named}"
    assert found > 40


def test_operators_have_functions_for_their_precision_rules() -> None:
    parts = {
        RuleKind.ACCUMULATE: "error_scale",
        RuleKind.INTERVAL: "interval",
        RuleKind.ONE_OF: "candidates",
    }
    needed = {
        (name, parts[rule.kind])
        for name in operator_names()
        for rules in operator(name).precision.values()
        for rule in rules
        if rule.kind in parts
    }
    assert {part for _, part in needed} == set(parts.values())
    assert [each for each in sorted(needed) if not takes_the_fields(*each)] == []
