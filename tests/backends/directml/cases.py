"""Small cases, for tests of how tensors are bound and descs are compiled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.model import About, Case, Location
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.graphs.model import Graph
from dmlconf.tensors.datatypes import DataType


def case(operator: str, in_place: Mapping[str, str] | None = None, **desc: Any) -> Case:
    about = About(Location(Path("case.yaml"), 1), "page")
    return Case("case", operator, desc, {}, None, (), about, in_place or {})


def tile(in_place: Mapping[str, str] | None = None, **desc: Any) -> Case:
    """Return a case of TILE; `desc` replaces fields of the default."""
    default = {
        "InputTensor": TensorDesc(DataType.FLOAT32, (2,)),
        "OutputTensor": TensorDesc(DataType.FLOAT32, (4,)),
        "RepeatsCount": 1,
        "Repeats": (2,),
    }
    return case("TILE", in_place, **{**default, **desc})


def gather(**desc: Any) -> Case:
    """Return a case of GATHER; `desc` replaces fields of the default."""
    default = {
        "InputTensor": TensorDesc(DataType.FLOAT32, (4,)),
        "IndicesTensor": TensorDesc(DataType.UINT32, (5,)),
        "OutputTensor": TensorDesc(DataType.FLOAT32, (5,)),
        "Axis": 0,
        "IndexDimensions": 1,
    }
    return case("GATHER", **{**default, **desc})


def graph_case(graph: Graph) -> GraphCase:
    about = About(Location(Path("case.yaml"), 1), "page")
    desc = {**graph.inputs, **graph.outputs}
    return GraphCase("graph", GRAPHS, desc, {}, None, (), about, graph=graph)
