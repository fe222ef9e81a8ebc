"""The network as an ONNX file: the graph of `network.Network`, written by hand, weights as half floats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from denoiser.files import label, read_bytes
from denoiser.training.network import (
    CENTRE,
    DETAIL,
    LOG_STD,
    LOGIT,
    PLANE_UNIT,
    SIGMA_UNIT,
    Network,
    Shape,
    receptive_field,
)

_OPSET = 17
#: Of the pixels of 2x2 blocks: torch has the four side by side for each plane, ONNX the three planes for each pixel.
ORDER = [plane * 4 + pixel for pixel in range(4) for plane in range(3)]
_ORDER = [*ORDER, 12, 13, 14]  # and the three noise maps


class Graph:
    """Nodes and weights as they are added; every method returns the name of its output."""

    def __init__(self, network: torch.nn.Module) -> None:
        self.network = network
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def add(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """A node."""
        output = name or f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def constant(self, values: Any, kind: type = np.float32) -> str:
        """A number or an array."""
        name = f"constant{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, kind), name))
        return name

    def convolution(self, x: str, name: str, order: Sequence[int] | None = None) -> str:
        """The layer of that name; order: of its input channels. Weights are stored with 11 bits, computed with 24."""
        layer: Any = self.network.get_submodule(name)
        weight, bias = (value.detach().numpy() for value in (layer.weight, layer.bias))
        weight = weight if order is None else weight[:, order]
        self.weights.append(numpy_helper.from_array(weight.astype(np.float16), f"{name}.weight"))
        self.weights.append(numpy_helper.from_array(bias, f"{name}.bias"))
        wide = self.add("Cast", f"{name}.weight", to=TensorProto.FLOAT)
        size, stride, pads = weight.shape[2:], list(layer.stride), list(layer.padding) * 2
        return self.add("Conv", x, wide, f"{name}.bias", kernel_shape=list(size), strides=stride, pads=pads)

    def blocks(self, x: str, name: str) -> str:
        """The residual blocks of that name."""
        stack: Any = self.network.get_submodule(name)
        for number in range(len(stack)):
            inside = self.add("Relu", self.convolution(x, f"{name}.{number}.first"))
            x = self.add("Add", x, self.convolution(inside, f"{name}.{number}.second"))
        return x

    def shuffle(self, x: str) -> str:
        """Four channels become 2x2 pixels."""
        return self.add("DepthToSpace", x, blocksize=2, mode="CRD")


def to_onnx(network: Network) -> bytes:
    """Inputs `planes` and `sigma`, outputs `mean`, `log_std`, `right`, `down`, all of shape (1, 3, height, width)."""
    g = Graph(network)
    centred = g.add("Sub", "planes", g.constant(np.reshape(CENTRE, (1, 3, 1, 1))))
    blocks = g.add("SpaceToDepth", g.add("Div", centred, g.constant(PLANE_UNIT)), blocksize=2)
    pooled = g.add("AveragePool", "sigma", kernel_shape=[2, 2], strides=[2, 2])
    inside = g.add("Concat", blocks, g.add("Div", pooled, g.constant(SIGMA_UNIT)), axis=1)
    fine = g.blocks(g.convolution(inside, "enter", _ORDER), "half_down")
    middle = g.blocks(g.convolution(fine, "to_quarter"), "quarter_down")
    coarse = g.blocks(g.convolution(middle, "to_eighth"), "bottom")
    middle = g.add("Add", middle, g.shuffle(g.convolution(coarse, "from_eighth")))
    middle = g.blocks(middle, "quarter_up")
    fine = g.add("Add", fine, g.shuffle(g.convolution(middle, "from_quarter")))
    fine = g.blocks(fine, "half_up")
    noise = g.shuffle(g.convolution(fine, "noise"))
    ratio = g.add("Mul", "sigma", g.constant(1 / np.reshape(DETAIL, (1, 3, 1, 1))))
    ratio = g.add("Mul", ratio, ratio)
    more = g.add("Add", ratio, g.constant(1.0))
    anew = g.add("Mul", centred, g.add("Div", ratio, more))
    removed = g.add("Mul", g.add("Div", "sigma", g.add("Sqrt", more)), noise)
    g.add("Sub", "planes", g.add("Add", anew, removed), name="mean")
    rest = g.shuffle(g.convolution(g.add("Relu", g.convolution(fine, "head")), "rest"))
    parts = ["free_log_std", "free_right", "free_down"]
    g.nodes.append(helper.make_node("Split", [rest, g.constant([3, 3, 3], np.int64)], parts, axis=1))
    for part, (low, high) in zip(parts, (LOG_STD, LOGIT, LOGIT), strict=True):
        g.add("Clip", part, g.constant(low), g.constant(high), name=part.removeprefix("free_"))
    shape = [1, 3, "height", "width"]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("planes", "sigma")]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("mean", "log_std", "right", "down")]
    shape_text = json.dumps(network.shape._asdict())
    properties = {"format": "denoiser-learned", "halo": str(receptive_field(network.shape)), "shape": shape_text}
    return model_bytes(g, inputs, outputs, properties)


def model_bytes(g: Graph, inputs: list[Any], outputs: list[Any], properties: dict[str, str]) -> bytes:
    """A whole ONNX file of a graph."""
    graph = helper.make_graph(g.nodes, "learned", inputs, outputs, g.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
    helper.set_model_props(model, properties)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def read_onnx(path: Path) -> Network:
    """The network of a file by `to_onnx`, to go on learning from."""
    try:
        model = onnx.load_model_from_string(read_bytes(path))
        properties = {entry.key: entry.value for entry in model.metadata_props}
        sizes = json.loads(properties["shape"])
        network = Network(Shape(**{**sizes, "blocks": tuple(sizes["blocks"])}))
        stored = {w.name: numpy_helper.to_array(w).astype(np.float32) for w in model.graph.initializer}
        back = np.argsort(_ORDER)
        stored["enter.weight"] = stored["enter.weight"][:, back]
        network.load_state_dict({name: torch.from_numpy(stored[name].copy()) for name in network.state_dict()})
        if not all(bool(weights.isfinite().all()) for weights in network.parameters()):  # no step leads out of that
            raise ValueError("a weight is no number")
    except OSError:
        raise
    except Exception as error:  # protobuf, JSON, shapes: whatever a foreign file makes them say
        raise ValueError(f"{label(path)}: not a model of `denoise train` ({type(error).__name__})") from None
    return network
