"""What pytest must not collect where the extra `train` is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") and find_spec("onnx") else ["denoiser/training/*"]
