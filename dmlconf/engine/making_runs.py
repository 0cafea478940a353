"""Make a `Run`, for scripts and for commands with few options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from dmlconf.backends import registry
from dmlconf.cases.loading.loader import Suite, load_suite, require_valid
from dmlconf.cases.loading.planned import PlannedCases
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.selection import Selection, select
from dmlconf.catalogue.loader import operator_name
from dmlconf.documents.store import Entries
from dmlconf.engine.against import AUTO
from dmlconf.engine.run import How, Run
from dmlconf.engine.shards import selected
from dmlconf.resources import cases_directory
from dmlconf.workers.execution import limits_of

__all__ = ["outcomes_of", "plan_run"]


def plan_run(
    paths: Sequence[Path] = (),
    backend: str = "numpy",
    *,
    operators: Iterable[str] = (),
    cases: Iterable[str] = (),
    against: str = AUTO,
    jobs: int | None = None,
    timeout: float = 60.0,
    store: Entries | None = None,
) -> Run:
    """Return the run of the cases under some paths on a backend.

    Args:
        paths: files and folders; the bundled suite if empty.
        backend: the backend, as `dmlconf run -b` takes it.
        operators: operators of the cases to take, also as nodes of graphs; all if empty.
        cases: identifiers, names of matrices or patterns of the cases to take; all if empty.
        against: what gives expected values that cases do not state, as `--against` takes it.
        jobs: how many worker processes run at once; None lets `limits_of` choose.
        timeout: seconds that one case may take in a worker process.
        store: remembers checked files, so that they are not checked again.

    Raises:
        InvalidFilesError: a file or a case is invalid.
        UnknownOperatorError: the catalogue lacks an operator.
        BackendError: no backend has this name, or several plugins do.
    """
    names = frozenset(map(operator_name, operators))
    folders = list(paths) or [cases_directory()]
    suite = load_suite(folders, operators=names, store=store)
    selection = Selection(operators=names, identifiers=frozenset(cases))
    plan = PlannedCases(select(suite.plan(), selection))
    require_valid(suite, plan)
    name = registry.parse(backend)
    return Run(
        suite=suite,
        paths=tuple(map(str, paths)),
        suite_paths=folders,
        plan=plan,
        chosen=selected(plan),
        how=How(name, limits_of(name, jobs, timeout, len(plan))),
        against=against,
    )


def outcomes_of(suite: Suite, plan: Sequence[PlannedCase], how: How) -> Run:
    """Return a run of some cases that yields their outcomes and does not judge them."""
    return Run(
        suite=suite,
        paths=(),
        suite_paths=(),
        plan=plan,
        chosen=selected(plan),
        how=how,
        judged=False,
    )
