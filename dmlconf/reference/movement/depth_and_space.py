"""Operators that move elements between the channels and the height and width of a tensor."""

from __future__ import annotations

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["depth_to_space1", "space_to_depth1"]


def space_to_depth1(
    InputTensor: Array, OutputTensor: TensorDesc, BlockSize: int, Order: str
) -> Array:
    """InputTensor {N, C, H * B, W * B} -> OutputTensor {N, C * B * B, H, W}; FLOAT64 to FLOAT16,
    INT64 to INT8, UINT64 to UINT8

    Return the tensor with the elements of each block as channels.

    B is BlockSize. The element in row y and column x of a block of channel c goes to channel
    `(y * B + x) * C + c` in the order DEPTH_COLUMN_ROW, and to `(c * B + y) * B + x` in
    COLUMN_ROW_DEPTH.

    Source: the page of DML_SPACE_TO_DEPTH1_OPERATOR_DESC.
    """
    batch, channels, height, width = InputTensor.shape
    block = BlockSize
    parts = InputTensor.reshape(batch, channels, height // block, block, width // block, block)
    order = (0, 3, 5, 1, 2, 4) if Order == "DEPTH_COLUMN_ROW" else (0, 1, 3, 5, 2, 4)
    return parts.transpose(order).reshape(OutputTensor.Sizes)


def depth_to_space1(
    InputTensor: Array, OutputTensor: TensorDesc, BlockSize: int, Order: str
) -> Array:
    """InputTensor {N, C * B * B, H, W} -> OutputTensor {N, C, H * B, W * B}; FLOAT64 to FLOAT16,
    INT64 to INT8, UINT64 to UINT8

    Return the tensor with channels as elements of blocks: the inverse of SPACE_TO_DEPTH1 with the
    same Order.

    Source: the page of DML_DEPTH_TO_SPACE1_OPERATOR_DESC.
    """
    batch, channels, height, width = InputTensor.shape
    block = BlockSize
    depth = channels // block**2
    if Order == "DEPTH_COLUMN_ROW":
        parts = InputTensor.reshape(batch, block, block, depth, height, width)
        moved = parts.transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = InputTensor.reshape(batch, depth, block, block, height, width)
        moved = parts.transpose(0, 1, 4, 2, 5, 3)
    return moved.reshape(OutputTensor.Sizes)
