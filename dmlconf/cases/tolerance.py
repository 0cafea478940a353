"""Read a case's `tolerance`: how far an output may be from the expected one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.cases.errors import CaseError
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.precision import PrecisionRule, RuleKind

__all__ = ["Tolerance", "read_tolerances"]

_SOURCE: Final = "tolerance of the case"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a case permits for one output.

    Attributes:
        reason: why the limit replaces the operator's rule; if None, both apply.
    """

    rule: PrecisionRule
    reason: str | None = None


def read_tolerances(
    written: Mapping[str, Any], tensors: Mapping[str, TensorDesc]
) -> dict[str, Tolerance]:
    """Return the tolerances by output tensor.

    `absolute` and `relative` together permit the sum of both, as numpy.allclose does.

    Raises:
        CaseError: there is no such output, or its limits are missing or invalid.
    """
    return {
        name: _tolerance(entry, name, tensors, ("tolerance", name))
        for name, entry in written.items()
    }


def _tolerance(
    entry: Mapping[str, Any],
    name: str,
    tensors: Mapping[str, TensorDesc],
    where: tuple[str | int, ...],
) -> Tolerance:
    if name not in tensors:
        hint = f"outputs of the desc: {', '.join(tensors)}"
        raise CaseError(where, f"the desc has no output {name}", hint)
    limits = {kind: entry[kind] for kind in ("ulp", "absolute", "relative") if kind in entry}
    if not limits:
        raise CaseError(where, "has no limit", "give it `ulp`, `absolute` or `relative`")
    for kind, limit in limits.items():
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
            raise CaseError((*where, kind), f"{limit!r} is not a number above 0")
        if limit > sys.float_info.max:
            raise CaseError((*where, kind), "an infinite limit judges nothing")
    if "ulp" in limits and (len(limits) > 1 or not tensors[name].DataType.is_float):
        message = "`ulp` cannot be combined with other limits, and is for floating-point outputs"
        raise CaseError((*where, "ulp"), message, "use `absolute` and `relative`")
    reason = entry.get("reason")
    source = _SOURCE if reason is None else f"{_SOURCE}: {reason}"
    if "relative" in limits:
        absolute = limits.get("absolute", 0)
        rule = PrecisionRule(RuleKind.RELATIVE, limits["relative"], source, absolute=absolute)
    else:
        kind, limit = next(iter(limits.items()))
        rule = PrecisionRule(RuleKind(kind), limit, source)
    return Tolerance(rule, reason)
