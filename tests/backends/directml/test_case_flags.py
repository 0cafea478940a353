"""The tags of a case, such as `half-precision`, add flags with which DirectML compiles it.

The tested code is in `dmlconf/backends/directml/dispatch/case_flags.py` and
`dmlconf/backends/directml/dispatch/operators.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from dmlconf.backends.directml.api import dml
from dmlconf.backends.directml.api.dml import DML_EXECUTION_FLAGS
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.dispatch.case_flags import flags_of
from dmlconf.backends.directml.dispatch.operators import OperatorCache
from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.plans import plan
from tests.backends.directml.com import FakeCom
from tests.bundled import bundled

E_FAIL = -2147467259
"""The HRESULT 0x80004005 as a signed number, which CompileOperator returns."""


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (("captured",), DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS),
        (
            ("captured", "half-precision", "descriptors-volatile"),
            DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS
            | DML_EXECUTION_FLAGS.ALLOW_HALF_PRECISION_COMPUTATION
            | DML_EXECUTION_FLAGS.DESCRIPTORS_VOLATILE,
        ),
    ],
)
def test_tags_add_flags_to_those_of_the_backend(
    tags: tuple[str, ...], expected: DML_EXECUTION_FLAGS
) -> None:
    seen: list[int] = []
    operator = FakeCom(dml.IDML_OPERATOR)

    def create(desc: int, riid: Any, result: Any) -> int:
        result[0] = operator.address
        return 0

    def compile_operator(address: int, flags: int, riid: Any, result: Any) -> int:
        seen.append(flags)
        return E_FAIL

    device = FakeCom(dml.IDML_DEVICE, CreateOperator=create, CompileOperator=compile_operator)
    cache = OperatorCache(device, DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS)
    case = valid_case(next(bundled("tile/documented.yaml").plan()))
    with pytest.raises(HResultError):
        cache.get(plan(case), flags_of(tags))
    assert seen == [expected]
