"""Sessions of ONNX Runtime for an ONNX model, in its CPU provider and its DirectML provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from dmlconf.extras import install_command
from dmlconf.tensors.datatypes import Array

__all__ = [
    "ModelError",
    "OnnxRuntimeError",
    "OnnxSession",
    "OpenSession",
    "Session",
    "SessionSettings",
]

_CPU: Final = "CPUExecutionProvider"
_DIRECTML: Final = "DmlExecutionProvider"
_EXTERNAL_FOLDER: Final = "session.model_external_initializers_file_folder_path"


class ModelError(ValueError):
    """A model or its inputs cannot be read or made, or what runs the model is missing."""


class OnnxRuntimeError(Exception):
    """ONNX Runtime could not load or run a model."""


class Session(Protocol):
    """A model that is ready to run."""

    def run(self, names: Sequence[str], inputs: Mapping[str, Array]) -> Sequence[Any]:
        """Return the named outputs.

        Raises:
            OnnxRuntimeError: the model could not run.
        """
        ...


class OpenSession(Protocol):
    """Opens a session of a serialised model."""

    def __call__(self, model: bytes, /) -> Session:
        """Return the session.

        Raises:
            ModelError: what runs the model is missing.
            OnnxRuntimeError: the model could not be loaded.
        """
        ...


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How sessions of a model are made.

    Attributes:
        path: the model's file; data of weights in other files is beside it.
        dimensions: sizes, by name, of dimensions that the model leaves open.
        fused: whether the DirectML provider may make graphs of several nodes.
    """

    path: Path
    dimensions: Mapping[str, int] = field(default_factory=dict)
    fused: bool = True

    def cpu(self, model: bytes | None = None) -> OnnxSession:
        """Open a session of the CPU provider.

        Args:
            model: another form of the model, serialised; None for the file.

        Raises:
            ModelError: ONNX Runtime is missing.
            OnnxRuntimeError: the model could not be loaded.
        """
        return self._session(model, _CPU)

    def cpu_with_open_dimensions(self) -> OnnxSession:
        """Open a session of the CPU provider for the file, with all open dimensions left open.

        Raises:
            ModelError, OnnxRuntimeError: as `cpu`.
        """
        return replace(self, dimensions={}).cpu()

    def directml(self, model: bytes | None = None) -> OnnxSession:
        """Open a session of the DirectML provider, with the CPU provider for nodes that it lacks.

        Raises:
            ModelError: ONNX Runtime or its DirectML provider is missing.
            OnnxRuntimeError: the model could not be loaded.
        """
        session = self._session(model, (_DIRECTML, {"device_id": "0"}), _CPU)
        if _DIRECTML not in session.runtime.get_providers():
            raise ModelError("ONNX Runtime has no DirectML provider here")
        return session

    def _session(self, model: bytes | None, *providers: Any) -> OnnxSession:
        try:
            import onnxruntime
        except ImportError as error:
            raise ModelError(
                f"ONNX Runtime is missing ({error}); install it with: {install_command('directml')}"
            ) from error
        options = onnxruntime.SessionOptions()
        options.enable_mem_pattern = False
        options.log_severity_level = 3
        options.add_session_config_entry("ep.dml.disable_graph_fusion", str(int(not self.fused)))
        if model is not None:
            folder = str(self.path.resolve().parent)
            options.add_session_config_entry(_EXTERNAL_FOLDER, folder)
        for name, size in self.dimensions.items():
            options.add_free_dimension_override_by_name(name, size)
        source = str(self.path) if model is None else model
        try:
            # Another provider must not replace one that fails.
            session = onnxruntime.InferenceSession(
                source, options, providers=list(providers), enable_fallback=0
            )
        except Exception as error:  # ONNX Runtime raises its own kinds, which are not public.
            raise OnnxRuntimeError(_reason(error)) from error
        return OnnxSession(session)


@dataclass(frozen=True, slots=True)
class OnnxSession:
    """A session of ONNX Runtime; `runtime` is its `InferenceSession`."""

    runtime: Any

    def run(self, names: Sequence[str], inputs: Mapping[str, Array]) -> Sequence[Any]:
        """Return the named outputs.

        Raises:
            OnnxRuntimeError: the model could not run.
        """
        try:
            return list(self.runtime.run(list(names), dict(inputs)))
        except Exception as error:
            raise OnnxRuntimeError(_reason(error)) from error


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
