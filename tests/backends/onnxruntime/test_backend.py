"""The backend `onnxruntime` runs cases on the CPU provider, and says what it cannot express.

The tested code is in `dmlconf/backends/onnxruntime/backend.py`,
`dmlconf/backends/onnxruntime/models.py`, `dmlconf/translation/translate.py`,
`dmlconf/excuses/deviations.py`, `dmlconf/diagnosis/bench.py` and
`dmlconf/cli/pages/show_outcome.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from dmlconf.backends.onnxruntime.backend import create, limit_of
from dmlconf.backends.protocol import (
    BackendError,
    Breakdown,
    BreakdownKind,
    Declined,
    Outputs,
    Rejection,
)
from dmlconf.backends.registry import parse
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.diagnosis.bench import open_bench
from dmlconf.reference.evaluation import evaluate
from dmlconf.run_log.log import read_log
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.backends.finding_checks import COMPANIONS
from tests.cli.process import dmlconf_here
from tests.excuses.test_deviations import case

pytestmark = pytest.mark.runtimes

CASES: Final = Path(__file__).resolve().parents[3] / "cases"


def verdicts(folder: Path, *arguments: str) -> tuple[int, Sequence[Verdict]]:
    """Run `dmlconf run` in a folder, and return its exit code and its verdicts."""
    log = folder / "run.jsonl"
    done = dmlconf_here(folder, "run", *arguments, "--quiet", "--log", str(log))
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, read_log(log).verdicts


def test_cases_of_eight_operators_pass_and_none_fails(
    tmp_path: Path,
) -> None:
    # `schemas/questions.yaml` describes the tag `questions`.
    names = ("GEMM", "CONVOLUTION", "GATHER", "JOIN", "LSTM", "TOP_K1", "RESAMPLE2", "TILE")
    options = [option for name in names for option in ("-o", name)]
    code, judged = verdicts(
        tmp_path, *options, "--tag", "documented", "--tag", "questions", "-b", "onnxruntime"
    )
    wrong = [v.case for v in judged if v.status.fails_run]
    passed = Counter(v.operator for v in judged if v.status is Status.PASSED)
    assert passed.keys() == set(names)
    assert not wrong
    assert code == 0


def test_more_than_half_of_the_chains_of_operators_pass(tmp_path: Path) -> None:
    code, judged = verdicts(
        tmp_path, "-o", "GRAPHS", "-k", "chains", "--without-tag", "model", "-b", "onnxruntime"
    )
    counts = Counter(v.status for v in judged)
    assert len(judged) > 100, "there are enough chains for a share"
    assert counts[Status.PASSED] > 0.5 * len(judged), counts
    assert code in (0, 1)


def test_cases_of_resample_grad_are_not_expressible(tmp_path: Path) -> None:
    _, judged = verdicts(tmp_path, "-o", "RESAMPLE_GRAD", "-b", "onnxruntime")
    assert {v.status for v in judged} == {Status.UNSUPPORTED}
    assert {v.reason and v.reason.kind for v in judged} == {ReasonKind.NOT_EXPRESSIBLE}


def test_model_that_the_optimiser_spoils_passes_without_it(
    tmp_path: Path,
) -> None:
    # The optimiser makes a QLinearAveragePool, which ONNX Runtime then refuses.
    name = "graphs/quantization/average-pooling[QType=UINT8]"
    for optimization in ("all", "off"):
        backend = f"onnxruntime:optimization={optimization}"
        folder = tmp_path / optimization
        folder.mkdir()
        _, [verdict] = verdicts(folder, "-o", "GRAPHS", "--case", name, "-b", backend)
        assert verdict.status is (Status.PASSED if optimization == "off" else Status.FAILED)


@pytest.mark.parametrize(
    ("message", "declined"),
    [
        ("NOT_IMPLEMENTED : Could not find an implementation for Relu(14) node", True),
        ("NOT_IMPLEMENTED : Could not find an implementation for QLinearConv(10) node", False),
        ("Type 'tensor(int8)' of input parameter x of operator (Relu) in it is invalid", True),
        ("Type 'tensor(int8)' of input parameter x of operator (QGemm) in it is invalid", False),
        ("Node (Relu) is not supported, only supports what is implemented", False),
        ("INVALID_ARGUMENT : zero point must be finite", False),
        ("FAIL : OpenVINO\nCALLBACK HAS THROWN: Unknown activation function: softsign", True),
        # OpenVINO supports relu.
        ("FAIL : OpenVINO\nCALLBACK HAS THROWN: Unknown activation function: relu", False),
    ],
)
def test_only_messages_of_known_limits_decline_a_case(message: str, declined: bool) -> None:
    assert bool(limit_of(message, {"Relu"}, "CPUExecutionProvider")) is declined


def test_reason_quotes_the_line_that_names_the_limit() -> None:
    refusal_message = (
        "OpenVINOExecutionProvider says that it does not support it: Axis > 1 isn't supported"
    )
    text = "FAIL : dequantize_linear.cpp:237:\nAxis > 1 isn't supported\n\n"
    assert limit_of(text, {"DequantizeLinear"}, "OpenVINOExecutionProvider") == refusal_message


def test_optimization_both_runs_each_case_both_ways(
    tmp_path: Path,
) -> None:
    _, judged = verdicts(
        tmp_path, "-o", "TILE", "--tag", "documented", "-b", "onnxruntime:optimization=both"
    )
    assert {tuple(v.judgement.variants) for v in judged} == {
        ("optimization=all", "optimization=off")
    }


def test_batch_as_one_model_gives_outcomes_of_single_cases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = [CASES / "gather" / "boundary.yaml", CASES / "gather" / "invalid.yaml"]
    cases = [valid_case(each) for each in load_suite(files).plan()]
    alone = list(create("batches=off").run(cases))
    backend = create("batches=on")
    opened = backend._opened
    models: list[bytes] = []

    def open_and_note_model(model: bytes) -> Any:
        models.append(model)
        return opened(model)

    monkeypatch.setattr(backend, "_opened", open_and_note_model)
    together = list(backend.run(cases))
    kinds = Counter(type(each) for each in together)
    assert kinds.keys() == {Outputs, Rejection, Declined}, kinds
    # Only a model of several cases has the output `last/y`.
    models_of_one_case = [model for model in models if b"last/y" not in model]
    assert len(models_of_one_case) < kinds[Outputs]
    for one, other in zip(alone, together, strict=True):
        assert type(one) is type(other)
        if isinstance(one, Outputs) and isinstance(other, Outputs):
            assert one.arrays.keys() == other.arrays.keys()
            for name, array in one.arrays.items():
                assert array.tobytes() == other.arrays[name].tobytes()
        else:
            assert replace(one, seconds=0) == replace(other, seconds=0)


class SessionThatShiftsInputs:
    """A session with OpenVINO's defect: an input gets the data of an unread input before it."""

    def __init__(self, session: Any, model: bytes) -> None:
        import onnx  # This module is also collected where ONNX is not installed.

        self._session = session
        self._read = {
            name for node in onnx.load_from_string(model).graph.node for name in node.input
        }

    def get_inputs(self) -> Any:
        return self._session.get_inputs()

    def run(self, names: list[str], fed: dict[str, Array]) -> Any:
        order = list(fed)
        given = iter(order)
        taken = {name: next(given) if name in self._read else name for name in order}
        shifted = {
            name: np.resize(fed[taken[name]], fed[name].shape).astype(fed[name].dtype)
            for name in order
        }
        return self._session.run(names, shifted)


def test_unused_input_does_not_spoil_its_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = create("batches=on")
    opened = backend._opened
    monkeypatch.setattr(
        backend, "_opened", lambda model: SessionThatShiftsInputs(opened(model), model)
    )
    unread = case("graphs/wiring/unused-input[DataType=FLOAT32,Step=0]")
    others = [case(each) for each in COMPANIONS]
    first, *rest = backend.run([unread, *others])
    for other, outcome in zip(others, rest, strict=True):
        assert isinstance(outcome, Outputs)
        [array] = outcome.arrays.values()
        [right] = evaluate(other).values()
        assert array.tobytes() == right.tobytes()
    assert isinstance(first, Outputs)
    assert first.arrays["y"].tobytes() != evaluate(unread)["y"].tobytes()


class SessionWithoutMemory:
    def get_inputs(self) -> list[Any]:
        return []

    def run(self, names: list[str], fed: dict[str, Array]) -> Any:
        raise MemoryError("unable to allocate the output")


def test_case_without_memory_for_outputs_breaks_down(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = create("")
    monkeypatch.setattr(backend, "_opened", lambda model: SessionWithoutMemory())
    [outcome] = backend.run([case(COMPANIONS[0])])
    assert outcome == Breakdown(BreakdownKind.OUT_OF_MEMORY, "unable to allocate the output")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("provider=CUDAExecutionProvider", "no execution provider of ONNX Runtime 'CUDAEx"),
        ("optimization=most", "there is no optimization 'most': use one of off, "),
        ("opset=new", "opset=new: expected a number such as 21"),
        ("opset=0", "CPUExecutionProvider does not start: .*invalid model"),
        ("opset=99", "CPUExecutionProvider does not start: .*FAIL"),
        ("batches=some", "there is no batches 'some': use one of off, on"),
        ("fast", "takes NAME=VALUE, but got 'fast'"),
    ],
)
def test_an_unknown_provider_option_or_value_is_an_error(options: str, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        create(options)


@pytest.mark.parametrize("batches", ["on", "off"])
def test_operator_newer_than_the_operator_set_is_declined(batches: str) -> None:
    backend = create(f"opset=13,batches={batches}")
    names = ("float32-special-numbers", "float16-special-numbers")
    newer = [case(f"activation_gelu/boundary/{name}") for name in names]
    reason = "version 13 of ONNX's operator set has no Gelu"
    found = [each.reason for each in backend.run(newer) if isinstance(each, Declined)]
    assert found == [reason, reason]


def test_fallback_to_the_cpu_is_an_error() -> None:
    # This provider takes no node.
    with pytest.raises(BackendError, match="fallback to CPU EP has been explicitly disabled"):
        create("provider=AzureExecutionProvider")


def test_only_the_lowest_integer_by_minus_one_may_crash(tmp_path: Path) -> None:
    _, judged = verdicts(
        tmp_path, "-o", "ELEMENT_WISE_DIVIDE", "--tag", "boundary", "-b", "onnxruntime"
    )
    crashed = [v.case for v in judged if v.status is Status.BROKEN]
    # This division ends the process in some releases of ONNX Runtime (docs/findings.md).
    assert set(crashed) <= {"element_wise_divide/boundary/int32-smallest-by-minus-one"}
    assert sum(v.status is Status.PASSED for v in judged) > 10, "cases ran at all"


def test_result_that_onnx_leaves_open_is_waived(tmp_path: Path) -> None:
    name = "max_pooling2/boundary/nan-is-passed-over"
    waived_case = case(name)
    with open_bench(parse("onnxruntime"), 60) as bench:
        verdict = bench.verdict(waived_case)
    assert verdict.status is Status.WAIVED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.DEVIATION
    shown = dmlconf_here(tmp_path, "show", name, "-b", "onnxruntime")
    assert shown.stdout.splitlines()[-1] == f"waived: {verdict.reason.message}"


def test_show_says_why_a_case_is_unsupported(tmp_path: Path) -> None:
    name = "max_pooling2/boundary/int32-limits"
    shown = dmlconf_here(tmp_path, "show", name, "-b", "onnxruntime")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[-1].startswith("unsupported: ONNX's MaxPool takes no ")
