"""Begin to capture when ONNX Runtime already has a device.

`late_capture.py FOLDER` prints the outputs of a session before and during the capture, and of a new
session. It writes the journal to the new folder.
"""

import sys
from pathlib import Path

import numpy as np

if Path("packages").is_dir():
    sys.path.insert(0, str(Path("packages").resolve()))

import onnxruntime

from dmlconf.capture.hooking.hooks import Capture, DataOptions
from dmlconf.capture.journal import JournalWriter


def session() -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.enable_mem_pattern = False
    options.add_free_dimension_override_by_name("batch", 1)
    provider = ("DmlExecutionProvider", {"device_id": "0"})
    return onnxruntime.InferenceSession("net.onnx", options, providers=[provider])


def output(of: onnxruntime.InferenceSession) -> str:
    values = (np.arange(243) % 17 / 17).astype(np.float32)
    return str(of.run(None, {"x": values.reshape(1, 3, 9, 9)})[0].tobytes().hex())


def main(folder: Path) -> None:
    first = session()
    print(output(first))
    folder.mkdir()
    hooks = Capture(JournalWriter(folder / "journal.jsonl"), DataOptions(folder, 3, 1 << 20))
    print(output(first), output(session()))
    hooks.end()


main(Path(sys.argv[1]))
