"""Find operators by their names in the catalogue, DirectML.h, ONNX and WebNN."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from dmlconf.catalogue.loader import (
    PREFIXES,
    UnknownOperatorError,
    operator_name,
    operator_names,
)

__all__ = ["AmbiguousOperatorError", "named_operators", "one_operator", "standard_names"]


class AmbiguousOperatorError(LookupError):
    """A name stands for several operators, but a command takes only one."""

    def __init__(self, name: str, operators: Iterable[str]) -> None:
        self.name = name
        self.operators = tuple(operators)
        super().__init__(
            f"{name} may be {' or '.join(self.operators)} in DirectML: name one of them"
        )


@cache
def standard_names() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return DirectML's operators by target, then by the target's names, such as `Conv`."""
    from dmlconf.translation.tables import TARGETS, table  # DirectML's names need no tables.

    return {target: table(target).names() for target in TARGETS}


def named_operators(name: str) -> tuple[str, ...]:
    """Return the operators that a name stands for, in alphabetical order.

    A name or alias of the catalogue, such as `GEMM`, `DML_OPERATOR_GEMM`, `DML_GEMM_OPERATOR_DESC`
    or `GRAPHS`, stands for that operator alone. Names may lack a prefix of `PREFIXES` (`RELU`), or
    be those of ONNX or WebNN (`Conv`, `conv2d`). Capitals do not matter.

    Raises:
        UnknownOperatorError: no operator has this name.
    """
    text = name.upper()
    if text.startswith("DML_") and text.endswith("_OPERATOR_DESC"):
        text = text.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
    try:
        return (operator_name(text),)
    except UnknownOperatorError as error:
        known = set(operator_names())
        operators = {prefix + text for prefix in PREFIXES if prefix + text in known}
        operators |= {
            operator
            for names in standard_names().values()
            for standard_name, implementing in names.items()
            if standard_name.upper() == text
            for operator in implementing
        }
        if not operators:
            others = [each for names in standard_names().values() for each in names]
            raise UnknownOperatorError(name, others) from error
        return tuple(sorted(operators))


def one_operator(name: str) -> str:
    """Return the only operator that a name stands for, as `named_operators` reads it.

    Raises:
        UnknownOperatorError: no operator has this name.
        AmbiguousOperatorError: several operators have this name.
    """
    operators = named_operators(name)
    if len(operators) > 1:
        raise AmbiguousOperatorError(name, operators)
    return operators[0]
