"""Run an ONNX model in two providers of ONNX Runtime, and find where they begin to differ."""
