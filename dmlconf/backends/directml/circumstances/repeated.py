"""The circumstance `repeated`."""

from __future__ import annotations

from typing import Final

from dmlconf.backends.circumstances import Dispatch
from dmlconf.backends.directml.circumstances.bench import Bench
from dmlconf.cases.model import Case

__all__ = ["exercise"]

_TOGETHER: Final = (0, 1, 2, 0, 2)
_SINGLY: Final = (1, 0, 1, 2)
"""The variations of the dispatches' inputs, as in `Dispatch`."""


def exercise(bench: Bench, case: Case) -> list[Dispatch]:
    """Dispatch five times in one submission and four times singly."""
    site = bench.site(case)
    bench.initialize(site)
    seen = bench.run(bench.variations(site, _TOGETHER))
    for step in bench.variations(site, _SINGLY):
        seen += bench.run([step])
    return seen
