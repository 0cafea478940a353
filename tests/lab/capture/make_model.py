"""Make the captured models: `pip install onnx`, then `python tests/lab/capture/make_model.py`.

The models need no kernels that the lab lacks. ONNX Runtime's DirectML provider runs the Resize of
antialias.onnx as a RESAMPLE3 with Antialiased, which gives other results than ONNX defines.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main() -> None:
    write_net()
    write_words()
    write_attention()
    write_antialias()


def write_words() -> None:
    weights = drawn({"e": (11, 5), "w": (1, 9, 5), "r": (1, 9, 3), "g": (3, 4)}, np.float32)
    node = helper.make_node
    graph = helper.make_graph(
        [
            node("Gather", ["e", "words"], ["embedded"], name="/embed"),
            node("GRU", ["embedded", "w", "r"], ["all", "last"], name="/gru", hidden_size=3),
            node("Squeeze", ["last", "zero"], ["state"], name="/state"),
            node("MatMul", ["state", "g"], ["scores"], name="/head"),
            node("LogSoftmax", ["scores"], ["y"], name="/scores"),
        ],
        "words",
        [helper.make_tensor_value_info("words", TensorProto.INT64, [7, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [*weights, numpy_helper.from_array(np.array([0]), "zero")],
    )
    save(graph, 17, "words.onnx")


def write_attention() -> None:
    weights = drawn({"q": (7, 3), "k": (7, 3), "v": (7, 3)}, np.float16)
    node = helper.make_node
    graph = helper.make_graph(
        [
            *(node("MatMul", ["x", name], [f"x{name}"], name=f"/{name}") for name in "qkv"),
            node("Transpose", ["xk"], ["t"], name="/transpose", perm=[0, 2, 1]),
            node("MatMul", ["xq", "t"], ["scores"], name="/scores"),
            node("Softmax", ["scores"], ["shares"], name="/softmax"),
            node("MatMul", ["shares", "xv"], ["y"], name="/sum"),
        ],
        "attention",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1, 5, 7])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [1, 5, 3])],
        weights,
    )
    save(graph, 17, "attention.onnx")


def drawn(shapes: Mapping[str, tuple[int, ...]], dtype: type) -> list[TensorProto]:
    random = np.random.default_rng(1)
    return [
        numpy_helper.from_array((random.random(shape) - 0.5).astype(dtype), name)
        for name, shape in shapes.items()
    ]


def write_antialias() -> None:
    node = helper.make_node
    graph = helper.make_graph(
        [
            node("Neg", ["x"], ["a"], name="/neg"),
            node("Resize", ["a", "", "", "s"], ["r"], name="/resize", mode="linear", antialias=1),
            node("Relu", ["r"], ["y"], name="/relu"),
        ],
        "antialias",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 3, 3])],
        [numpy_helper.from_array(np.array([1, 1, 3, 3]), "s")],
    )
    save(graph, 19, "antialias.onnx")


def save(graph: onnx.GraphProto, opset: int, name: str) -> None:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    onnx.save(model, str(Path(__file__).with_name(name)))


def write_net() -> None:
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
    save(graph, 17, "net.onnx")


if __name__ == "__main__":
    main()
