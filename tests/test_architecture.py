"""All modules keep the rules of docs/architecture.md, such as which package may import which.

The tested code is in all modules of `dmlconf/` and `tests/`, whose names a failure lists, and in
`docs/architecture.md`.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

import dmlconf
from dmlconf.judging.figure_cache import JUDGING_SOURCES
from dmlconf.resources import cases_directory, schemas_directory, sources
from tests.cli.process import printed_by
from tests.each import for_each
from tests.syntax import forget, nodes_of, tree_of

PACKAGE: Final = Path(dmlconf.__file__).parent
CHECKOUT: Final = Path(__file__).parents[1]

ARCHITECTURE: Final = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")


def rows_of(heading: str) -> list[tuple[str, str]]:
    """Return the first two cells of each row of the table with this heading in architecture.md."""
    table = ARCHITECTURE.partition(f"\n{heading}\n|---|---|\n")[2].partition("\n\n")[0]
    cells = [re.split(r" ?\| ?", line) for line in table.splitlines()]
    return [(first, second) for _, first, second, *_ in cells]


LAYERS: Final = tuple(name.strip("`") for name, _ in rows_of("| Package | Holds |"))
"""The packages; a module imports only from its own and from those before it."""

OUTSIDE_THE_TABLE: Final = {"__main__": "cli", "__init__": ""}
"""Modules outside the table, each with the only package that it may import."""

MOST_LINES_OF_A_MODULE: Final = 600

MODULES: Final = sorted(
    path for path in PACKAGE.rglob("*.py") if "bundled" not in path.relative_to(PACKAGE).parts
)
"""The files of dmlconf's modules; in a wheel, `dmlconf/bundled` has the suite."""

MODULES_OF_TESTS: Final = sorted((CHECKOUT / "tests").rglob("*.py"))


@cache
def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.fixture(scope="module", autouse=True)
def _forgotten_trees() -> Iterator[None]:
    yield
    forget()


def part(path: Path) -> str:
    """Return the package of dmlconf that a module is in, or the module's name if it is in none."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def layer(name: str) -> int:
    return LAYERS.index(name)


MODULE_NAMES: Final = frozenset(map(module_name, MODULES))
"""The modules as imports name them, such as `dmlconf.limits`."""


@cache
def imported_modules(path: Path) -> set[str]:
    """Return the modules of dmlconf that a module imports, also inside functions."""
    package = module_name(path).split(".")[: None if path.name == "__init__.py" else -1]
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            names = {f"{module}.{alias.name}" for alias in node.names}
            found |= names & MODULE_NAMES or {module} & MODULE_NAMES
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & MODULE_NAMES
    return found


def with_packages(name: str) -> set[str]:
    """Return a module and the packages that it is in, which importing it imports first."""
    parts = name.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts) + 1)}


def imported_parts(path: Path) -> set[str]:
    """Return the packages of dmlconf that a module imports from."""
    return {name.split(".")[1] for name in imported_modules(path) if "." in name}


@for_each(MODULES, name=module_name)
def test_a_module_imports_only_from_packages_to_the_left(path: Path) -> None:
    here = part(path)
    actual = imported_parts(path) - {here}
    if here in OUTSIDE_THE_TABLE:
        assert actual <= {OUTSIDE_THE_TABLE[here]}
        return
    wrong = {name for name in actual if layer(name) >= layer(here)}
    assert not wrong, f"{module_name(path)} imports {', '.join(sorted(wrong))}"


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Return modules that import one another in a circle, if there are any."""
    done: set[str] = set()

    def below(name: str, path: list[str]) -> list[str]:
        if name in path:
            return path[path.index(name) :]
        if name not in done:
            for other in sorted(imports.get(name, ())):
                if found := below(other, [*path, name]):
                    return found
            done.add(name)
        return []

    return next(filter(None, (below(name, []) for name in sorted(imports))), [])


def test_no_module_imports_itself_through_others() -> None:
    imports = {
        module_name(path): set().union(*map(with_packages, imported_modules(path)))
        for path in MODULES
    }
    assert not circle(imports)
    # Importing dmlconf.cli.entry_point imports dmlconf.cli first.
    assert "dmlconf.cli" in imports["dmlconf.__main__"]
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]


def test_cached_figures_depend_on_all_modules_that_judge() -> None:
    paths = {module_name(path): path for path in MODULES}
    # The modules that judge.py imports, also through others.
    modules, waiting = set[Path](), [paths["dmlconf.judging.judge"]]
    while waiting:
        modules.add(path := waiting.pop())
        waiting += {paths[name] for name in imported_modules(path)} - modules
    assert len(modules) > 50
    assert modules <= {*sources(*JUDGING_SOURCES)}


MOST_MODULES_OF_A_FOLDER: Final = 20


@pytest.mark.parametrize("modules", [MODULES, MODULES_OF_TESTS], ids=["dmlconf", "tests"])
def test_no_folder_has_more_than_20_modules(modules: list[Path]) -> None:
    folders = Counter(path.parent for path in modules)
    assert len(folders) > 20
    assert {
        str(path): count for path, count in folders.items() if count > MOST_MODULES_OF_A_FOLDER
    } == {}


def test_imports_inside_functions_and_of_dunder_main_are_found() -> None:
    # exit_codes.py imports from `documents` and `backends` only inside functions.
    source = PACKAGE / "cli" / "common" / "exit_codes.py"
    assert {"documents", "backends"} <= imported_parts(source)
    assert imported_parts(PACKAGE / "__main__.py") == {"cli"}


@for_each([path for path in MODULES if part(path) == "precision"], name=module_name)
def test_precision_imports_only_tensors_and_catalogue_rules(
    path: Path,
) -> None:
    allowed = ("dmlconf.catalogue.precision", "dmlconf.precision", "dmlconf.tensors")
    assert [name for name in imported_modules(path) if not name.startswith(allowed)] == []


SUFFIXES_OF_PERMITTED: Final = ("_error_scale", "_interval", "_candidates")


@for_each([path for path in MODULES if part(path) == "reference"], name=module_name)
def test_the_reference_neither_defines_nor_imports_what_is_permitted(path: Path) -> None:
    names = [node.name for node in nodes_of(path) if isinstance(node, ast.FunctionDef)]
    assert not [name for name in names if name.endswith(SUFFIXES_OF_PERMITTED)]
    taken = imported_parts(path) & {"precision", "permitted"}
    assert not taken, f"imports {', '.join(sorted(taken))}"


def test_folders_of_permitted_are_folders_of_the_reference() -> None:
    permitted, reference = (
        {str(path.parent.relative_to(PACKAGE / name)) for path in MODULES if part(path) == name}
        for name in ("permitted", "reference")
    )
    assert len(permitted & reference) > 5
    # The reference evaluates graphs in one module.
    assert permitted - {".", "graphs"} <= reference


CONCRETE_BACKENDS: Final = ("directml", "faulty", "numpy", "onnxruntime", "webnn")

MOST_TYPE_TESTS: Final = 16
"""The most lines that may ask whether a case is a graph; a method of both kinds is better."""


def type_tests(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield those nodes of a syntax tree that ask whether a case is a graph."""
    graphs = {"GraphCase", "GraphPlan"}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                if graphs & {each.id for each in ast.walk(kinds) if isinstance(each, ast.Name)}:
                    yield node
            case (
                ast.Call(func=ast.Name(id="is_graphs"))
                | ast.MatchClass(cls=ast.Name(id="GraphCase" | "GraphPlan"))
            ):
                yield node
            case ast.Attribute(attr="is_graph", ctx=ast.Load()):
                yield node
            case ast.Compare(left=ast.Constant(value="nodes" | "relation" | "graph")):
                yield node
            case ast.Compare(left=left, comparators=others):
                if any(isinstance(e, ast.Name) and e.id == "GRAPHS" for e in (left, *others)):
                    yield node


def test_few_lines_ask_whether_a_case_is_a_graph() -> None:
    found = [
        f"{module_name(path)}:{getattr(node, 'lineno', 0)}"
        for path in MODULES
        for node in type_tests(nodes_of(path))
    ]
    assert len(found) <= MOST_TYPE_TESTS, f"{len(found)} lines: {', '.join(found)}"


@for_each(
    (
        "isinstance(case, GraphCase)",
        "isinstance(a, Case | GraphPlan)",
        "name == GRAPHS",
        "GRAPHS in names",
        "is_graphs(name)",
        "template.is_graph",
        "match case:\n    case GraphCase(): pass",
        "'nodes' in data",
        "'relation' not in template.data",
    )
)
def test_each_question_for_a_graph_is_found(source: str) -> None:
    assert len(list(type_tests(ast.walk(ast.parse(source))))) == 1


def last_name(node: ast.expr) -> str | None:
    """Return `c` for the expressions `c` and `a.b.c`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None


def modules_calling(name: str) -> list[str]:
    return [
        module_name(path)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and last_name(node.func) == name
    ]


def test_only_the_session_makes_conclusions() -> None:
    assert modules_calling("Conclusion") == ["dmlconf.engine.session"], (
        "use its function conclusion_for"
    )


def test_only_two_modules_make_simple_tables() -> None:
    found = {
        module_name(path)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("SIMPLE")
        and last_name(node.value) == "box"
    }
    assert found == {"dmlconf.reports.terminal_text", "dmlconf.reports.runs.table"}


def test_only_the_session_and_parallel_make_pools_of_workers() -> None:
    # The session runs backends that may break down, parallel those that cannot.
    assert modules_calling("WorkerPool") == ["dmlconf.engine.parallel", "dmlconf.engine.session"]


@for_each(MODULES, name=module_name)
def test_only_backends_and_capture_import_a_concrete_backend(path: Path) -> None:
    if part(path) in ("backends", "capture"):
        return
    concrete = tuple(f"dmlconf.backends.{name}" for name in CONCRETE_BACKENDS)
    assert [name for name in imported_modules(path) if name.startswith(concrete)] == []


def test_table_of_packages_names_exactly_the_packages() -> None:
    parts = {part(path) for path in MODULES}
    assert sorted(parts - set(OUTSIDE_THE_TABLE)) == sorted(LAYERS)


def test_column_where_names_only_existing_files() -> None:
    rows = rows_of("| What | Where |")
    files = {name for _, where in rows for name in re.findall(r"`([a-z_/]+\.py)`", where)}
    assert len(files) > 20
    assert {name for name in files if not (PACKAGE / name).is_file()} == set()


@for_each([*MODULES, *MODULES_OF_TESTS])
def test_no_module_has_more_than_600_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES_OF_A_MODULE


def has_definitions(path: Path) -> bool:
    """Return whether a module has more than a docstring and imports."""
    body = tree_of(path).body
    return any(not isinstance(node, ast.Expr | ast.Import | ast.ImportFrom) for node in body)


@for_each([p for p in MODULES if not p.name.startswith("_")], name=module_name)
def test_dunder_all_lists_all_public_names_once(
    path: Path,
) -> None:
    if not has_definitions(path) or lacks_an_extra(path):
        return
    module = importlib.import_module(module_name(path))
    assert hasattr(module, "__all__"), "it has no __all__"
    names = module.__all__
    assert len(set(names)) == len(names)
    for name in names:
        assert hasattr(module, name), name
    defined = {
        node.name
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    }
    assert defined <= set(names)


EXTRAS: Final = ("onnx", "onnxruntime")
"""Packages of extras that modules import; where one is missing, such modules are left out."""


def lacks_an_extra(path: Path) -> bool:
    """Return whether a module, or one that it imports, needs an extra that is not installed."""
    missing = [name for name in EXTRAS if find_spec(name) is None]
    if not missing or path.name == "__main__.py":
        return False
    try:
        importlib.import_module(module_name(path))
    except ModuleNotFoundError as error:
        if error.name not in missing:
            raise
        return True
    return False


@for_each(MODULES, name=module_name)
def test_every_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(tree_of(path))


def modules_after(statement: str) -> set[str]:
    """Return the modules that a new process has loaded after a statement."""
    script = f"import sys; {statement}; print(*sys.modules, sep='\\n')"
    return set(printed_by(script, PACKAGE.parent).split())


HEAVY: Final = {"click", "jsonschema", "numpy", "rich", "yaml"}
"""Third-party packages that take long to import."""


def test_importing_dmlconf_imports_no_submodule_or_heavy_package() -> None:
    actual = modules_after("import dmlconf")
    assert not HEAVY & actual
    assert {name for name in actual if name.startswith("dmlconf")} == {"dmlconf"}


def test_command_line_imports_no_heavy_package_but_click() -> None:
    assert HEAVY & modules_after("import dmlconf.cli.entry_point") == {"click"}


def test_catalogue_imports_no_heavy_package_but_numpy_and_yaml() -> None:
    loaded = modules_after("from dmlconf.catalogue.loader import operator; operator('GATHER')")
    assert HEAVY & loaded == {"numpy", "yaml"}


def test_valid_cases_import_no_heavy_package_but_numpy_and_yaml() -> None:
    folder = str(cases_directory() / "gather")
    statement = "from pathlib import Path; from dmlconf.cases.loading.loader import load_suite; "
    loaded = modules_after(f"{statement}load_suite([Path({folder!r})], every_case=True)")
    assert HEAVY & loaded == {"numpy", "yaml"}


def test_importing_all_modules_prints_and_warns_nothing() -> None:
    paths = [path for path in MODULES if path.name != "__main__.py" and not lacks_an_extra(path)]
    names = [module_name(path) for path in paths]
    script = "import " + ", ".join(names)
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_folders_of_cases_and_schemas_are_found() -> None:
    assert (schemas_directory() / "case.schema.json").is_file()
    assert any(cases_directory().rglob("*.yaml"))


ONLY_FOR_RUNS: Final = {"dmlconf.engine.session", "dmlconf.judging", "dmlconf.verdicts", "rich"}


def modules_of_command(name: str) -> set[str]:
    table = "dmlconf.cli.common.command_table"
    loaded = modules_after(f"from {table} import command_module; command_module({name!r})")
    assert "dmlconf.cli.common.command_table" in loaded
    return loaded


@for_each(("list", "show"))
def test_list_and_show_do_not_import_what_only_runs_need(command: str) -> None:
    assert ONLY_FOR_RUNS & modules_of_command(command) == set()
    assert all(find_spec(name) for name in ONLY_FOR_RUNS)


FOR_SOME_RUNS: Final = {
    "dmlconf.cases.graph_case",
    "dmlconf.cases.loading.rewrites",
    "dmlconf.certification.profiles",
    "dmlconf.faults.prediction",
    "dmlconf.faults.runtimes.formulas",
    "dmlconf.permitted.graphs.allowance",
    "dmlconf.permitted.numbers.error_scale",
    "dmlconf.run_log.earlier",
    "dmlconf.workers.worker",
    "jsonschema",
    "multiprocessing",
    "rich",
    "tempfile",
}


def test_command_run_imports_no_rarely_needed_module() -> None:
    assert FOR_SOME_RUNS & modules_of_command("run") == set()
    assert all(find_spec(name) for name in FOR_SOME_RUNS)
