"""Docstrings of the package name only what exists, and those of test modules only existing paths.

Each test module also says which code it tests.

The tested code is in all modules of `dmlconf/` and all modules `tests/**/test_*.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import dmlconf
from dmlconf.resources import schemas_directory
from tests.syntax import forget, nodes_of, statements_of, tree_of

PACKAGE: Final = Path(dmlconf.__file__).parent

NAME_WITH_UNDERSCORE: Final = re.compile(r"`(?:[a-z_]+\.)*([a-z]\w*_\w+)`")
"""A name with an underscore, such as `max_pooling2`; one without may be a word of English."""

NAMES_OF_OTHER_PROJECTS: Final = {"ge25519_has_small_order"}

PATHS_IN_WHEELS: Final = {"dmlconf/bundled"}
"""Paths that docstrings of test modules name, and that only an installed dmlconf has."""

TESTS: Final = Path(__file__).parent
ROOT: Final = TESTS.parent
PATH_FROM_ROOT: Final = re.compile(
    r"`((?:\.ci|\.github|cases|dmlconf|docs|lab|release|schemas|tests)/[^`]*)`"
)
"""A path from the root of the checkout, such as `dmlconf/limits.py`."""

SENTENCE_OF_TESTED_FILES: Final = re.compile(
    r"The tested (?:code is|pages are) in [^`]*`.*\.", re.DOTALL
)
"""The last paragraph of a test module's docstring, which names the tested files."""

NAME_OF_FILE: Final = re.compile(r"`([^`\s]*(?:/|\.(?:c|css|html|js|json|md|py|toml|yaml|yml)))`")
"""A folder, such as `dmlconf/graphs/`, or a file, perhaps without its folder: `wiring.py`."""


MODULES: Final = tuple(PACKAGE.rglob("*.py"))


@pytest.fixture(scope="module", autouse=True)
def _forgotten_trees() -> Iterator[None]:
    yield
    docstrings.cache_clear()
    forget()


@cache
def docstrings(path: Path) -> list[ast.Constant]:
    """Return the docstrings of a module, its classes, functions and constants."""
    values = [node.value for node in statements_of(path) if isinstance(node, ast.Expr)]
    constants = (value for value in values if isinstance(value, ast.Constant))
    return [constant for constant in constants if isinstance(constant.value, str)]


def names_in(path: Path) -> Iterator[str]:
    """Yield the names that a module uses, and the words of its strings."""
    texts = set(map(id, docstrings(path)))
    for node in nodes_of(path):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Constant) and isinstance(text := node.value, str):
            yield from () if id(node) in texts else re.findall(r"\w+", text)


def test_docstrings_of_the_package_name_only_existing_things() -> None:
    known = {name for path in MODULES for name in (path.stem, *names_in(path))}
    for file in schemas_directory().glob("*.yaml"):
        known.update(re.findall(r"\w+", file.read_text("utf-8")))
    for file in PACKAGE.rglob("*.yaml"):
        known.update(re.findall(r"\w+", file.read_text("utf-8")))
    named = [
        (f"{path.relative_to(PACKAGE)}:{text.lineno}", name)
        for path in MODULES
        for text in docstrings(path)
        for name in NAME_WITH_UNDERSCORE.findall(str(text.value))
    ]
    assert len(named) > 100
    assert [each for each in named if each[1] not in known | NAMES_OF_OTHER_PROJECTS] == []


TEST_MODULES: Final = {str(file.relative_to(ROOT)): file for file in TESTS.rglob("test_*.py")}


def test_docstrings_of_test_modules_name_only_paths_that_exist() -> None:
    named = [
        (f"{name}:{text.lineno}", path)
        for name, file in TEST_MODULES.items()
        for text in docstrings(file)
        for path in PATH_FROM_ROOT.findall(str(text.value))
        if path not in PATHS_IN_WHEELS
    ]
    assert len(named) > 100
    assert [each for each in named if not any(ROOT.glob(each[1]))] == []


def missing_files(sentence: str) -> list[str]:
    """Return the files and folders in a sentence that do not exist.

    A name is a path from the root, from a folder in the sentence, or from the folder of a file.
    """
    names = NAME_OF_FILE.findall(sentence)
    folders = [ROOT, *(ROOT / name for name in names if name.endswith("/"))]
    folders += [(ROOT / name).parent for name in names if "/" in name]
    return [name for name in names if not any(any(each.glob(name)) for each in folders)]


def test_each_test_module_says_which_existing_files_it_tests() -> None:
    last = {
        name: (ast.get_docstring(tree_of(file)) or "").rpartition("\n\n")[2]
        for name, file in TEST_MODULES.items()
    }
    assert [
        name for name, sentence in last.items() if not SENTENCE_OF_TESTED_FILES.fullmatch(sentence)
    ] == []
    missing = {name: missing_files(sentence) for name, sentence in last.items()}
    assert {name: files for name, files in missing.items() if files} == {}
