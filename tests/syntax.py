"""Read the syntax trees of modules; each module is parsed only once until `forget`."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

__all__ = ["forget", "nodes_of", "statements_of", "tree_of"]


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module's syntax tree, except the contexts of names, such as `Store`.

    `ast.walk` takes longer.
    """
    nodes: list[ast.AST] = [tree_of(path)]
    for node in nodes:  # Those that are added are visited, too.
        for name in node._fields:
            value = getattr(node, name)
            if isinstance(value, list):
                nodes += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and name != "ctx":
                nodes.append(value)
    return tuple(nodes)


@cache
def statements_of(path: Path) -> tuple[ast.AST, ...]:
    """Return a module and all its statements, which takes a fraction of the time of all nodes."""
    found: list[ast.AST] = [tree_of(path)]
    for node in found:
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            found += getattr(node, name, ())
    return tuple(found)


def forget() -> None:
    """Free all trees, whose many objects would slow down garbage collection in other tests."""
    nodes_of.cache_clear()
    statements_of.cache_clear()
    tree_of.cache_clear()
