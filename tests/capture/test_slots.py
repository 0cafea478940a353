"""For each operator of an initialiser, the buffers that an application binds are read.

The tested code is in `dmlconf/capture/hooking/slots.py`.
"""

from __future__ import annotations

import ctypes

from dmlconf.backends.directml.api.dml import (
    DML_BINDING_DESC,
    DML_BINDING_TYPE,
    DML_BUFFER_ARRAY_BINDING,
    DML_BUFFER_BINDING,
)
from dmlconf.capture.hooking.slots import Range, ranges


def test_each_operator_of_an_initialiser_has_its_own_inputs() -> None:
    # Each buffer has an address, an offset and a size.
    buffers = (DML_BUFFER_BINDING * 2)(DML_BUFFER_BINDING(0, 0, 0), DML_BUFFER_BINDING(96, 16, 64))
    array = DML_BUFFER_ARRAY_BINDING(2, ctypes.addressof(buffers))
    alone = DML_BUFFER_BINDING(128, 0, 64)
    # The first of three operators has no input, the second has two, and the third has one.
    descs = (DML_BINDING_DESC * 3)(
        DML_BINDING_DESC(DML_BINDING_TYPE.NONE, 0),
        DML_BINDING_DESC(DML_BINDING_TYPE.BUFFER_ARRAY, ctypes.addressof(array)),
        DML_BINDING_DESC(DML_BINDING_TYPE.BUFFER, ctypes.addressof(alone)),
    )
    bound = ranges(3, ctypes.addressof(descs))
    assert bound == ((None,), (None, Range(96, 16)), (Range(128, 0),))


def test_no_bindings_have_no_ranges() -> None:
    descs = (DML_BINDING_DESC * 1)(DML_BINDING_DESC(DML_BINDING_TYPE.NONE, 0))
    assert ranges(3, None) == ()
    assert ranges(0, ctypes.addressof(descs)) == ()
