"""Limits on the files that dmlconf reads and on the expressions that it evaluates.

Each limit is far above what real files need, and keeps the cost to about a gigabyte of memory and
ten seconds.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "DEEPEST_DOCUMENT",
    "DEEPEST_JSON",
    "LARGEST_CASE_SET",
    "LARGEST_CONFIGURATION",
    "LARGEST_DOCUMENT",
    "LARGEST_EDITED_MODEL",
    "LARGEST_INTERMEDIATES",
    "LARGEST_JOURNAL",
    "LARGEST_LIST",
    "LARGEST_MODEL_INPUTS",
    "LARGEST_PARTITION",
    "LARGEST_RECORDING_MEMBER",
    "LONGEST_EXPRESSION",
    "LONGEST_IDENTIFIERS",
    "LONGEST_JOURNAL_LINE",
    "LONGEST_KEYWORDS",
    "LONGEST_LOG_LINE",
    "LONGEST_NUMBER",
    "LONGEST_RANGE",
    "LONGEST_VALUE",
    "MOST_BITS",
    "MOST_CASE_STEPS",
    "MOST_COMBINATIONS",
    "MOST_CONDITION_STEPS",
    "MOST_DOCUMENT_VALUES",
    "MOST_EXPRESSION_BYTES",
    "MOST_FOLDERS",
    "MOST_MATRIX_STEPS",
    "MOST_NODES",
    "MOST_SCOPE_STEPS",
    "MOST_SELECTION_STEPS",
]

_MIB: Final = 1 << 20

# Maximum bytes of files and of their parts.

LARGEST_DOCUMENT: Final = 4 * _MIB
"""A YAML file: cases, waivers, substrates, statements on products."""

LARGEST_CASE_SET: Final = 64 * _MIB
"""The ids of a run's cases in a history, uncompressed: 4 bytes for each of 16 million cases."""

LARGEST_CONFIGURATION: Final = 1 * _MIB
"""A file `dmlconf.toml` or `pyproject.toml`."""

LARGEST_LIST: Final = 64 * _MIB
"""The list of cases that `--cases` reads from a file or from standard input."""

LARGEST_EDITED_MODEL: Final = 512 * _MIB
"""An ONNX model that `capture --model` edits, so that runs return intermediate tensors."""

LARGEST_INTERMEDIATES: Final = 256 * _MIB
"""The intermediate tensors that one run of an edited model returns, by the sizes that ONNX infers.
A single node may have larger ones."""

LARGEST_MODEL_INPUTS: Final = 1024 * _MIB
"""All inputs together that `capture --model` reads from a file, or one input that it generates."""

LARGEST_PARTITION: Final = 64 * _MIB
"""A file `Partition_N.bin`, with a graph that ONNX Runtime gave to DirectML."""

LONGEST_LOG_LINE: Final = 16 * _MIB
"""A line of a run log."""

LARGEST_JOURNAL: Final = 256 * _MIB
"""The journal: the file with the calls that `capture` has seen."""

LONGEST_JOURNAL_LINE: Final = 16 * _MIB
"""A line of the journal, such as one graph."""

LARGEST_RECORDING_MEMBER: Final = 256 * _MIB
"""Each of the two members of a recording, the manifest and the outputs, uncompressed."""

# The most levels, characters and values in YAML, TOML and JSON.

DEEPEST_DOCUMENT: Final = 40
"""Levels of lists and mappings in YAML and TOML."""

DEEPEST_JSON: Final = 100
"""Levels of arrays and objects in JSON: logs, recordings, certificates."""

LONGEST_NUMBER: Final = 400
"""Characters of a number in YAML and JSON, and of a hexadecimal integer in TOML."""

MOST_DOCUMENT_VALUES: Final = 1_000_000
"""Values in a YAML file after its aliases are expanded."""

# The most that expressions may take: constraints, matrices, conditions, `--where` and `-k`.

LONGEST_EXPRESSION: Final = 2000
"""Characters of an expression."""

LONGEST_KEYWORDS: Final = 100_000
"""Characters of an expression of `-k`."""

LONGEST_RANGE: Final = 4096
"""Numbers that one call of `range()` or `ones()` returns, or that `right_aligned()` adds."""

LONGEST_VALUE: Final = 65_536
"""Numbers, characters and tuples in a result: `(5, 6, 7)` has 3 numbers and 1 tuple, so 4."""

MOST_BITS: Final = 1024
"""Bits of an integer."""

MOST_EXPRESSION_BYTES: Final = 128 * _MIB
"""Bytes of the tuples and texts that one evaluation makes, and of the numbers in them."""

MOST_CONDITION_STEPS: Final = 200_000
"""Steps of one evaluation of `--where`, and of any expression without a limit below. `Budget` in
`dmlconf.expressions` defines a step."""

MOST_CASE_STEPS: Final = 2_000_000
"""Steps of all expressions together that build one case."""

MOST_MATRIX_STEPS: Final = 20_000_000
"""Steps of all matrices of one file together."""

MOST_SELECTION_STEPS: Final = 20_000_000
"""Steps of `--where` on all the cases from which it selects, together."""

MOST_SCOPE_STEPS: Final = 10_000
"""Steps that conditions may take on one case: those of all waivers together, of all deviations
together, of all findings together, of each known fault, and of each limit of a substrate."""

MOST_COMBINATIONS: Final = 1_000_000
"""Combinations of one matrix before `where` filters them."""

LONGEST_IDENTIFIERS: Final = 64 * _MIB
"""Characters of all parameters in the identifiers of a file's cases."""

# The most nodes and folders.

MOST_NODES: Final = 10_000
"""Nodes of one graph."""

MOST_FOLDERS: Final = 100_000
"""Folders that a search for case files enters."""
