"""Learning the conditional field of `denoiser.learned` from photographs. Needs the extra `train` (torch, onnx)."""
