"""The backend `onnxruntime` runs cases on the CPU provider, and says what it cannot express."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from dmlconf.backends.onnxruntime.backend import create, limit_of
from dmlconf.backends.protocol import BackendError, Declined, Outputs, Rejection
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.reference.evaluation import evaluate
from dmlconf.run_log.log import read_log
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.backends.finding_checks import COMPANIONS
from tests.cli.process import dmlconf_here
from tests.excuses.test_deviations import case

pytestmark = pytest.mark.runtimes

CASES: Final = Path(__file__).resolve().parents[3] / "cases"


def verdicts(folder: Path, *arguments: str) -> tuple[int, tuple[Verdict, ...]]:
    """Run `dmlconf run` in a folder, and return its exit code and its verdicts."""
    log = folder / "run.jsonl"
    done = dmlconf_here(folder, "run", *arguments, "--quiet", "--log", str(log))
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, read_log(log).verdicts


def test_operators_of_each_family_pass(tmp_path: Path) -> None:
    names = ("GEMM", "CONVOLUTION", "GATHER", "JOIN", "LSTM", "TOP_K1", "RESAMPLE2", "TILE")
    options = [option for name in names for option in ("-o", name)]
    code, all_of_them = verdicts(
        tmp_path, *options, "--tag", "documented", "--tag", "questions", "-b", "onnxruntime"
    )
    wrong = [v.case for v in all_of_them if v.status.fails_run]
    passed = Counter(v.operator for v in all_of_them if v.status is Status.PASSED)
    assert passed.keys() == set(names)
    assert not wrong
    assert code == 0


def test_a_graph_is_one_model(tmp_path: Path) -> None:
    code, all_of_them = verdicts(
        tmp_path, "-o", "GRAPHS", "-k", "chains", "--without-tag", "model", "-b", "onnxruntime"
    )
    counts = Counter(v.status for v in all_of_them)
    assert counts[Status.PASSED] > 0.5 * len(all_of_them), counts
    assert code in (0, 1)


def test_invalid_descs_and_gradients_are_not_expressible(tmp_path: Path) -> None:
    _, all_of_them = verdicts(tmp_path, "-o", "RESAMPLE_GRAD", "-b", "onnxruntime")
    assert {v.status for v in all_of_them} == {Status.UNSUPPORTED}
    kinds = {v.reason.kind for v in all_of_them if v.reason}
    assert kinds == {ReasonKind.NOT_EXPRESSIBLE}


def test_an_operator_of_the_optimiser_that_does_not_load_is_a_failure_and_no_limit(
    tmp_path: Path,
) -> None:
    # ONNX Runtime makes its own QLinearAveragePool of this model, and refuses that.
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
        ("Node (Relu) is not supported, only supports what is implemented", False),
        ("INVALID_ARGUMENT : zero point must be finite", False),
        ("FAIL : OpenVINO\nCALLBACK HAS THROWN: Unknown activation function: softsign", True),
        ("FAIL : OpenVINO\nCALLBACK HAS THROWN: Unknown activation function: relu", False),
    ],
)
def test_only_named_limits_of_the_models_own_operators_are_not_expressible(
    message: str, declined: bool
) -> None:
    assert bool(limit_of(message, {"Relu"}, "CPUExecutionProvider")) is declined


def test_a_limit_is_reported_by_the_line_of_the_message_that_names_it() -> None:
    said = "OpenVINOExecutionProvider says that it does not support it: Axis > 1 isn't supported"
    text = "FAIL : dequantize_linear.cpp:237:\nAxis > 1 isn't supported\n\n"
    assert limit_of(text, {"DequantizeLinear"}, "OpenVINOExecutionProvider") == said


def test_both_levels_of_optimisation_are_variants(tmp_path: Path) -> None:
    _, all_of_them = verdicts(
        tmp_path, "-o", "TILE", "--tag", "documented", "-b", "onnxruntime:optimization=both"
    )
    assert {tuple(v.judgement.variants) for v in all_of_them} == {
        ("optimization=all", "optimization=off")
    }


def test_a_batch_as_one_model_gives_the_outcomes_of_its_cases_alone() -> None:
    files = [CASES / "gather" / "boundary.yaml", CASES / "gather" / "invalid.yaml"]
    cases = [valid_case(each) for each in load_suite(files).plan()]
    alone, together = (list(create(f"batches={each}").run(cases)) for each in ("off", "on"))
    kinds = Counter(type(each) for each in together)
    assert kinds.keys() == {Outputs, Rejection, Declined}, kinds  # One refusal fails the model.
    for one, other in zip(alone, together, strict=True):
        assert type(one) is type(other)
        if isinstance(one, Outputs) and isinstance(other, Outputs):
            assert one.arrays.keys() == other.arrays.keys()
            for name, array in one.arrays.items():
                assert array.tobytes() == other.arrays[name].tobytes()
        else:
            assert replace(one, seconds=0) == replace(other, seconds=0)


class Shifted:
    """A session that gives the data of an unread input to the next one, as OpenVINO's provider."""

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


def test_cases_that_disturb_others_of_their_batch_run_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = create("batches=on")
    opened = backend._opened
    monkeypatch.setattr(backend, "_opened", lambda model: Shifted(opened(model), model))
    unread = case("graphs/wiring/unused-input[DataType=FLOAT32,Step=0]")
    others = [case(each) for each in COMPANIONS]
    first, *rest = backend.run([unread, *others])
    for of, outcome in zip(others, rest, strict=True):
        assert isinstance(outcome, Outputs)
        [array] = outcome.arrays.values()
        [right] = evaluate(of).values()
        assert array.tobytes() == right.tobytes()
    assert isinstance(first, Outputs)
    assert first.arrays["y"].tobytes() != evaluate(unread)["y"].tobytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("provider=CUDAExecutionProvider", "CUDAExecutionProvider"),
        ("optimization=most", "optimization"),
        ("opset=new", "opset=new"),
        ("batches=some", "some"),
        ("fast", "fast"),
    ],
)
def test_a_provider_or_option_that_is_not_there_is_an_error(options: str, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        create(options)


def test_a_provider_that_leaves_its_work_to_the_cpu_is_noticed() -> None:
    # ONNX Runtime comes with this provider, which takes no node and would fall back silently.
    with pytest.raises(BackendError, match="fallback to CPU EP has been explicitly disabled"):
        create("provider=AzureExecutionProvider")


def test_a_crash_costs_one_case_its_verdict(tmp_path: Path) -> None:
    _, all_of_them = verdicts(
        tmp_path, "-o", "ELEMENT_WISE_DIVIDE", "--tag", "boundary", "-b", "onnxruntime"
    )
    crashed = [v.case for v in all_of_them if v.status is Status.BROKEN]
    # The lowest integer divided by -1 ends the process in some releases (docs/findings.md).
    assert set(crashed) <= {"element_wise_divide/boundary/int32-smallest-by-minus-one"}
    assert sum(v.status is Status.PASSED for v in all_of_them) > 10
