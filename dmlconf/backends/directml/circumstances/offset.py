"""The circumstance `offset`: all tensors move by each multiple of 16 bytes up to 256.

16 is DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT. If a desc guarantees a larger alignment, all tensors move
by multiples of the largest one, which must be less than 256.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dmlconf.backends.circumstances import Dispatch, Inapplicable
from dmlconf.backends.directml.circumstances.bench import Bench
from dmlconf.backends.directml.circumstances.work import Step
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc

__all__ = ["exercise"]

_ALIGNMENT: Final = 16
_FURTHEST: Final = 256
_MORE_BYTES: Final = 32


def exercise(bench: Bench, case: Case) -> list[Dispatch] | Inapplicable:
    """Dispatch once for each offset.

    An operator's tensors are declared 32 bytes larger, so that wrong assumptions about their sizes
    show; the inputs keep their sizes if one has a name that begins with `Indices`. A graph's
    tensors keep theirs.
    """
    # An index past the end of an input reads the rest of that input's binding.
    by_index = any(name.startswith("Indices") for name in case.input_names())
    kept = frozenset(case.input_names()) if by_index else frozenset()

    def changed(name: str, tensor: TensorDesc) -> TensorDesc:
        return _larger(tensor, 0 if name in kept else _MORE_BYTES)

    larger = case.with_tensors(changed)
    base = bench.site(larger)
    tensors = [tensor for tensor in (*base.placement.inputs, *base.placement.outputs) if tensor]
    step = max([_ALIGNMENT, *(tensor.desc.GuaranteedBaseOffsetAlignment for tensor in tensors)])
    if step >= _FURTHEST:
        return Inapplicable(f"its tensors are guaranteed to start at multiples of {step}")
    bench.initialize(base)
    shifts = range(step, _FURTHEST + 1, step)
    return bench.run(Step(bench.site(larger, shift=shift, shares_with=base)) for shift in shifts)


def _larger(tensor: TensorDesc, more: int) -> TensorDesc:
    """Return the tensor, `more` bytes larger, with a guaranteed alignment of 16 or more."""
    return replace(
        tensor,
        DeclaredTensorSizeInBytes=tensor.TotalTensorSizeInBytes + more,
        GuaranteedBaseOffsetAlignment=max(tensor.GuaranteedBaseOffsetAlignment, _ALIGNMENT),
    )
