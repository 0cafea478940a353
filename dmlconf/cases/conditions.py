"""Read conditions such as `Rank > 4`, which choose cases, and find unknown names in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from dmlconf.cases.facts import names
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import entry_of, operator_names
from dmlconf.documents.problems import name_hint
from dmlconf.expressions import FUNCTIONS, Expression, ExpressionError

__all__ = ["UnknownName", "hint_at_name", "names_of_operator", "read_condition", "unknown_names"]

_UNEXPLAINED: Final = "invalid syntax"
"""What Python says if it has no better explanation."""
_ASSIGNED: Final = "Maybe you meant '=='"
"""What Python says if `=` is where `==` may be meant."""
_EXAMPLE: Final = "DataType == FLOAT16 and Rank > 4"
_TOKEN: Final = re.compile(r"\w+|[-+*/%=<>!&|^~@:?$#]+|\S")
_MEANT: Final[Mapping[str, str]] = {
    "!": "not",
    "&&": "and",
    "<>": "!=",
    "=": "==",
    "=<": "<=",
    "===": "==",
    "=>": ">=",
    "AND": "and",
    "NOT": "not",
    "OR": "or",
    "||": "or",
}
"""For operators of other languages, what they are called here."""


@dataclass(frozen=True, slots=True)
class UnknownName:
    """An unknown name in a condition.

    Attributes:
        hint: which name may have been meant, or where names are listed.
    """

    name: str
    hint: str


def read_condition(text: str) -> Expression:
    """Return the condition that a text states.

    Raises:
        ExpressionError: the text is not an expression.
    """
    try:
        condition = Expression(text)
    except ExpressionError as error:
        if isinstance(error.__cause__, SyntaxError):
            problem = _syntax_problem(" ".join(text.split()))
            raise ExpressionError(f"{text}: {problem}") from error
        raise
    if isinstance(ast.parse(text.strip(), mode="eval").body, ast.Tuple):
        raise ExpressionError(f"{text}: a comma makes a tuple; conditions are joined by `and`")
    return condition


def _syntax_problem(text: str) -> str:
    """Return what is wrong with a text that is no expression, where, and what may be meant."""
    example = f"; a condition is such as {_EXAMPLE}"
    try:
        ast.parse(text, mode="eval")
    except SyntaxError as error:
        if not error.offset or error.offset > len(text):
            ends = error.msg == _UNEXPLAINED
            return f"{'it ends too early' if ends else error.msg}{example}"
        if not error.msg.startswith(_UNEXPLAINED):
            return f"{error.msg}, at column {error.offset}{example}"
        token = _misplaced(text, error)
        meant = _MEANT.get(token[0])
        hint = example if meant is None else f"; did you mean {meant}?"
        return f"`{token[0]}` at column {token.start() + 1} is unexpected{hint}"
    return "it ends too early, with its first line; write it in one line"


def _misplaced(text: str, error: SyntaxError) -> re.Match[str]:
    """Return the token of a text that is not as it should be."""
    tokens = list(_TOKEN.finditer(text))
    at = next(i for i, token in enumerate(tokens) if token.end() >= (error.offset or 0))
    if _ASSIGNED in error.msg:  # Python points at what is assigned to.
        return next((token for token in tokens[at:] if token[0] == "="), tokens[at])
    if at and tokens[at][0] not in _MEANT and tokens[at - 1][0] in _MEANT:
        return tokens[at - 1]  # Python takes NOT in `NOT Rank` for a name.
    return tokens[at]


def unknown_names(condition: Expression, operators: Collection[str] = ()) -> list[UnknownName]:
    """Return the unknown names in a condition.

    Args:
        operators: names of operators, and `GRAPHS` for graphs; empty for all operators and graphs.
    """
    among = operators or (GRAPHS, *operator_names())
    absent = [name for name in sorted(condition.names) if not _has_any(among, name)]
    if not absent:
        return []
    known = frozenset[str]().union(*map(names_of_operator, among))
    return [UnknownName(name, hint_at_name(name, known)) for name in absent]


def hint_at_name(name: str, known: Iterable[str]) -> str:
    """Suggest a similar name, in capitals only if `name` is, or say where names are listed."""
    alike = [each for each in known if each.isupper() == name.isupper()]
    return name_hint(name, alike, "`dmlconf operators NAME` lists the fields of an operator")


def _has_any(operators: Iterable[str], name: str) -> bool:
    return any(name in names_of_operator(operator) for operator in operators)


@cache
def names_of_operator(operator: str) -> frozenset[str]:
    """Return the names that a condition over cases of an operator, or of `GRAPHS`, may use."""
    entry = entry_of(operator)
    return frozenset(names(entry, {}, ())) - FUNCTIONS.keys() | entry.term_names | {"FeatureLevel"}
