"""Cases in one submission to DirectML (a batch) share no memory; a large case runs alone.

Operators that are compiled alike have equal keys, and no others have.

The tested code is in `dmlconf/backends/directml/dispatch/batch.py`,
`dmlconf/backends/directml/dispatch/operators.py`, `dmlconf/backends/directml/dispatch/placement.py`
and `dmlconf/cases/plans.py`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from dmlconf.backends.directml.api.dml import BINDING_ALIGNMENT, DML_BINDING_PROPERTIES
from dmlconf.backends.directml.api.vtable import IUNKNOWN, ComObject
from dmlconf.backends.directml.dispatch import batch as limits
from dmlconf.backends.directml.dispatch.batch import Batch, Prepared
from dmlconf.backends.directml.dispatch.operators import CompiledOperator
from dmlconf.backends.directml.dispatch.placement import GUARD, placement_of
from dmlconf.cases.plans import plan
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import DataType
from tests.backends.directml.cases import case, tile


def prepared(
    elements: int = 2,
    *,
    temporary: int = 0,
    persistent: int = 0,
    descriptors: int = 3,
    alignment: int = 0,
) -> Prepared:
    """Return a compiled TILE that needs so many bytes of memory and so many descriptors.

    Its initialiser needs 7 bytes of temporary memory and no descriptor.
    """
    result = tile(
        InputTensor=TensorDesc(
            DataType.FLOAT32, (elements,), GuaranteedBaseOffsetAlignment=alignment
        )
    )
    never_called = ComObject(IUNKNOWN, 1)
    needs = DML_BINDING_PROPERTIES(descriptors, temporary, persistent)
    compiled = CompiledOperator(never_called, never_called, needs, DML_BINDING_PROPERTIES(0, 7, 0))
    return Prepared(result, compiled, placement_of(plan(result)))


def filled(*cases: Prepared) -> Batch:
    """Return a batch that accepted all these cases."""
    batch = Batch()
    assert [batch.add(each) for each in cases] == [True] * len(cases)
    return batch


def test_no_two_cases_share_memory_or_descriptors() -> None:
    batch = filled(
        prepared(3, temporary=5, persistent=300),
        prepared(70, temporary=1000, descriptors=9),
        prepared(1, persistent=1, alignment=1024),
        prepared(5, temporary=6, persistent=8),
    )
    for before, after in pairwise(batch):
        compiled = before.prepared.compiled
        assert before.arena + before.prepared.placement.span <= after.arena
        assert before.temporary + compiled.temporary_size <= after.temporary
        assert before.persistent + compiled.persistent_size <= after.persistent
        assert before.descriptor + sum(compiled.descriptors) <= after.descriptor
    last = batch.members[-1]
    assert batch.arena == last.arena + last.prepared.placement.span
    assert batch.temporary == last.temporary + last.prepared.compiled.temporary_size
    assert batch.persistent == last.persistent + last.prepared.compiled.persistent_size
    assert batch.descriptors == last.descriptor + sum(last.prepared.compiled.descriptors)


def test_memory_is_aligned_for_desc_and_directml() -> None:
    batch = filled(
        *(prepared(n, temporary=n, persistent=n, alignment=1 << n) for n in range(1, 13))
    )
    for member in batch:
        alignment = member.prepared.placement.alignment
        assert alignment >= GUARD
        assert member.arena % alignment == 0
        assert member.temporary % BINDING_ALIGNMENT == 0
        assert member.persistent % BINDING_ALIGNMENT == 0
    assert max(member.prepared.placement.alignment for member in batch) == 1 << 12


def test_initialiser_and_operator_get_memory_and_a_descriptor() -> None:
    assert prepared(temporary=3).compiled.temporary_size == 7
    assert prepared(temporary=30).compiled.temporary_size == 30
    assert prepared(descriptors=0).compiled.descriptors == (1, 1)


@pytest.mark.parametrize(
    "large",
    [
        {"elements": limits.MOST_BYTES // 4},
        {"temporary": limits.MOST_BYTES},
        {"persistent": limits.MOST_BYTES},
        {"descriptors": limits.MOST_DESCRIPTORS},
    ],
    ids=lambda large: next(iter(large)),
)
def test_a_case_that_is_too_large_runs_alone(large: dict[str, int]) -> None:
    batch = filled(prepared())
    arena = batch.arena
    assert not batch.add(prepared(**large))
    assert (len(batch), batch.arena) == (1, arena)
    alone = filled(prepared(**large))
    assert not alone.add(prepared())
    assert len(alone) == 1


def test_operator_key_depends_on_desc_but_not_in_place() -> None:
    in_place = tile({"OutputTensor": "InputTensor"})
    assert plan(tile()).key() == plan(in_place).key()
    others = [
        tile(Repeats=(3,)),
        tile(InputTensor=TensorDesc(DataType.FLOAT16, (2,))),
        tile(InputTensor=TensorDesc(DataType.FLOAT32, (2,), (1,))),
        tile(InputTensor=TensorDesc(DataType.FLOAT32, (2,), None, ("OWNED_BY_DML",))),
    ]
    assert len({plan(each).key() for each in (tile(), *others)}) == 5


def test_operator_keys_distinguish_signs_of_zero_and_nan() -> None:
    values = (0.0, -0.0, 1, float("nan"), -float("nan"))
    keys = {plan(case("TILE", Nested={"Value": value})).key() for value in values}
    assert len(keys) == 5
    same = [plan(case("TILE", Nested={"Value": float("nan")})).key() for _ in range(2)]
    assert same[0] == same[1]


def test_cases_beyond_the_work_limit_share_no_batch() -> None:
    half = replace(prepared(), work=limits.MOST_WORK // 2)
    batch = filled(half, half)
    assert not batch.add(replace(prepared(), work=1))
    assert batch.work == limits.MOST_WORK
    alone = filled(replace(prepared(), work=100 * limits.MOST_WORK))
    assert not alone.add(prepared(1))
    assert len(alone) == 1
