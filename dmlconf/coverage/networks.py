"""Count a suite's layers of published networks, which the notes of model cases name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.selection import MODEL_TAG

__all__ = ["NetworkCoverage", "network_coverage"]

_NOTE: Final = re.compile(r"(?P<network>[^,]+), (?P<layer>.+?) \([^()]*\)(: integers.*)?\.?$")
"""The note of a model case: the network, the layer, and in parentheses the source of the sizes.

Text that begins with `: integers` may follow.
"""


@dataclass(frozen=True, slots=True)
class NetworkCoverage:
    """The coverage of one network by a suite.

    Attributes:
        layers: how many layers the suite has; a layer of two operators counts twice.
        operators: how many operators these layers use.
    """

    network: str
    layers: int
    operators: int
    cases: int


def network_coverage(plan: Iterable[PlannedCase]) -> list[NetworkCoverage]:
    """Return the coverage of the networks in the notes of cases tagged `model`, sorted by name."""
    layers: dict[str, set[tuple[str, str]]] = {}
    cases: Counter[str] = Counter()
    for planned in plan:
        template = planned.template
        note = _NOTE.match(template.about.note or "")
        if MODEL_TAG not in template.tags or note is None:
            continue
        network = note["network"]
        layers.setdefault(network, set()).add((template.operator_name, note["layer"]))
        cases[network] += 1
    return [
        NetworkCoverage(
            name, len(layers[name]), len({operator for operator, _ in layers[name]}), cases[name]
        )
        for name in sorted(layers, key=str.casefold)
    ]
