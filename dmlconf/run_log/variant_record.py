"""The results of a case in each variant of a backend, as in run logs and reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dmlconf.verdicts.verdict import ReasonKind, Status, VariantResult

__all__ = ["read_variants", "variants_data"]


def variants_data(variants: Mapping[str, VariantResult]) -> dict[str, dict[str, Any]]:
    """Return the results by label as JSON values."""
    return {label: _data(result) for label, result in variants.items()}


def read_variants(record: Mapping[str, Mapping[str, Any]]) -> dict[str, VariantResult]:
    """Return the results by label that `variants_data` wrote."""
    return {label: _result(data) for label, data in record.items()}


def _data(result: VariantResult) -> dict[str, Any]:
    data: dict[str, Any] = {"status": result.status, "seconds": round(result.seconds, 6)}
    if result.reason is not None:
        data |= {"reason": result.reason, "message": result.message}
    if result.differing_bits:
        data["differing_bits"] = dict(result.differing_bits)
    if result.dispatch_seconds:
        data["dispatch_seconds"] = [round(seconds, 9) for seconds in result.dispatch_seconds]
    return data


def _result(data: Mapping[str, Any]) -> VariantResult:
    return VariantResult(
        status=Status(data["status"]),
        reason=ReasonKind(data["reason"]) if "reason" in data else None,
        message=data.get("message", ""),
        differing_bits=data.get("differing_bits", {}),
        seconds=data["seconds"],
        dispatch_seconds=tuple(data.get("dispatch_seconds", ())),
    )
