"""The network as an ONNX file: the graph of `network.Network`, written by hand, weights as half floats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from denoiser.files import write_bytes
from denoiser.training.network import CENTRE, LOG_STD, LOGIT, PLANE_UNIT, SIGMA_UNIT, Network, receptive_field

_OPSET = 17


class _Graph:
    """Nodes and weights as they are added; every method returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def add(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        output = name or f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def constant(self, values: Any, kind: type = np.float32) -> str:
        name = f"constant{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, kind), name))
        return name

    def weight(self, values: np.ndarray) -> str:
        """Stored with 11 bits, computed with 24: half the file, and 0.001 dB."""
        return self.add("Cast", self.constant(values, np.float16), to=TensorProto.FLOAT)

    def convolution(self, x: str, layer: Any, weight: np.ndarray | None = None) -> str:
        weight = layer.weight.detach().numpy() if weight is None else weight
        bias = self.constant(layer.bias.detach().numpy())
        size, stride = weight.shape[2], layer.stride[0]
        pads = [layer.padding[0]] * 4
        return self.add("Conv", x, self.weight(weight), bias, kernel_shape=[size] * 2, strides=[stride] * 2, pads=pads)

    def blocks(self, x: str, stack: Any) -> str:
        for block in stack:
            inside = self.add("Relu", self.convolution(x, block.first))
            x = self.add("Add", x, self.convolution(inside, block.second))
        return x

    def shuffle(self, x: str) -> str:
        return self.add("DepthToSpace", x, blocksize=2, mode="CRD")


def to_onnx(network: Network) -> bytes:
    """Inputs `planes` and `sigma`, outputs `mean`, `log_std`, `right`, `down`, all of shape (1, 3, height, width)."""
    g = _Graph()
    centred = g.add("Sub", "planes", g.constant(np.reshape(CENTRE, (1, 3, 1, 1))))
    blocks = g.add("SpaceToDepth", g.add("Div", centred, g.constant(PLANE_UNIT)), blocksize=2)
    pooled = g.add("AveragePool", "sigma", kernel_shape=[2, 2], strides=[2, 2])
    inside = g.add("Concat", blocks, g.add("Div", pooled, g.constant(SIGMA_UNIT)), axis=1)
    enter = network.enter.weight.detach().numpy()
    # torch has the four pixels of a block side by side for each plane, ONNX the three planes for each pixel
    order = [plane * 4 + pixel for pixel in range(4) for plane in range(3)] + [12, 13, 14]
    fine = g.blocks(g.convolution(inside, network.enter, enter[:, order]), network.half_down)
    middle = g.blocks(g.convolution(fine, network.to_quarter), network.quarter_down)
    coarse = g.blocks(g.convolution(middle, network.to_eighth), network.bottom)
    middle = g.add("Add", middle, g.shuffle(g.convolution(coarse, network.from_eighth)))
    middle = g.blocks(middle, network.quarter_up)
    fine = g.add("Add", fine, g.shuffle(g.convolution(middle, network.from_quarter)))
    fine = g.blocks(fine, network.half_up)
    noise = g.shuffle(g.convolution(fine, network.noise))
    g.add("Sub", "planes", g.add("Mul", "sigma", noise), name="mean")
    rest = g.shuffle(g.convolution(g.add("Relu", g.convolution(fine, network.head)), network.rest))
    parts = ["free_log_std", "free_right", "free_down"]
    g.nodes.append(helper.make_node("Split", [rest, g.constant([3, 3, 3], np.int64)], parts, axis=1))
    for part, (low, high) in zip(parts, (LOG_STD, LOGIT, LOGIT), strict=True):
        g.add("Clip", part, g.constant(low), g.constant(high), name=part.removeprefix("free_"))
    shape = [1, 3, "height", "width"]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("planes", "sigma")]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("mean", "log_std", "right", "down")]
    graph = helper.make_graph(g.nodes, "learned", inputs, outputs, g.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
    helper.set_model_props(model, {"format": "denoiser-learned", "halo": str(receptive_field(network.shape))})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def write_onnx(network: Network, path: Path) -> None:
    """To a file, whole or not at all."""
    write_bytes(path, to_onnx(network))
