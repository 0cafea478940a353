"""ONNX's own node tests as cases of DirectML's operators, with the outputs that ONNX expects."""
