"""The family of each operator, such as "Matrix products and attention", for reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import operator_files

__all__ = ["OTHER", "families"]

OTHER: Final = "Other"
"""The family of an operator whose entry names none, or one that `_NAMES` lacks."""

_NAMES: Final = {
    "activation": "Activations",
    "element_wise": "Element-wise",
    "movement": "Data movement",
    "normalization": "Normalization",
    "products": "Matrix products and attention",
    "quantization": "Quantization",
    "recurrent": "Recurrent layers",
    "reduction": "Reductions",
    "regions": "Regions of interest",
    "resampling": "Resampling",
    "training": "Training",
    "windows": "Convolution and pooling",
}

_FAMILY: Final = re.compile(r"^family: ([a-z_]+)", re.MULTILINE)
_SPECIALISES: Final = re.compile(r"^specialises:\s*\{?\s*operator: ([A-Z0-9_]+)", re.MULTILINE)


@cache
def families() -> Mapping[str, str]:
    """Return the family of each operator, by name, and of graphs.

    A special case has the family of its general operator.
    """
    # Searching text is much faster than parsing YAML.
    texts = {path.stem.upper(): path.read_text("utf-8") for path in operator_files()}

    def family(name: str) -> str:
        own = _FAMILY.search(texts[name])
        if own is not None:
            return _NAMES.get(own[1], OTHER)
        special = _SPECIALISES.search(texts[name])
        return family(special[1]) if special is not None else OTHER

    return {**{name: family(name) for name in texts}, GRAPHS: "Graphs"}
