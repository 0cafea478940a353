"""The backend `onnxruntime`: cases as ONNX models."""
