"""Time the reference on layers of networks, against ONNX Runtime's CPU provider.

`python -m benchmarks.models [--small] [OPERATOR ...]`, in an environment that has onnx and
onnxruntime too. With `--small`, one layer of each operator is timed in one pair, and the exit code
is 1 if the runtime refuses one or results differ.
Each layer is the FLOAT32 case of an entry in `cases/*/model.yaml`; both compute it in one process,
in turn, with as many threads as OPENBLAS_NUM_THREADS says. Times are processor time, because the
machine may be shared. If results differ by more than rounding, the line says so and does not count,
because then the work is not the same.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import onnxruntime

from benchmarks.model_graphs import graph_of
from benchmarks.onnx_runtime import THREADS, beside, same, session_of, timed
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case
from dmlconf.reference.evaluation import evaluate
from dmlconf.resources import cases_directory

ROUNDS: Final = 5
QUICK: Final = 0.1
"""Calls of up to this many seconds are timed ROUNDS times in pairs; slower ones three times."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A layer's time on the reference and on the runtime.

    Attributes:
        operator: the operator.
        case: the case's identifier.
        milliseconds: the reference's time.
        times: the reference's time divided by the runtime's.
    """

    operator: str
    case: str
    milliseconds: float
    times: float


def layers(operators: Sequence[str], *, one_each: bool = False) -> Iterator[Case]:
    """Yield a FLOAT32 case of each layer, or of the first one of each operator.

    Args:
        operators: those whose layers are timed; all if empty.
        one_each: whether to yield only the first layer of each operator.
    """
    files = sorted(cases_directory().glob("*/model.yaml"))
    seen = set()
    for planned in load_suite(files).plan():
        template = planned.template
        wanted = not operators or template.operator_name in operators
        key = template.operator_name if one_each else template.identifier
        if not wanted or key in seen or template.identifier.endswith("-exact"):
            continue
        case = build(planned)
        tensors = case.outputs().values()
        if all(str(tensor.DataType) == "FLOAT32" for tensor in tensors):
            seen.add(key)
            yield case


NO_GRAPH: Final = "has no ONNX graph here"


def ratio(case: Case, rounds: int) -> Ratio | str:
    """Return the reference's time relative to the runtime's, or why there is no valid ratio."""
    arrays = case.inputs()
    found = graph_of(case, arrays)
    if found is None:
        return NO_GRAPH
    model, feeds = found
    try:
        session = session_of(model)
        theirs = session.run(None, feeds)[0]
    except Exception as error:  # The runtime's errors have their own types, all Exceptions.
        return f"ONNX Runtime: {str(error).splitlines()[0][:100]}"
    ours = next(iter(evaluate(case, arrays).values()))
    if not same([ours], [theirs]):
        return "the results differ"
    if timed(lambda: evaluate(case, arrays)) > QUICK:
        rounds = min(3, rounds)
    run = session.run
    seconds, times = beside(lambda: evaluate(case, arrays), lambda: run(None, feeds), rounds)
    return Ratio(case.operator_name, case.identifier, 1000 * seconds, times)


def main(arguments: Sequence[str]) -> int:
    """Print a line for each layer, and the geometric means of each operator and of all."""
    small = "--small" in arguments
    operators = [name for name in arguments if name != "--small"]
    print(f"ONNX Runtime {onnxruntime.__version__}, NumPy {np.__version__}, {THREADS} threads")
    ratios: dict[str, list[Ratio]] = {}
    wrong = 0
    for case in layers(operators, one_each=small):
        found = ratio(case, 1 if small else ROUNDS)
        if isinstance(found, str):
            wrong += found != NO_GRAPH
            print(f"{case.identifier:<110}  {found}", flush=True)
            continue
        ratios.setdefault(found.operator, []).append(found)
        print(f"{found.case:<110}{found.milliseconds:>9.2f} ms{found.times:>8.2f}", flush=True)
    print()
    print(f"{'geometric means':<32}{'layers':>8}{'ms':>11}{'mean':>8}{'worst':>8}")
    everything = [one for many in ratios.values() for one in many]
    for name, many in [*sorted(ratios.items()), ("all", everything)]:
        times = [one.times for one in many]
        spent = sum(one.milliseconds for one in many)
        mean, worst = statistics.geometric_mean(times), max(times)
        print(f"{name:<32}{len(many):>8}{spent:>11.0f}{mean:>8.2f}{worst:>8.2f}")
    return 1 if small and wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
