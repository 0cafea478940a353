"""The memory of a case's allowances is freed as soon as nothing refers to them.

The tested code is in `dmlconf/permitted/allowance.py`.
"""

from __future__ import annotations

import gc
import weakref

from dmlconf.cases.building.build import build
from dmlconf.permitted.allowance import CaseAllowances
from tests.bundled import bundled


def test_allowances_are_freed_without_garbage_collection() -> None:
    """Collections are rare in a run, and allowances of a large case take hundreds of megabytes."""
    planned = next(bundled("gemm/matrix.yaml").plan())
    allowances = CaseAllowances(build(planned))
    assert allowances.of("OutputTensor").errors is not None
    right = weakref.ref(allowances.right["OutputTensor"])
    gc.disable()
    try:
        del allowances
        assert right() is None
    finally:
        gc.enable()
