"""The circumstance `evicted`.

Only memory of Direct3D is evicted: in the Wine lab, IDMLDevice::Evict of an initialiser or a
compiled operator never returned (measured on DirectML 1.15.4).
"""

from __future__ import annotations

import ctypes

from dmlconf.backends.circumstances import Dispatch
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.circumstances.bench import Bench
from dmlconf.backends.directml.circumstances.work import Site
from dmlconf.cases.model import Case

__all__ = ["exercise"]


def exercise(bench: Bench, case: Case) -> list[Dispatch]:
    """Twice: write inputs, evict the site's memory, make it resident again, and dispatch."""
    site = bench.site(case)
    bench.initialize(site)

    def evict() -> None:
        for call in ("Evict", "MakeResident"):
            pageable = _resources(site)
            pointers = (ctypes.c_void_p * len(pageable))(*(each.address for each in pageable))
            bench.device.d3d.call(call, len(pageable), pointers)

    seen: list[Dispatch] = []
    for step in bench.variations(site, [0, 1]):
        seen += bench.run_apart(step, evict)
    return seen


def _resources(site: Site) -> list[ComObject]:
    """Return the site's buffers; each ID3D12Resource is an ID3D12Pageable."""
    regions = site.resources.arena, site.resources.temporary, site.resources.persistent
    return [region.buffer.resource for region in regions if region is not None]
