"""The catalogue finds operators by name and alias, and its digest changes with its files.

The tested code is in `dmlconf/catalogue/loader.py`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import dmlconf
from dmlconf.catalogue.loader import (
    UnknownOperatorError,
    catalogue_digest,
    entry_of,
    operator,
    operator_files,
    operator_names,
)
from dmlconf.resources import schemas_directory
from tests.cli.process import printed_by


def test_each_file_of_an_operator_has_its_name() -> None:
    assert operator_names() == sorted(path.stem.upper() for path in operator_files())
    assert {"ARGMIN", "GATHER", "JOIN", "SCATTER_ELEMENTS", "TILE"} <= set(operator_names())
    for name in operator_names():
        assert operator(name).name == name


@pytest.mark.parametrize("name", ["GATHER", "gather", "Gather", "DML_OPERATOR_GATHER"])
def test_an_operator_is_found_in_any_spelling(name: str) -> None:
    assert operator(name).name == "GATHER"


def test_graphs_are_in_the_catalogue_and_are_no_operator() -> None:
    assert entry_of("graph").struct == "DML_GRAPH_DESC"
    assert entry_of("GATHER") is operator("GATHER")
    with pytest.raises(UnknownOperatorError):
        operator("GRAPHS")


@pytest.mark.parametrize("name", ["SCATTER", "scatter", "DML_OPERATOR_SCATTER"])
def test_an_operator_is_found_by_its_alias(name: str) -> None:
    assert operator(name).name == "SCATTER_ELEMENTS"
    assert operator(name) is operator("SCATTER_ELEMENTS")


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("GATHRE", "GATHER"),
        ("tiles", "TILE"),
        ("SCATTER_ELEMENT", "SCATTER_ELEMENTS"),
        ("relu", "ACTIVATION_RELU"),
        ("ADD", "ELEMENT_WISE_ADD"),
        ("FROBNICATE", None),
        ("", None),
        ("../operators/tile", None),
        ("TILE.yaml", "TILE"),
        ("FLOAT32", None),
        ("A" * 300, None),
    ],
)
def test_an_unknown_operator_gets_a_suggestion_if_near(name: str, suggestion: str | None) -> None:
    with pytest.raises(UnknownOperatorError) as caught:
        operator(name)
    hint = f"did you mean {suggestion}?" if suggestion else "`dmlconf operators` lists all"
    assert (caught.value.name, caught.value.hint) == (name, hint)
    assert str(caught.value) == f"the catalogue has no operator {name}; {hint}"


def digest_of_copy(directory: Path) -> str:
    script = "from dmlconf.catalogue.loader import catalogue_digest; print(catalogue_digest())"
    return printed_by(script, directory).strip()


@pytest.mark.slow
def test_the_digest_changes_with_common_and_operator_files(
    tmp_path: Path,
) -> None:
    shutil.copytree(Path(dmlconf.__file__).parent, tmp_path / "dmlconf")
    shutil.rmtree(tmp_path / "dmlconf" / "bundled", ignore_errors=True)
    schemas = tmp_path / "schemas"
    shutil.copytree(schemas_directory(), schemas)
    assert digest_of_copy(tmp_path) == catalogue_digest()
    digests = {catalogue_digest()}
    for path in (schemas / "common.yaml", schemas / "operators" / "tile.yaml"):
        path.write_text(path.read_text("utf-8") + "# more\n", "utf-8")
        digests.add(digest_of_copy(tmp_path))
    assert len(digests) == 3
