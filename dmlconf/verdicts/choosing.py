"""Choose and count verdicts; verdicts of very large logs (`LazyVerdicts`) are made when chosen."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from dmlconf.verdicts.verdict import Execution, Identity, Judgement, Status, Verdict

__all__ = ["LazyVerdicts", "cases", "failing", "statuses", "where", "with_reason"]

Part = TypeVar("Part", Identity, Judgement, Execution)
"""One of the three parts of a verdict."""

_NAMES: Final = {Identity: "identity", Judgement: "judgement", Execution: "execution"}


class LazyVerdicts(Sequence[Verdict]):
    """Verdicts that are made on demand, as in `dmlconf.run_log.columns`."""

    @abstractmethod
    def where(self, part: type[Part], wanted: Callable[[Part], bool]) -> Sequence[Verdict]:
        """See the function `where`."""

    @abstractmethod
    def cases(self) -> Iterator[str]:
        """See the function `cases`."""

    @abstractmethod
    def statuses(self) -> Counter[Status]:
        """See the function `statuses`."""

    @abstractmethod
    def by_operator(self) -> Mapping[str, Sequence[Verdict]]:
        """See `dmlconf.verdicts.grouping`."""


def where(
    verdicts: Iterable[Verdict], part: type[Part], wanted: Callable[[Part], bool]
) -> Sequence[Verdict]:
    """Return the verdicts with a wanted part, in their order.

    Args:
        wanted: returns whether a part is wanted. It must not read the identifier, facts, figures,
            output digests, seconds and sequence, which differ from case to case.
    """
    if isinstance(verdicts, LazyVerdicts):
        return verdicts.where(part, wanted)
    name = _NAMES[part]
    return [verdict for verdict in verdicts if wanted(getattr(verdict, name))]


def cases(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Yield the identifier of each verdict's case."""
    if isinstance(verdicts, LazyVerdicts):
        return verdicts.cases()
    return (verdict.case for verdict in verdicts)


def failing(verdicts: Iterable[Verdict]) -> Sequence[Verdict]:
    """Return the verdicts that fail the run."""
    return where(verdicts, Judgement, lambda judgement: judgement.status.fails_run)


def with_reason(verdicts: Iterable[Verdict]) -> Sequence[Verdict]:
    """Return the verdicts that have a reason."""
    return where(verdicts, Judgement, lambda judgement: judgement.reason is not None)


def statuses(verdicts: Iterable[Verdict]) -> Counter[Status]:
    """Return how many verdicts have each status."""
    if isinstance(verdicts, LazyVerdicts):
        return verdicts.statuses()
    return Counter(verdict.status for verdict in verdicts)
