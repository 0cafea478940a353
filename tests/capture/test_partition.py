"""`dmlconf import` makes cases of graphs that ONNX Runtime wrote to files.

ONNX Runtime wrote `partition.bin` for tests/lab/capture/net.onnx.

The tested code is in `dmlconf/capture/partition.py`, `dmlconf/capture/block_cases.py` and
`dmlconf/cli/commands/writing/import_.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import flatbuffers
import pytest

from dmlconf.capture.partition import PartitionError, captured_partitions
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.graphs.model import InputEdge, OutputEdge
from tests.cli.process import dmlconf_here

FILE: Final = Path(__file__).with_name("partition.bin")


def test_a_partition_becomes_the_graph_that_is_compiled(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "import", FILE, "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "Captured 1 graph of 6 nodes: 7 cases in 6 files below out" in done.stderr
    cases = [valid_case(each) for each in load_suite([tmp_path / "out"]).plan()]
    [case] = [each for each in cases if isinstance(each, GraphCase)]
    graph = case.graph
    assert [node.name for node in graph.nodes] == [
        "r_dmlEp_0",
        "p_dmlEp_0",
        "s_dmlEp_0",
        "f_dmlEp_0",
        "y0_dmlEp_0",
        "y_dmlEp_0",
    ]
    assert list(graph.inputs) == ["x", "w", "b", "w2", "b2", "g", "gb"]
    assert InputEdge("w", "r_dmlEp_0", "FilterTensor") in graph.input_edges
    assert graph.output_edges == (OutputEdge("y_dmlEp_0", "OutputTensor", "y"),)
    convolution = graph.operator_nodes[0].desc
    assert convolution["StartPadding"] == (1, 1)
    assert convolution["Mode"] == "CROSS_CORRELATION"
    assert convolution["FusedActivation"]["operator"] == "ACTIVATION_RELU"
    gemm = graph.operator_nodes[4].desc
    assert (gemm["Alpha"], gemm["FusedActivation"]) == (1.0, None)
    assert gemm["CTensor"].Strides == (0, 0, 0, 1)


def test_option_block_nodes_limits_the_nodes_of_blocks(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "import", FILE, "-o", "out", "--block-nodes", "4")
    assert done.returncode == 0, done.stderr
    cases = [valid_case(each) for each in load_suite([tmp_path / "out" / "graphs"]).plan()]
    whole, *others = [each for each in cases if isinstance(each, GraphCase)]
    assert len(whole.graph.nodes) == 6
    assert [len(each.graph.nodes) for each in others] == [4, 2]
    assert all("block" in each.tags for each in others)
    names = [node.name for each in others for node in each.graph.nodes]
    assert sorted(names) == sorted(node.name for node in whole.graph.nodes)
    assert others[0].about.note == "4 nodes of graph 1, from r_dmlEp_0 to f_dmlEp_0."


@pytest.mark.slow
def test_truncated_files_and_most_files_with_wrong_bytes_are_refused(tmp_path: Path) -> None:
    content = FILE.read_bytes()
    path = tmp_path / "damaged.bin"
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(PartitionError, match=r"damaged\.bin"):
            captured_partitions([path])
    refused, positions = 0, range(0, len(content), 41)
    wrong_offset = (2**31 - 1).to_bytes(4, "little")
    for position in positions:
        path.write_bytes(content[:position] + wrong_offset + content[position + 4 :])
        try:
            captured_partitions([path])
        except PartitionError:
            refused += 1
    assert refused > len(positions) / 2


def _table(builder: flatbuffers.Builder, slots: dict[int, int]) -> int:
    """Write a table whose numbered fields refer to these offsets; return the table's offset."""
    builder.StartObject(max(slots) + 1)
    for slot, offset in slots.items():
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    return int(builder.EndObject())


def _vector(builder: flatbuffers.Builder, offset: int, count: int) -> int:
    """Write a list of `count` references to an offset; return the list's offset."""
    builder.StartVector(4, count, 4)
    for _ in range(count):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


@pytest.mark.slow
def test_file_with_many_references_to_one_part_is_refused(tmp_path: Path) -> None:
    # Each of 64 nodes refers to one list of 60,000 attributes.
    builder = flatbuffers.Builder(0)
    attributes = _vector(builder, _table(builder, {0: builder.CreateString("Value")}), 60_000)
    name, data_type = builder.CreateString("y"), builder.CreateString("DML_TENSOR_DATA_TYPE_INT8")
    builder.StartVector(4, 1, 4)
    builder.PrependUint32(3)
    output = _table(builder, {0: data_type, 1: int(builder.EndVector())})
    operator = builder.CreateString("DML_OPERATOR_FILL_VALUE_CONSTANT")
    desc = _table(builder, {0: operator, 2: _vector(builder, output, 1), 3: attributes})
    outputs = _vector(builder, name, 1)
    builder.StartObject(5)
    builder.PrependUint8Slot(0, 1, 0)
    builder.PrependUOffsetTRelativeSlot(1, desc, 0)
    builder.PrependUOffsetTRelativeSlot(4, outputs, 0)
    node = int(builder.EndObject())
    builder.Finish(_table(builder, {0: _vector(builder, node, 64)}))
    path = tmp_path / "shared.bin"
    path.write_bytes(builder.Output())
    with pytest.raises(PartitionError, match="more than 8 times its size together"):
        captured_partitions([path])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"\1\2\3", "it refers to byte 4, but has 3"),
        (b"not a graph at all", "it refers to byte 544,501,618, but has 18"),
        (bytes(64), "its graph has no operators"),
        (b"\4\0\0\0\xff\xff\xff\x7f", "its table at byte 4 has no list of fields"),
        (FILE.read_bytes()[:100], "it refers to byte 4,440, but has 100"),
        (
            FILE.read_bytes().replace(b"TYPE_FLOAT32", b"TYPE_FLOAT33"),
            "it has a tensor of the data type 'FLOAT33'",
        ),
        (
            # The vtable of a desc has no offset of the outputs.
            FILE.read_bytes()[:3036] + b"\0\0" + FILE.read_bytes()[3038:],
            "its node 'r_dmlEp_0' has no OutputTensor",
        ),
        (
            # The graph's output gets the name of the input x.
            FILE.read_bytes()[:36] + (4944 - 36).to_bytes(4, "little") + FILE.read_bytes()[40:],
            "no node computes its output 'x'",
        ),
    ],
    ids=["empty", "short", "text", "zeros", "vtable", "truncated", "data type", "tensor", "output"],
)
def test_damaged_or_other_file_is_refused_with_the_reason(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "model.bin").write_bytes(content)
    done = dmlconf_here(tmp_path, "import", "model.bin")
    assert done.returncode == 3
    assert done.stderr == (
        f"Error: model.bin is not a partition of ONNX Runtime, or damaged: {reason}. Expected is a "
        "file Partition_N.bin, which ONNX Runtime writes with ep.dml.enable_graph_serialization\n"
    )
