"""The backend `onnxruntime[:OPTIONS]`: runs cases as ONNX models in ONNX Runtime.

    onnxruntime                                     the CPU provider
    onnxruntime:provider=DmlExecutionProvider       another provider
    onnxruntime:optimization=off                    graphs not optimised; `basic`, `extended` and
                                                    `all` (the default) optimise more and more, and
                                                    `both` gives the variants `all` and `off`
    onnxruntime:opset=18                            the version of ONNX's operator set (default 21)
    onnxruntime:batches=on                          a batch of cases as one model; the default of
                                                    every provider but the CPU's
    onnxruntime:provider=X,device_id=0              other options are the provider's own

If another provider than the CPU's does not take a node, the CPU's may not take it instead, and the
case is declined.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dmlconf.backends.errors import OptionError
from dmlconf.backends.numpy.backend import HIGHEST_LEVEL
from dmlconf.backends.options import choose, split_options, variants_of
from dmlconf.backends.protocol import (
    BackendError,
    Breakdown,
    BreakdownKind,
    Capabilities,
    Declined,
    Environment,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.cases.model import Case
from dmlconf.extras import install_command
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.translation.program import NotExpressibleError, Program, Step, TensorType, together
from dmlconf.translation.translate import translated

if TYPE_CHECKING:
    import onnx
    import onnxruntime

__all__ = ["OPTION_WORDS", "OnnxRuntimeBackend", "create", "limit_of", "variants"]

OPTION_WORDS: Final = (
    "provider=",
    "optimization=off",
    "optimization=both",
    "opset=",
    "batches=off",
    "batches=on",
)

CPU: Final = "CPUExecutionProvider"
_OPSET: Final = 21
_LEVELS: Final[Mapping[str, str]] = {
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_CHOICES: Final[Mapping[str, tuple[str, str]]] = {"optimization": ("all", "off")}
"""The options that may be `both`, with the values of the two variants."""

_NO_KERNEL: Final = re.compile(
    r"(?:Could not find an implementation|Failed to find kernel) for (\w+)\("
)
_NO_TYPE: Final = re.compile(
    r"Type 'tensor\((\w+)\)' of input parameter .*? of operator \((\w+)\) .*? is invalid"
)
_LIMITS: Final = re.compile(
    r"Non per-tensor quantization is not supported"
    r"|\w+ : .*\b(?:scale|zero point) must be a scalar or 1D tensor of size 1"
    r"|\w+ : weight zero point must be a scalar, 1D tensor of size 1, or"
    r"|MatmulInteger\w* : [Bb] zero point is not valid"
    r"|'(?:Linear|Cubic)' mode only support"
    r"|Interpolate node .* only supports resize on spatial dimensions"
    r"|Axis > 1 isn't supported"
    r"|Unknown activation function: (?!relu|sigmoid|tanh)\w+|Unsupported activation function",
)
"""Messages of kernels that lack a part of their operator. An unknown activation function Relu,
Sigmoid or Tanh is not among them, since ONNX requires these.
"""
_LAST_INPUT: Final = np.array([5.25, -3.5, 7.75], np.float32)
_LAST_OUTPUT: Final = _LAST_INPUT + _LAST_INPUT
_LAST: Final = Program(
    inputs={"last/x": TensorType(DataType.FLOAT32, _LAST_INPUT.shape)},
    outputs={"last/y": TensorType(DataType.FLOAT32, _LAST_OUTPUT.shape)},
    constants={},
    steps=(Step("Add", ("last/x", "last/x"), ("last/y",)),),
)
"""A node Add at the end of a batch's model. Its output is wrong if a case disturbs later nodes; in
the OpenVINO provider, a case with an input that no node reads does so.
"""
_BEFORE_TEXT: Final = re.compile(r".*(?:was false\. |Status Message: |FAIL : )", re.DOTALL)
"""What ONNX Runtime puts before the text of a kernel's message."""

_FALLBACK: Final = "fallback to CPU EP has been explicitly disabled"


class OnnxRuntimeBackend:
    """A provider of ONNX Runtime."""

    def __init__(
        self,
        provider: str,
        options: Mapping[str, str],
        optimization: str,
        opset: int,
        batches: bool | None = None,
    ) -> None:
        """Start the provider.

        Args:
            provider: the provider's name, as ONNX Runtime spells it.
            optimization: how far ONNX Runtime optimises graphs: a key of `_LEVELS`.
            batches: whether a batch of cases is one model. None means yes for every provider but
                the CPU's, since starting a session on a device takes longer than a case.

        Raises:
            BackendError: a package is not installed, or the provider cannot be used.
        """
        self._runtime = _imported()
        self._provider = provider
        self._options = dict(options)
        self._optimization = optimization
        self._opset = opset
        self._batches = provider != CPU if batches is None else batches
        available = self._runtime.get_available_providers()
        if provider not in available:
            choose("execution provider of ONNX Runtime", provider, available)
        self._require_working_provider()

    def environment(self) -> Environment:
        """Return the runtime, the provider and what else a result may depend on."""
        import onnx

        details = {
            "provider": self._provider,
            "provider_options": self._options,
            "optimization": self._optimization,
            "opset": self._opset,
            "batches": self._batches,
            "onnx": onnx.__version__,
            "target": "onnx",
        }
        adapter = f"{self._provider}, {platform.processor() or platform.machine()}"
        version = str(self._runtime.__version__)
        return Environment("onnxruntime", version, adapter=adapter, details=details)

    def capabilities(self) -> Capabilities:
        """Return the highest feature level and every data type; ONNX may not express all cases."""
        return Capabilities(HIGHEST_LEVEL, frozenset(DataType), compiles_graphs=True)

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield the outcome of each case, in order.

        With `batches`, all cases that ONNX can express form one model. If this model fails, each
        half of the cases forms one, and so on down to single cases.
        """
        if not self._batches:
            yield from map(self._run, cases)
            return
        expressible: dict[int, Program] = {}
        outcomes: dict[int, Outcome] = {}
        for index, case in enumerate(cases):
            began = perf_counter()
            try:
                expressible[index] = translated(case, "onnx").renamed(f"{index}/")
            except NotExpressibleError as error:
                outcomes[index] = Declined(str(error), perf_counter() - began)
        outcomes |= self._run_together(cases, expressible)
        yield from (outcomes[index] for index in range(len(cases)))

    def _run_together(
        self, cases: Sequence[Case], programs: Mapping[int, Program]
    ) -> dict[int, Outcome]:
        """Return the outcomes by index; a model also fails if the output of `_LAST` is wrong."""
        indices = list(programs)
        if len(indices) < 2:
            return {index: self._run(cases[index]) for index in indices}
        program = together([*programs.values(), _LAST])
        inputs = {
            f"{index}/{name}": array
            for index in indices
            for name, array in cases[index].inputs().items()
        }
        inputs["last/x"] = _LAST_INPUT
        began = perf_counter()
        names = list(program.outputs)
        try:
            session = self._opened(self._model(program, inputs).SerializeToString())
            fed = {each.name: inputs[each.name] for each in session.get_inputs()}
            arrays = dict(zip(names, session.run(names, fed), strict=True))
        except Exception:
            arrays = {}
        if not np.array_equal(arrays.get("last/y", ()), _LAST_OUTPUT):
            half = len(indices) // 2
            parts = (indices[:half], indices[half:])
            found = [self._run_together(cases, {n: programs[n] for n in part}) for part in parts]
            return {index: each for part in found for index, each in part.items()}
        seconds = (perf_counter() - began) / len(indices)
        return {
            index: Outputs(
                {name.partition("/")[2]: arrays[name] for name in programs[index].outputs}, seconds
            )
            for index in indices
        }

    def close(self) -> None:
        """Do nothing: sessions end with their cases."""

    def _run(self, case: Case) -> Outcome:
        began = perf_counter()
        try:
            program = translated(case, "onnx")
        except NotExpressibleError as error:
            return Declined(str(error), perf_counter() - began)
        inputs = case.inputs()
        try:
            model = self._model(program, inputs)
        except NotExpressibleError as error:
            return Declined(str(error), perf_counter() - began)
        try:
            session = self._opened(model.SerializeToString())
        except MemoryError as error:
            return Breakdown(BreakdownKind.OUT_OF_MEMORY, str(error))
        except Exception as error:
            return self._refused("InferenceSession", model, error, perf_counter() - began)
        fed = {each.name: inputs[each.name] for each in session.get_inputs()}
        names = list(program.outputs)
        began = perf_counter()
        try:
            arrays = session.run(names, fed)
        except MemoryError as error:
            return Breakdown(BreakdownKind.OUT_OF_MEMORY, str(error))
        except Exception as error:
            return self._refused("Run", model, error, perf_counter() - began)
        return Outputs(dict(zip(names, arrays, strict=True)), perf_counter() - began)

    def _model(self, program: Program, inputs: Mapping[str, Array]) -> onnx.ModelProto:
        from dmlconf.backends.onnxruntime.models import model_of

        return model_of(program, self._opset, {name: inputs[name] for name in program.owned})

    def _opened(self, model: bytes) -> onnxruntime.InferenceSession:
        options = self._runtime.SessionOptions()
        level = _LEVELS[self._optimization]
        options.graph_optimization_level = getattr(self._runtime.GraphOptimizationLevel, level)
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        if self._provider != CPU:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
            options.enable_mem_pattern = False  # The DirectML provider requires it.
        providers = [(self._provider, self._options)] if self._options else [self._provider]
        # ONNX Runtime folds constants on the CPU, whatever the provider is.
        disabled = [] if self._provider == CPU else ["ConstantFolding"]
        return self._runtime.InferenceSession(
            model, options, providers=providers, disabled_optimizers=disabled
        )

    def _require_working_provider(self) -> None:
        """Raise `BackendError` if the provider does not start or sessions run on another one."""
        from onnx import TensorProto, helper

        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            [helper.make_node("Add", ["x", "x"], ["y"])],
            "start",
            [value("x", TensorProto.FLOAT, [1])],
            [value("y", TensorProto.FLOAT, [1])],
        )
        sets = [helper.make_opsetid("", self._opset)]
        model = helper.make_model(graph, opset_imports=sets)
        model.ir_version = helper.find_min_ir_version_for(sets, ignore_unknown=True)
        try:
            session = self._opened(model.SerializeToString())
        except Exception as error:
            message = f"{self._provider} does not start: {_first_line(error)}"
            raise BackendError(message) from error
        first = session.get_providers()[0]
        if first != self._provider:
            raise BackendError(
                f"{self._provider} does not start: ONNX Runtime runs {first} in its place",
                "Its libraries may be missing; a run would test another provider than you named",
            )

    def _refused(
        self, stage: str, model: onnx.ModelProto, error: Exception, seconds: float
    ) -> Declined | Rejection:
        from dmlconf.backends.onnxruntime.models import operators_of

        text = str(error)
        if reason := limit_of(text, operators_of(model), self._provider):
            return Declined(reason, seconds)
        name = type(error).__name__
        return Rejection(stage, name, seconds=seconds, message=_first_line(error))


def create(argument: str) -> OnnxRuntimeBackend:
    """Create the backend from the options after `onnxruntime:`.

    Raises:
        BackendError: an option is wrong, a package is not installed, or the provider cannot be
            used.
    """
    words, options = split_options(argument)
    if words:
        raise OptionError(f"the backend onnxruntime takes NAME=VALUE, but got {words[0]!r}")
    optimization = choose("optimization", options.pop("optimization", "all"), _LEVELS)
    opset = options.pop("opset", str(_OPSET))
    if not opset.isdecimal():
        raise OptionError(f"opset={opset}: expected a number such as {_OPSET}")
    batches = options.pop("batches", None)
    if batches is not None:
        choose("batches", batches, ("off", "on"))
    provider = options.pop("provider", CPU)
    wanted = None if batches is None else batches == "on"
    return OnnxRuntimeBackend(provider, options, optimization, int(opset), wanted)


def variants(argument: str) -> Mapping[str, str]:
    """Return the options of the two variants of `optimization=both` by label; empty without it."""
    return variants_of(argument, _CHOICES)


def limit_of(text: str, operators: Collection[str], provider: str) -> str:
    """Return the limit of ONNX or ONNX Runtime that an error reports; empty for any other error.

    A missing kernel or an unknown data type of an operator that only ONNX Runtime's optimiser added
    is no limit.

    Args:
        operators: the operators of the model, and those by which ONNX defines them.
        provider: the provider's name, for the limit's text.
    """
    kernel = _NO_KERNEL.search(text)
    if kernel and kernel[1] in operators:
        return f"{provider} has no kernel of {kernel[1]} for these data types"
    kind = _NO_TYPE.search(text)
    if kind and kind[2] in operators:
        return f"ONNX's {kind[2]} takes no tensor({kind[1]})"
    if _LIMITS.search(text):
        lines = _BEFORE_TEXT.sub("", text).splitlines()
        said = next((each for each in lines if _LIMITS.search(each)), lines[0])
        return f"{provider} says that it does not support it: {said[:200]}"
    return f"{provider} does not take all nodes" if _FALLBACK in text else ""


def _imported() -> Any:
    try:
        import onnx  # noqa: F401  # Models are built with it.
        import onnxruntime
    except ImportError as error:
        raise BackendError(
            f"the backend onnxruntime needs the packages onnx and onnxruntime: {error}",
            f"Install them with `{install_command('onnxruntime')}`",
        ) from error
    return onnxruntime


def _first_line(error: Exception) -> str:
    """Return up to 500 characters of an error's first line, or its type if it has no text.

    If that line is longer, up to 200 characters of the last line follow, if there is another.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    cut = f"{lines[0][:500]} ... {lines[-1][:200]}"
    return cut if len(lines) > 1 and len(lines[0]) > 500 else lines[0][:500]
