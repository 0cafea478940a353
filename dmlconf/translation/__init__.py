"""DirectML's operators as operators of other specifications: ONNX and WebNN."""
