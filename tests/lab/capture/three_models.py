"""An application that prints the bits of the outputs of three models, fused or `unfused`."""

import sys
from pathlib import Path

import numpy as np

if Path("packages").is_dir():
    sys.path.insert(0, str(Path("packages").resolve()))

import onnxruntime

INPUTS = {
    "net": {"x": (np.arange(243) % 17 / 17).astype(np.float32).reshape(1, 3, 9, 9)},
    "words": {"words": np.array([3, 1, 4, 1, 5, 9, 2]).reshape(7, 1)},
    "attention": {"x": (np.arange(35) % 13 / 13 - 0.5).astype(np.float16).reshape(1, 5, 7)},
}


def main() -> None:
    for name, inputs in INPUTS.items():
        options = onnxruntime.SessionOptions()
        options.enable_mem_pattern = False
        options.add_free_dimension_override_by_name("batch", 1)
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        fusion = "1" if "unfused" in sys.argv else "0"
        options.add_session_config_entry("ep.dml.disable_graph_fusion", fusion)
        provider = ("DmlExecutionProvider", {"device_id": "0"})
        session = onnxruntime.InferenceSession(f"{name}.onnx", options, providers=[provider])
        print(name, session.run(None, inputs)[0].tobytes().hex())


main()
