"""Known faults of DirectML as text: lines for the terminal, JSON, and the page `docs/faults.md`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from dmlconf.excuses.known_faults import KnownFault
from dmlconf.reports.markdown_text import table

__all__ = ["condition_of", "fault_entry", "fault_lines", "render_json", "render_markdown"]


def condition_of(fault: KnownFault) -> str:
    """Return in words when the fault explains a failure; `always` if it has no condition.

    Operators, versions, the outcome and `KnownFault.nodes` are not part of the text.
    """
    parts = []
    if fault.formula is not None:
        parts.append(f"the outputs are what dmlconf.faults' {fault.formula.__name__} computes")
    if fault.when is not None:
        parts.append(f"{fault.when}")
    if fault.node is not None:
        parts.append(f"a node of {' or '.join(sorted(fault.node.operators))}: {fault.node.when}")
    if fault.constant is not None:
        parts.append(f"a constant of the graph: {fault.constant.when}")
    if fault.breaks is not None:
        parts.append(f"it breaks {' or '.join(sorted(fault.breaks))} and nothing else")
    if fault.graph:
        parts.append("compiled as a graph")
    if fault.circumstance is not None:
        parts.append(f"only when {fault.circumstance}")
    if fault.cases is not None:
        count = len(fault.cases)
        parts.append(f"in {count} case{'s' if count != 1 else ''} by name: {fault.not_computed}")
    return "; ".join(parts) or "always"


def fault_entry(fault: KnownFault) -> dict[str, Any]:
    """Return a fault as JSON values."""
    return {
        "name": fault.name,
        "title": fault.title,
        "operators": sorted(fault.operators),
        "versions": {
            "first": ".".join(map(str, fault.first)),
            "last": ".".join(map(str, fault.last)),
        },
        "outcome": fault.outcome,
        "condition": condition_of(fault),
        "computed_by": fault.formula.__name__ if fault.formula else None,
        "reason": fault.reason,
        "instead": fault.instead or None,
        "example": fault.example or None,
        "seen_on": fault.kernels or None,
        "cases": sorted(fault.cases) if fault.cases is not None else None,
    }


def fault_lines(fault: KnownFault) -> Iterator[str]:
    """Yield the lines that explain a fault in the terminal."""
    yield fault.name
    yield f"  {fault.span} {fault.title}"
    yield f"  operators  {', '.join(sorted(fault.operators))}"
    yield f"  shows as   {fault.outcome}"
    yield f"  when       {condition_of(fault)}"
    yield f"  what       {fault.reason}"
    if fault.instead:
        yield f"  instead    {fault.instead}"
    if fault.example:
        yield f"  example    dmlconf show '{fault.example}'"
    if fault.kernels:
        yield f"  seen on    {fault.kernels}"


_LAB_RELEASE: Final = "1.15.4"
"""The release that the Wine lab runs by default, as in `lab/recipe.toml`."""

_HEAD = """\
# What DirectML itself does wrong

Known faults of DirectML's own kernels and of its checks, which no driver can mend. dmlconf
recognises them in every run: a case that fails because of one is `waived`, with the fault's name.
A wrong value is recognised if it is the one that a function of `dmlconf/faults` computes; a crash
or a refusal, if the desc or the graph meets a condition. `--no-known-faults` judges as if none were
known.

Each has an example and the command that repeats it in the [Wine lab](wine-lab.md), from a
checkout, on the last release that has it (`lab.py versions` fetches the releases once). To repeat
it with sizes and data of your own, [write a case](writing-cases.md) in an empty folder, and type
there `python3 CHECKOUT/lab/lab.py run -- run mine.yaml -b directml --no-known-faults`. On Windows
run the same without `python3 lab/lab.py run --`, and with `--directml FILE` for another
DirectML.dll. `dmlconf show CASE` prints the desc, its data and what is right. The run fails as
`Shows as` says: `outputs` are wrong values, printed beside the expected ones; `accepted` means that
a case runs that must be refused; with a crash or the loss of the device the case is `broken`.
Without `--no-known-faults` the same case is `waived`.

`When` is a condition over the operator's fields. `compiled as a graph` means a node of a graph, or
an operator alone with `-b directml:compile=graph`. Of a node, `OperatorName` is its operator,
`Feeder` that of the node that makes its first input, `Consumers` how many nodes it feeds,
`OutputNumbers` which outputs of the graph it is, counted from 0, and `NumbersWritten` the numbers
of the graph's inputs, constants and earlier nodes of the same operator, for each of these nodes
that is an output. `OutputOperators` and `FirstNumbers` list, for each output of the graph, the
operator that makes it, and the first output that this node leads to. `ReadAs` lists the operators
of the nodes that a node feeds, with the sizes that they read. `Readers` lists these operators too,
and `''` for an output of the graph, but leaves out ELEMENT_WISE_IDENTITY without ScaleBias;
`InPlaceReaders` are those that may run in place, and `SourceReaders` what reads the tensor that the
node's first input takes, if a node makes it. Of a constant, `ByteCount` is its size, and
`BytesRead` how much of it is read. What a desc or a graph `breaks` is a constraint of `dmlconf
operators NAME` or of [graphs](graphs.md#the-file).

`dmlconf faults`, which writes this page with `--report markdown`, lists them; `dmlconf faults NAME`
explains one. What is said of devices is what was tried: a fault that was seen on lavapipe only may
be absent where a driver's metacommand replaces the kernel.

"""


def render_markdown(faults: Iterable[KnownFault]) -> str:
    """Return the page `docs/faults.md`."""
    known = list(faults)
    rows = ((f"[{each.name}](#{each.name})", each.releases, each.title) for each in known)
    listed = "\n".join(table(["Fault", "DirectML", "What it does"], rows))
    return f"{_HEAD}{listed}\n" + "".join(map(_section, known))


def render_json(faults: Iterable[KnownFault]) -> str:
    """Return faults as JSON."""
    return json.dumps({"format": 1, "faults": [fault_entry(each) for each in faults]}, indent=1)


def _section(fault: KnownFault) -> str:
    lines = [
        f"\n## {fault.name}\n",
        f"DirectML {fault.releases} {fault.title}.\n",
        f"{fault.reason}\n",
        f"- Operators: {', '.join(sorted(fault.operators))}",
        f"- Shows as: {fault.outcome}",
        f"- When: {_code(fault)}",
    ]
    if fault.instead:
        lines.append(f"- Instead: {fault.instead}")
    if fault.example:
        lines.append(f"- Example: `{fault.example}`")
        lines.append(f"- Repeat it: `{_command(fault)}`")
    if fault.kernels:
        lines.append(f"- Seen on: {fault.kernels}")
    return "\n".join(lines) + "\n"


def _command(fault: KnownFault) -> str:
    last = ".".join(map(str, fault.last))
    version = "" if last == _LAB_RELEASE else f"--directml-version {last} "
    alone = fault.graph and not fault.example.startswith("graphs/")
    backend = "directml:compile=graph" if alone else "directml"
    return (
        f"python3 lab/lab.py run {version}-- run cases/{fault.example.partition('/')[0]} "
        f"-b {backend} --no-known-faults --case '{fault.example}'"
    )


def _code(fault: KnownFault) -> str:
    has_code = fault.when is not None or fault.node is not None
    return f"`{condition_of(fault)}`" if has_code else condition_of(fault)
