"""Models that ONNX Runtime runs, and how they are converted for it."""
