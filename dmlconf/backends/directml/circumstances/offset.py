"""Offset: bindings that begin at every multiple of 16 up to 256, in larger buffers.

16 bytes is DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT: where a desc guarantees no more, a tensor may begin
at any multiple of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dmlconf.backends.circumstances import Dispatch, Inapplicable
from dmlconf.backends.directml.circumstances.bench import Bench
from dmlconf.backends.directml.circumstances.descs import with_tensors
from dmlconf.backends.directml.circumstances.work import Step
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc

__all__ = ["exercise"]

_ALIGNMENT: Final = 16
_FURTHEST: Final = 256
_MORE_BYTES: Final = 32


def exercise(bench: Bench, case: Case) -> list[Dispatch] | Inapplicable:
    """Dispatch with a table for each offset; the desc claims more bytes than the tensors need."""
    larger = with_tensors(case, _larger)
    base = bench.site(larger)
    places = [place for place in (*base.placement.inputs, *base.placement.outputs) if place]
    step = max([_ALIGNMENT, *(place.desc.GuaranteedBaseOffsetAlignment for place in places)])
    if step >= _FURTHEST:
        return Inapplicable(f"its tensors are guaranteed to begin at multiples of {step}")
    bench.initialize(base)
    shifts = range(step, _FURTHEST + 1, step)
    return bench.run(Step(bench.site(larger, shift=shift, beside=base)) for shift in shifts)


def _larger(name: str, tensor: TensorDesc) -> TensorDesc:
    """Return a tensor that claims more bytes, and the alignment with which it is bound."""
    return replace(
        tensor,
        DeclaredTensorSizeInBytes=tensor.TotalTensorSizeInBytes + _MORE_BYTES,
        GuaranteedBaseOffsetAlignment=max(tensor.GuaranteedBaseOffsetAlignment, _ALIGNMENT),
    )
