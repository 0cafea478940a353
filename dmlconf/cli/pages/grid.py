"""Format a tensor for reading: rows and columns, one block for each set of leading coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from dmlconf.documents.wording import counted
from dmlconf.tensors.datatypes import Array

__all__ = ["grid"]

MOST_COLUMNS: Final = 12
MOST_ROWS: Final = 12
MOST_BLOCKS: Final = 6


def grid(tensor: Array) -> str:
    """Return the tensor's elements: up to 6 blocks, and up to 12 rows and 12 columns of each.

    The last dimension gives the columns, the second last the rows, and each set of leading
    coordinates, such as `[0, 1]`, a block. A tensor of two dimensions or fewer has one block. A
    tensor without elements gives `(no elements)`.

    Columns are aligned within a block. Floating-point numbers have up to 9 significant digits.
    `...` marks columns, rows and blocks that are left out.
    """
    if not tensor.size:
        return "(no elements)"
    rows = tensor.reshape(-1, tensor.shape[-1]) if tensor.ndim else tensor.reshape(1, 1)
    height = tensor.shape[-2] if tensor.ndim > 1 else 1
    lines: list[str] = []
    for number, block in enumerate(_blocks(tensor)):
        if number == MOST_BLOCKS:
            lines.append(f"... {counted(len(rows) // height - MOST_BLOCKS, 'more block')}")
            break
        lines += _block(block, rows[number * height : (number + 1) * height])
    return "\n".join(lines)


def _blocks(tensor: Array) -> Iterator[tuple[int, ...]]:
    return np.ndindex(*tensor.shape[:-2])


def _block(leading: Sequence[int], rows: Array) -> list[str]:
    shown = [[_number(value) for value in row[:MOST_COLUMNS]] for row in rows[:MOST_ROWS].tolist()]
    width = max(len(text) for row in shown for text in row)
    more = "  ..." if rows.shape[1] > MOST_COLUMNS else ""
    lines = [f"[{', '.join(map(str, leading))}]"] if leading else []
    lines += ["  ".join(text.rjust(width) for text in row) + more for row in shown]
    if len(rows) > MOST_ROWS:
        lines.append(f"... {counted(len(rows) - MOST_ROWS, 'more row')}")
    return lines


def _number(value: float) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)
