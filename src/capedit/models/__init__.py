"""The networks, in torch: what is trained here and exported to ONNX."""
