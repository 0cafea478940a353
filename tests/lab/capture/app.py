"""An application that runs a network in sessions and threads, and prints the outputs."""

import os
import sys
import threading
from pathlib import Path

import numpy as np

if Path("packages").is_dir():
    sys.path.insert(0, str(Path("packages").resolve()))

import onnxruntime


def session(fused: bool) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.enable_mem_pattern = False
    options.add_free_dimension_override_by_name("batch", 1)
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_session_config_entry("ep.dml.disable_graph_fusion", "0" if fused else "1")
    provider = ("DmlExecutionProvider", {"device_id": "0"})
    return onnxruntime.InferenceSession("net.onnx", options, providers=[provider])


def output(network: onnxruntime.InferenceSession, shift: int) -> str:
    values = (np.arange(243) + shift) % 17 / 17
    return str(
        network.run(None, {"x": values.astype(np.float32).reshape(1, 3, 9, 9)})[0].tobytes().hex()
    )


def main() -> None:
    if "unfused" in sys.argv:
        print(output(session(False), 0))
        return
    sessions = [session(True), session(False)]
    for shift in range(2):
        print(*(output(each, shift) for each in sessions))
    results = ["", ""]

    def work(index: int) -> None:
        results[index] = output(session(bool(index)), 3)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(*results, sys.argv[1:], __name__, flush=True)
    if "crash" in sys.argv:
        os._exit(77)


main()
