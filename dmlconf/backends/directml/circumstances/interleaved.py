"""The circumstance `interleaved`."""

from __future__ import annotations

from dmlconf.backends.circumstances import Dispatch
from dmlconf.backends.directml.circumstances.bench import Bench
from dmlconf.backends.directml.circumstances.lane import Lane
from dmlconf.backends.directml.circumstances.work import Work
from dmlconf.cases.model import Case

__all__ = ["exercise"]


def exercise(bench: Bench, case: Case) -> list[Dispatch]:
    """Dispatch in three ways.

    - Two sites, with no barrier between their dispatches.
    - Two queues at once, each with its own site, and with a thread that records its commands.
    - Two queues in turn, on the same site.
    """
    first, second = bench.site(case), bench.site(case)
    bench.initialize(first)
    bench.initialize(second)
    [one] = bench.variations(first, [0])
    [other] = bench.variations(second, [1])
    seen = bench.run_side_by_side([one, other])
    lanes = bench.lanes()
    seen += _recorded_at_once(
        bench, lanes, (bench.prepared([one], "a"), bench.prepared([other], "b"))
    )
    # Both queues use the same memory, so that an ignored fence shows in the results.
    works = bench.prepared([one], "a"), bench.prepared(bench.variations(first, [2]), "b")
    return seen + _in_turn(bench, lanes, works)


def _recorded_at_once(
    bench: Bench, lanes: tuple[Lane, Lane], works: tuple[Work, Work]
) -> list[Dispatch]:
    from concurrent.futures import ThreadPoolExecutor  # Most runs never need it.

    with ThreadPoolExecutor(2) as threads:
        for done in [
            threads.submit(_record, bench, lane, work)
            for lane, work in zip(lanes, works, strict=True)
        ]:
            done.result()
    for lane in lanes:
        lane.execute()
    for lane in lanes:
        lane.wait()
    return works[0].dispatches() + works[1].dispatches()


def _in_turn(bench: Bench, lanes: tuple[Lane, Lane], works: tuple[Work, Work]) -> list[Dispatch]:
    for lane, work in zip(lanes, works, strict=True):
        _record(bench, lane, work)
    lanes[0].execute()
    lanes[0].fence.delay(lanes[1].queue)
    lanes[1].execute()
    lanes[1].wait()
    return works[0].dispatches() + works[1].dispatches()


def _record(bench: Bench, lane: Lane, work: Work) -> None:
    lane.begin(bench.heap)
    bench.record(work, lane)
