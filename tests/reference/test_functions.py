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
    """Return whether an operator has a function, of this part, that takes its desc's fields."""
    entry = operator(name)
    fields = [field.name for field in entry.fields if field.name not in entry.count_fields]
    try:
        signature(function_of(name, part)).bind(**dict.fromkeys(fields))
    except TypeError:
        return False
    return True


def test_every_operator_has_a_reference_function_that_takes_its_fields() -> None:
    assert [name for name in operator_names() if not takes_the_fields(name)] == []


def test_every_reference_function_documents_its_source() -> None:
    docstrings = {name: reference_function(name).__doc__ or "" for name in WITH_OWN_FUNCTIONS}
    assert len(docstrings) > 100  # Else this test would check next to nothing.
    assert [name for name, text in docstrings.items() if "Source: " not in text] == []


def test_every_error_scale_names_the_section_of_bounds_md_that_derives_it() -> None:
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
    assert found > 20  # Else this test would check next to nothing.


def test_every_section_of_bounds_md_that_the_code_names_exists() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "bounds.md").read_text("utf-8")
    headings = set(re.findall(r"^##+ (.+)$", page, re.M))
    found = 0
    for path in sorted((root / "dmlconf" / "permitted").rglob("*.py")):
        text = " ".join(path.read_text("utf-8").split())
        for named in re.findall(r"docs/bounds\.md, ([A-Z][^.]*)\.", text):
            found += 1
            assert set(re.split(r", | and ", named)) <= headings, f"{path.name}: {named}"
    assert found > 50  # Else this test would check next to nothing.


def test_every_operator_has_the_functions_that_its_precision_rules_need() -> None:
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
