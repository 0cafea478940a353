"""Make net.onnx: `pip install onnx`, then `python tests/lab/capture/make_model.py`.

A small network whose tensors avoid the kernels that the lab lacks.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main() -> None:
    """Write the model next to this file."""
    random = np.random.default_rng(0)
    shapes = {"w": (5, 3, 3, 3), "b": (5,), "w2": (3, 5, 3, 3), "b2": (3,), "g": (12, 7), "h": (7,)}
    weights = [
        numpy_helper.from_array(random.random(shape, dtype=np.float32) - np.float32(0.5), name)
        for name, shape in shapes.items()
    ]
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], name="/layer1/conv", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"], name="/layer1/relu"),
        node("MaxPool", ["r"], ["p"], name="/pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p", "w2", "b2"], ["d"], name="/layer2/conv"),
        node("Sigmoid", ["d"], ["s"], name="/layer2/act"),
        node("Flatten", ["s"], ["f"], name="/flat"),
        node("Gemm", ["f", "g", "h"], ["z"], name="/fc"),
        node("Softmax", ["z"], ["y"], name="/softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 9, 9])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 7])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    onnx.save(model, str(Path(__file__).with_name("net.onnx")))


if __name__ == "__main__":
    main()
