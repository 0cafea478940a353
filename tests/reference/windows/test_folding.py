"""FOLD and UNFOLD are the adjoints of each other.

The tested code is in `dmlconf/reference/windows/folding.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.windows.folding import fold, unfold
from dmlconf.tensors.datatypes import DataType
from tests.properties import examples


class Axis(NamedTuple):
    """The parameters of the window along one axis; `rest` elements are left for it to move."""

    window: int
    stride: int
    dilation: int
    start: int
    end: int
    rest: int

    @property
    def size(self) -> int:
        """A size of the axis at which the window fits."""
        return max(1, self.dilation * (self.window - 1) + 1 + self.rest - self.start - self.end)

    @property
    def blocks(self) -> int:
        padded = self.size + self.start + self.end
        return (padded - self.dilation * (self.window - 1) - 1) // self.stride + 1


axes = st.builds(
    Axis,
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, 4),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(axes, min_size=1, max_size=3))
def test_folding_is_the_adjoint_of_unfolding(spatial: list[Axis]) -> None:
    window, strides, dilations, start, end, _ = zip(*spatial, strict=True)
    sizes = (2, 3, *(axis.size for axis in spatial))
    columns = (
        2,
        3 * int(np.prod(window)),
        int(np.prod([axis.blocks for axis in spatial])),
    )
    random = np.random.default_rng(1)
    tensor = random.integers(-9, 9, sizes).astype(np.int32)
    other = random.integers(-9, 9, columns).astype(np.int32)
    attributes = window, strides, dilations, start, end
    unfolded = unfold(tensor, TensorDesc(DataType.INT32, columns), *attributes)
    folded = fold(other, TensorDesc(DataType.INT32, sizes), *attributes)
    assert (unfolded * other).sum() == (tensor * folded).sum()


def test_unfold_orders_elements_by_channel_row_and_column() -> None:
    tensor = np.arange(24, dtype=np.int16).reshape(1, 2, 3, 4)
    attributes = [2, 2], [1, 2], [1, 1], [0, 0], [0, 0]
    actual = unfold(tensor, TensorDesc(DataType.INT16, (1, 8, 4)), *attributes)
    for channel, row, column, down, right in np.ndindex(2, 2, 2, 2, 2):
        value = tensor[0, channel, down + row, 2 * right + column]
        assert actual[0, 4 * channel + 2 * row + column, 2 * down + right] == value
