"""Networks in ONNX files: how they are opened and run, for the learned field and for the noise meter."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


def open_network(data: bytes) -> Any:
    """A session of onnxruntime with one thread: parts of a picture run side by side instead, for the same bytes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"], enable_fallback=0)


def run_network(session: Any, outputs: list[str], **inputs: np.ndarray) -> list[np.ndarray]:
    """The named outputs for the named inputs; the memory that was needed goes back to the system."""
    found: list[np.ndarray] = session.run(outputs, inputs, _shrinking())
    return found


@cache
def _shrinking() -> Any:
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options
