"""Time the reference functions against ONNX Runtime and onnx's reference evaluator.

`python -m benchmarks.operators [--small] [FAMILY ...]`, in an environment that has onnx and
onnxruntime too. With `--small` each workload runs once on the reference and on ONNX Runtime, which
takes seconds and times nothing; the exit code is 1 if results differ.
Everything runs in one process, in turn, and ratios of processor time, since the machine may be
shared, are taken pair by pair. If results differ by more than rounding, it says so, because then
the work is not the same. OPENBLAS_NUM_THREADS applies to both NumPy and ONNX Runtime.
"""

from __future__ import annotations

import math
import statistics
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import onnx
import onnx.helper as make
import onnxruntime
from onnx.reference import ReferenceEvaluator

from benchmarks.layers import layers
from benchmarks.onnx_runtime import beside, same, session_of, timed
from benchmarks.windows import windows
from benchmarks.workloads import Workload, workloads
from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array

ROUNDS: Final = 11
SLOW: Final = 0.3
"""A peer whose calls take this many seconds or more is called only once."""


def reference(workload: Workload) -> Callable[[], Any]:
    """Return a call of the reference function; fields that are not given are None."""
    function, entry = reference_function(workload.operator), operator(workload.operator)
    names = [field.name for field in entry.fields if field.name not in entry.count_fields]
    fields = dict.fromkeys(names) | dict(workload.arguments)
    return lambda: function(**fields)


def model(workload: Workload) -> tuple[Any, dict[str, Array]]:
    """Return an ONNX model of a single node, and its inputs."""
    names = [f"input{i}" if array is not None else "" for i, array in enumerate(workload.feeds)]
    feeds = {
        name: array for name, array in zip(names, workload.feeds, strict=True) if array is not None
    }
    outputs = [f"output{i}" for i in range(workload.outputs)]
    node = make.make_node(workload.node, names, outputs, **workload.attributes)
    inputs = [
        make.make_tensor_value_info(name, make.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    graph = make.make_graph(
        [node], workload.node, inputs, [make.make_empty_tensor_value_info(o) for o in outputs]
    )
    whole = make.make_model(graph, opset_imports=[make.make_opsetid("", 21)], ir_version=10)
    return onnx.shape_inference.infer_shapes(whole), feeds


def agrees(workload: Workload) -> bool:
    """Return whether the reference and ONNX Runtime have the same results, and say so if not."""
    whole, feeds = model(workload)
    ours = reference(workload)()
    arrays = ours if isinstance(ours, tuple) else (ours,)
    if same(arrays, session_of(whole).run(None, feeds)):
        return True
    print(f"  {workload.name}: the results differ")
    return False


def ratios(workload: Workload) -> tuple[float, float, float]:
    """Return the reference's milliseconds, and their ratio to each peer's time."""
    ours = reference(workload)
    whole, feeds = model(workload)
    session, evaluator = session_of(whole), ReferenceEvaluator(whole)
    agrees(workload)
    taken = statistics.median(timed(ours) for _ in range(ROUNDS))
    return (
        1000 * taken,
        multiple(ours, lambda: session.run(None, feeds)),
        multiple(ours, lambda: evaluator.run(None, feeds)),
    )


def multiple(ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """Return ours as a multiple of theirs, the median of pairs; NaN if theirs fails."""
    try:
        first = timed(theirs)
    except (TypeError, ValueError):
        return math.nan
    if first > SLOW:
        return timed(ours) / first
    return beside(ours, theirs, ROUNDS)[1]


def mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean of the ratios that are not NaN."""
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    return statistics.geometric_mean(known) if known else math.nan


def of(families: Sequence[str]) -> Iterator[Workload]:
    """Yield the workloads of some families, or of all."""
    for workload in chain(workloads(), layers(), windows()):
        if families and workload.family not in families:
            continue
        if workload.operator in operator_names():
            yield workload
        else:
            print(f"{workload.name:<62}  the catalogue does not have it")


def small(families: Sequence[str]) -> int:
    """Compare the results of each workload once; return 1 if any differ."""
    agreements = [agrees(workload) for workload in of(families)]
    print(f"{len(agreements)} workloads, {agreements.count(False)} with other results")
    return 0 if all(agreements) else 1


def main(families: Sequence[str]) -> int:
    """Print a line for each workload, and the geometric means of each family and of all."""
    warnings.simplefilter("ignore")
    if "--small" in families:
        return small([family for family in families if family != "--small"])
    print(
        f"ONNX Runtime {onnxruntime.__version__}, onnx {onnx.__version__}, "
        f"NumPy {np.__version__}; times of the reference as multiples of the peers'"
    )
    print(f"{'':<62}{'ms':>9}{'Runtime':>10}{'evaluator':>11}")
    means: dict[str, list[tuple[float, float]]] = {}
    for workload in of(families):
        taken, runtime, evaluator = ratios(workload)
        means.setdefault(workload.family, []).append((runtime, evaluator))
        print(f"{workload.name:<62}{taken:>9.2f}{runtime:>10.2f}{evaluator:>11.3f}", flush=True)
    print()
    everything = [pair for pairs in means.values() for pair in pairs]
    for family, pairs in [*means.items(), ("all", everything)]:
        runtime, evaluator = (mean(column) for column in zip(*pairs, strict=True))
        print(f"{family:<62}{len(pairs):>9}{runtime:>10.2f}{evaluator:>11.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
