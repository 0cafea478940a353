"""The circumstance `volatile`."""

from __future__ import annotations

from dmlconf.backends.circumstances import Dispatch
from dmlconf.backends.directml.api.dml import DML_EXECUTION_FLAGS
from dmlconf.backends.directml.circumstances.bench import Bench
from dmlconf.cases.model import Case

__all__ = ["exercise"]


def exercise(bench: Bench, case: Case) -> list[Dispatch]:
    """Record a dispatch while its table is bound to other memory; bind the right memory later.

    DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE permits new bindings until the list is submitted.
    """
    site = bench.site(case, flags=DML_EXECUTION_FLAGS.DESCRIPTORS_VOLATILE)
    other = bench.site(case, flags=DML_EXECUTION_FLAGS.DESCRIPTORS_VOLATILE)
    bench.initialize(site)
    bench.initialize(other)
    seen: list[Dispatch] = []
    for step in bench.variations(site, [0, 1]):
        site.moved(other.resources).bind()
        seen += bench.run([step], late=site.bind)
    return seen
