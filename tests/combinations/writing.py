"""Write drafts as entries of a case file; values that differ become columns of a matrix."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import yaml

from dmlconf.cases.loading.expansion import written
from dmlconf.cases.writing.desc_entry import desc_entry
from dmlconf.catalogue.model import Operator
from dmlconf.tensors.layout import LAYOUTS
from tests.combinations.drafts import Draft, entry_of, shared_buffers

__all__ = ["case_entries"]

_Leaves = dict[tuple[str | int, ...], Any]
_WHOLE = ("Sizes", "Strides", "Flags", "fill", "values", "DataType", "layout")
"""Keys whose values are not taken apart into columns."""


class _Dumper(yaml.SafeDumper):
    """Writes equal values in full instead of as YAML aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def case_entries(operator: Operator, drafts: Sequence[Draft], first: int) -> str:
    """Return the text of entries of a case file; the first has the name `pairs-FIRST`."""
    lines = []
    for entry in entries(operator, drafts, first):
        lines.append(f"  - name: {entry.pop('name')}")
        if "matrix" in entry:
            lines.append(f"    # {', '.join(entry.pop('columns'))}")
            rows = entry.pop("matrix")["Values"]
            lines += ["    matrix:", "      Values:", *(f"        - {_flow(row)}" for row in rows)]
        lines.append("    desc:")
        desc = entry.pop("desc")
        lines += [f"      {name}: {_flow(value)}" for name, value in desc.items()]
        lines += [f"    {name}: {_flow(value)}" for name, value in entry.items()]
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, width=1 << 20, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


def entries(operator: Operator, drafts: Sequence[Draft], first: int) -> list[dict[str, Any]]:
    """Return entries of a case file; drafts with the same fields share one."""
    groups: dict[str, list[_Leaves]] = {}
    for draft in drafts:
        leaves = dict(_leaves((), _entry(operator, draft)))
        shared = [(path, value) for path, value in leaves.items() if path[0] == "in_place"]
        key = json.dumps([sorted(map(list, leaves)), shared], default=str)
        groups.setdefault(key, []).append(leaves)
    return [_matrix(number, rows) for number, rows in enumerate(groups.values(), first)]


def _entry(operator: Operator, draft: Draft) -> dict[str, Any]:
    desc = desc_entry(operator, draft.desc, entry_of(operator, draft))
    for name, value in desc.items():
        tensors = value if isinstance(value, list) else [value]
        for tensor in tensors:
            if isinstance(tensor, dict) and "Sizes" in tensor:
                _uniform(operator, name, tensor)
    entry: dict[str, Any] = {"desc": desc}
    if draft.in_place:
        entry["in_place"] = shared_buffers(operator, draft.desc)
    return entry


def _uniform(operator: Operator, name: str, tensor: dict[str, Any]) -> None:
    """Give a tensor the keys that other tensors have."""
    strides = tensor.pop("Strides", None)
    sizes = tensor["Sizes"]
    names = [k for k, make in LAYOUTS.items() if make(sizes) == tuple(strides or ())]
    if strides is None or names:
        tensor["layout"] = "implicit" if strides is None else names[0]
    else:
        tensor["Strides"] = strides
    tensor.setdefault("GuaranteedBaseOffsetAlignment", 0)
    if any(each.name == name and each.kind == "input" for each in operator.fields):
        tensor.setdefault("Flags", [])


def _leaves(path: tuple[str | int, ...], value: Any) -> Any:
    """Yield the path and the value of each part of an entry that may become a column."""
    if isinstance(value, Mapping) and not (path and path[-1] in _WHOLE):
        if "operator" in value and "desc" not in value and len(path) > 1:
            yield path, value
            return
        for key, item in value.items():
            yield from _leaves((*path, key), item)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for at, item in enumerate(value):
            yield from _leaves((*path, at), item)
    else:
        yield path, value


def _matrix(number: int, rows: list[_Leaves]) -> dict[str, Any]:
    if len(rows) == 1:
        return {"name": f"pairs-{number}", **_nest(rows[0])}
    columns: dict[str, str] = {}
    leaves: _Leaves = {}
    kept: list[list[Any]] = [[] for _ in rows]
    for path in rows[0]:
        values = [row[path] for row in rows]
        if all(_same(value, values[0]) for value in values):
            leaves[path] = values[0]
            continue
        key = repr(values)
        if key not in columns:
            columns[key] = _column(path)
            for row, value in zip(kept, values, strict=True):
                row.append(value)
        leaves[path] = f"=Values[{list(columns).index(key)}]"
    unique = {",".join(written(each) for each in row): row for row in kept}
    matrix = {"Values": list(unique.values())}
    return {
        "name": f"pairs-{number}",
        "columns": list(columns.values()),
        "matrix": matrix,
        **_nest(leaves),
    }


def _column(path: tuple[str | int, ...]) -> str:
    return ".".join(str(key) for key in path[1:] or path)


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are written alike; 1 and 1.0 are not."""
    return repr(one) == repr(other)


def _nest(leaves: _Leaves) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path, value in leaves.items():
        node: Any = root
        for key, following in pairwise(path):
            if isinstance(node, list):
                while len(node) <= int(key):
                    node.append({})
                node = node[int(key)]
            else:
                node = node.setdefault(key, [] if isinstance(following, int) else {})
        if isinstance(node, list):
            node.append(value)
        else:
            node[path[-1]] = value
    return root
