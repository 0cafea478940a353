"""An operator's support tables say which feature level has the data types and ranks of a desc.

The tested code is in `dmlconf/catalogue/support.py`, `dmlconf/catalogue/levels.py` and
`schemas/operators/`.
"""

from __future__ import annotations

from typing import Any

import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.levels import required_level
from dmlconf.catalogue.loader import operator, operator_from
from dmlconf.catalogue.model import FeatureLevel, Operator
from dmlconf.catalogue.support import data_types_of, ranks_of, tables_that_list
from dmlconf.documents.reader import read_document
from dmlconf.resources import schemas_directory
from dmlconf.tensors.datatypes import DataType


def tensor(data_type: str, rank: int) -> TensorDesc:
    return TensorDesc(DataType(data_type), (1,) * rank)


def gather(data: str, indices: str, rank: int) -> dict[str, Any]:
    return {
        "InputTensor": tensor(data, rank),
        "IndicesTensor": tensor(indices, rank),
        "OutputTensor": tensor(data, rank),
        "Axis": 0,
        "IndexDimensions": 1,
    }


@pytest.mark.parametrize(
    ("desc", "level"),
    [
        (gather("FLOAT32", "UINT32", 4), "1_0"),
        (gather("INT8", "UINT32", 4), "2_1"),
        (gather("FLOAT32", "INT32", 4), "3_0"),
        (gather("FLOAT32", "UINT32", 3), "3_0"),
        (gather("FLOAT16", "INT64", 8), "3_0"),
        (gather("INT64", "UINT32", 4), "4_1"),
        (gather("FLOAT64", "UINT64", 1), "4_1"),
        (gather("INT4", "UINT32", 4), None),
        (gather("FLOAT32", "UINT8", 4), None),
        (gather("FLOAT32", "UINT32", 9), None),
    ],
)
def test_required_level_is_the_lowest_listing_all_tensors(
    desc: dict[str, Any], level: str | None
) -> None:
    expected = None if level is None else FeatureLevel.parse(level)
    assert required_level(operator("GATHER"), desc) == expected


def test_required_level_considers_every_tensor_of_an_array() -> None:
    join = operator("JOIN")
    of_level_1: dict[str, Any] = {
        "InputTensors": (tensor("INT16", 4), tensor("INT16", 4)),
        "OutputTensor": tensor("INT16", 4),
    }
    assert required_level(join, of_level_1) == (1, 0)
    of_level_2 = {**of_level_1, "InputTensors": (tensor("INT16", 4), tensor("INT8", 4))}
    assert required_level(join, of_level_2) == (2, 1)
    assert (
        required_level(
            join, {**of_level_1, "InputTensors": (tensor("INT16", 4), tensor("INT4", 4))}
        )
        is None
    )


def test_required_level_is_at_least_the_operators() -> None:
    scatter = operator("SCATTER_ELEMENTS")
    assert scatter.support[-1].since < scatter.since
    desc = {
        "InputTensor": tensor("FLOAT32", 4),
        "IndicesTensor": tensor("UINT32", 4),
        "UpdatesTensor": tensor("FLOAT32", 4),
        "OutputTensor": tensor("FLOAT32", 4),
    }
    assert required_level(scatter, desc) == scatter.since


def test_tables_that_list_a_desc_come_newest_first() -> None:
    tables = tables_that_list(operator("GATHER"), gather("FLOAT32", "UINT32", 4))
    assert [str(table.since) for table in tables] == ["4_1", "3_0", "2_1", "1_0"]


def test_absent_tensors_need_no_feature_level() -> None:
    desc = {**gather("INT64", "UINT32", 4), "InputTensor": None, "OutputTensor": None}
    assert required_level(operator("GATHER"), desc) == (1, 0)


def test_a_table_counts_only_where_its_condition_holds() -> None:
    data = read_document(schemas_directory() / "operators" / "argmin.yaml").data
    newest, oldest = data["support"]
    data["support"] = [
        {**newest, "when": "AxisDirection == 'DECREASING'"},
        {**oldest, "when": "AxisDirection == 'INCREASING'"},
    ]
    argmin = operator_from(data)
    desc = {"InputTensor": tensor("FLOAT32", 1), "OutputTensor": tensor("UINT32", 1)}
    assert required_level(argmin, {**desc, "AxisDirection": "DECREASING"}) == (4, 1)
    assert required_level(argmin, {**desc, "AxisDirection": "INCREASING"}) == (3, 0)
    assert required_level(argmin, {**desc, "AxisDirection": "NEITHER"}) is None


def with_different_tables() -> Operator:
    """Return ARGMIN with two support tables that differ for InputTensor."""
    data = read_document(schemas_directory() / "operators" / "argmin.yaml").data
    newest, oldest = (
        {"ranks": [5, 6], "data_types": ["INT8", "FLOAT64"]},
        {"ranks": [1, 2], "data_types": ["FLOAT32", "INT8"]},
    )
    data["support"] = [
        {**table, "tensors": {**table["tensors"], "InputTensor": listed}}
        for table, listed in zip(data["support"], (newest, oldest), strict=True)
    ]
    return operator_from(data)


def test_data_types_are_those_of_all_tables_newest_first() -> None:
    argmin = with_different_tables()
    assert data_types_of(argmin, "InputTensor") == ("INT8", "FLOAT64", "FLOAT32")
    assert data_types_of(argmin, "NoTensor") == ()


def test_ranks_are_those_of_all_tables_ascending() -> None:
    argmin = with_different_tables()
    assert ranks_of(argmin, "InputTensor") == (1, 2, 5, 6)
    assert ranks_of(argmin, "NoTensor") == ()
