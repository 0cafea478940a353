"""`dmlconf show`: print a case's desc, data and expectation, and its outcome on a backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case, ExpectedOutputs, ExpectedRejection, Fill, Provenance
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.levels import spoken_level
from dmlconf.catalogue.model import FieldKind
from dmlconf.cli.common.command import Command
from dmlconf.cli.common.completion import complete_case
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import TEXT
from dmlconf.cli.options.backend import backend_option, color_option, timeout_option
from dmlconf.cli.options.nothing_selected import nothing_selected
from dmlconf.cli.options.selection import (
    challenge_option,
    load_chosen,
    paths_argument,
    suite_paths,
)
from dmlconf.cli.pages.grid import grid
from dmlconf.cli.pages.show_graph import graph_lines
from dmlconf.documents.problems import printable
from dmlconf.workers.memory import shortage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["command"]

_UNLISTED: Final = "what no support table lists"


@click.command("show", cls=Command, short_help="Print one case.")
@click.argument("case", type=TEXT, shell_complete=complete_case)
@paths_argument
@challenge_option("Show the data that --challenge N gives in a run.")
@backend_option(
    "Run the case, and show its outcome on this backend.",
)
@backend_option(
    "Show the expected values from this source if the case does not state them: auto (the "
    "suite's recordings, then numpy), numpy or recording:PATH.",
    "--against",
)
@timeout_option("How long the backend may take.")
@color_option
def command(
    case: str,
    paths: tuple[Path, ...],
    challenge: int | None,
    backend: str | None,
    against: str | None,
    timeout: float,
    color: str,
) -> int:
    """Show the CASE with this identifier or handle: its desc, tensors, expectation and source.

    Of several cases, as of a pattern or a matrix, the first is shown. CASE is looked up under
    PATHS, by default in the bundled suite. Exit codes: as for run, but 0 even if the backend fails
    the case.
    """
    from dmlconf.cli.output.console import make_console

    suite, plan = load_chosen(paths, identifiers=(case,), challenge=challenge)
    if not plan:
        return nothing_selected(paths, {"identifiers": (case,)})
    console, built = make_console(color), build(plan[0])
    if backend is None and against is None:
        _print(console, built)
        return ExitCode.SUCCESS
    from dmlconf.backends import registry
    from dmlconf.cli.pages.show_outcome import outcome_lines, with_expectation
    from dmlconf.engine.against import AUTO

    folders = suite_paths(paths)
    spec = None if backend is None else registry.parse(backend)
    _print(console, with_expectation(built, against or AUTO, folders))
    if spec is not None:
        lines = outcome_lines(plan[0], built, spec, against or AUTO, suite, folders, timeout)
        for line in lines:
            console.print(line, soft_wrap=True, markup=False, highlight=False)
    return ExitCode.SUCCESS


def _print(console: Console, case: Case) -> None:
    for line in _lines(case):
        console.print(line, soft_wrap=True)


def _styled(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text("\n".join(map(printable, text.split("\n"))), style=style)


def _row(name: str, value: str, style: str = "") -> Text:
    return _styled(f"{name:<14}", "bold") + _styled(value, style)


def _lines(case: Case) -> Iterator[Text]:
    yield _styled(case.identifier, "bold cyan")
    yield from _about(case)
    yield _styled("")
    yield from _tensors(case)
    yield from _attributes(case)
    yield _styled("")
    yield from _expectation(case)
    if case.about.documented is not None:
        yield _styled("")
        yield _styled("The page is wrong", "bold yellow")
        yield from (_styled(f"  {line}") for line in _documented_lines(case.about.documented))


def _about(case: Case) -> Iterator[Text]:
    operator, about = case.entry, case.about
    yield _row("operator", f"{operator.name}: {operator.summary}")
    yield _row("page", about.page + (f", example {about.example}" if about.example else ""))
    yield _row("file", str(about.location))
    yield _row("tags", ", ".join(case.tags))
    listed = case.required_level is not None
    yield _row("needs", spoken_level(case.level_needs) if listed else _UNLISTED)
    if about.note:
        yield _row("note", about.note.strip())
    if case.disputes is not None:
        yield _row("disputes", f"the {case.disputes}, which is wrong here")


def _tensors(case: Case) -> Iterator[Text]:
    missing = shortage(case)
    inputs = case.inputs() if case.data and missing is None else {}
    for name, field, tensor in tensors_of(case.entry, case.desc, FieldKind.INPUT):
        yield _styled(f"{name}  ", "bold") + _styled(f"{field.kind}  {_described(tensor)}")
        data = case.data.get(name)
        if isinstance(data, Fill):
            yield _styled(f"  filled by {data.name}{_arguments(data.arguments)}", "dim")
        if name in inputs and name in case.data:
            yield _indented(grid(inputs[name]))
        elif name in case.data:
            yield _styled(f"  not shown: the case {missing}", "dim")
    for name, tensor in case.outputs().items():
        yield _styled(f"{name}  ", "bold") + _styled(f"output  {_described(tensor)}")


def _described(tensor: TensorDesc) -> str:
    parts = [f"{tensor.DataType} {{{', '.join(map(str, tensor.Sizes))}}}"]
    if tensor.Strides is not None:
        parts.append(f"strides {{{', '.join(map(str, tensor.Strides))}}}")
    if tensor.Flags:
        parts.append(" | ".join(tensor.Flags))
    if tensor.DeclaredTensorSizeInBytes is not None:
        parts.append(f"TotalTensorSizeInBytes {tensor.DeclaredTensorSizeInBytes}")
    if tensor.GuaranteedBaseOffsetAlignment:
        parts.append(f"aligned to {tensor.GuaranteedBaseOffsetAlignment}")
    return ", ".join(parts)


def _arguments(arguments: Mapping[str, Any]) -> str:
    named = ", ".join(f"{name} {value}" for name, value in arguments.items())
    return f" ({named})" if named else ""


def _indented(text: str) -> Text:
    return _styled("\n".join(f"  {line}" for line in text.split("\n")))


def _attributes(case: Case) -> Iterator[Text]:
    if case.nodes:
        yield _styled("")
        yield _styled("Nodes", "bold green")
        for line in graph_lines(case.graph, _described, _shown):
            yield _styled(line, "" if line.startswith(" ") else "bold")
        return
    fields = list(case.entry.of_kind(FieldKind.ATTRIBUTE))
    width = max((len(field.name) for field in fields), default=0)
    for field in fields:
        shown = _shown(case.desc[field.name])
        yield _styled(f"{field.name:<{width}}  ", "bold") + _styled(shown)


def _shown(value: Any) -> str:
    """Return an attribute as text, such as `{1, 2}` or `ACTIVATION_LINEAR {Alpha 1, Beta 0}`."""
    if isinstance(value, tuple):
        return "{" + ", ".join(map(_shown, value)) + "}"
    if not isinstance(value, Mapping):
        return str(value)
    parts = [f"{k} {_shown(v)}" for k, v in value.items() if k != "operator" and v is not None]
    text = f"{{{', '.join(parts)}}}" if parts else ""
    return " ".join(filter(None, (value.get("operator"), text)))


def _expectation(case: Case) -> Iterator[Text]:
    expected = case.expectation
    if expected is None:
        yield _styled("Expected: the outcome of the reference or of a recording", "bold green")
        return
    if isinstance(expected, ExpectedRejection):
        constraint = f", because it breaks {expected.constraint}" if expected.constraint else ""
        yield _styled(f"Expected: rejected with {expected.hresult}{constraint}", "bold green")
        for broken in () if case.nodes else case.operator.constraints:
            if broken.name in case.violations():
                yield _styled(f"  {broken.name}: {broken.require}", "dim")
                for name, term in case.operator.terms_in(broken.require).items():
                    yield _styled(f"    where {name} = {term}", "dim")
    elif isinstance(expected, ExpectedOutputs):
        yield _styled("Expected", "bold green")
        for name, array in expected.outputs.items():
            yield _styled(f"{name}", "bold")
            yield _indented(grid(array))
    sources = {
        Provenance.DOCUMENTED: f"the page {case.about.page}",
        Provenance.STATED: case.about.origin or "the case",
        Provenance.RECORDED: case.about.recorded or "a real DirectML",
        Provenance.REFERENCE: "NumPy",
    }
    source = sources[expected.provenance]
    yield _row("source", f"{expected.provenance}: {source}")


def _documented_lines(documented: Any) -> Iterator[str]:
    """Yield what the page says and why that is wrong, from `documented` of a case."""
    if not isinstance(documented, Mapping):
        yield str(documented)
        return
    names = {"says": "it says", "why": "but", "desc": "it gives", "expect": "it shows"}
    for key, value in documented.items():
        shown = value if isinstance(value, str) else ", ".join(_pairs(value))
        yield f"{names.get(key, key):<10}{shown}"


def _pairs(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{name}: {item}" for name, item in value.items())
    else:
        yield str(value)
