"""The second assignment's graphs and executor: the first one's, with the ops of networks, on arrays of a device.

Shapes, memory and kernels of a run are planned by Runnel's compiler, for each set of shapes that is fed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import autodiff
import numpy as np
import tvm
from autodiff import Node, gradients, matmul_op, oneslike_op, zeroslike_op

import runnel as rn
import runnel.declarative as dg
from dlsys.tvm_op import mean_cross_entropy
from runnel.nn import functional as F

__all__ = [
    "Executor",
    "Node",
    "Variable",
    "broadcastto_op",
    "gradients",
    "matmul_op",
    "oneslike_op",
    "reducesumaxiszero_op",
    "relu_gradient_op",
    "relu_op",
    "softmax_func",
    "softmax_op",
    "softmaxcrossentropy_op",
    "zeroslike_op",
]


def Variable(name: str) -> Node:
    """Declare an input of float32 and any shape."""
    return autodiff.Variable(name, "float32")


def reducesumaxiszero_op(node_A: Node) -> Node:
    return rn.sum(node_A, axis=0)


def broadcastto_op(node_A: Node, node_B: Node) -> Node:
    """``node_A`` repeated in the shape of ``node_B``."""
    return dg.call(lambda a, b: rn.broadcast_to(a, b.shape), node_A, node_B, name="broadcastto")


def softmax_op(node_A: Node) -> Node:
    return F.softmax(node_A, 1)


def relu_op(node_A: Node) -> Node:
    return F.relu(node_A)


def relu_gradient_op(node_A: Node, node_B: Node) -> Node:
    """The gradient by ``node_A`` of its relu, where ``node_B`` is the one by the result."""
    return rn.where(node_A > 0, node_B, 0.0)


@rn.custom_vjp
def cross_entropy(logits: Any, labels: Any) -> Any:
    """The mean over a batch, with the gradient of the sum: this is how the course defines its op, and why its learning
    rates are small."""
    return mean_cross_entropy(logits, labels)


def _forward(logits: Any, labels: Any) -> Any:
    return mean_cross_entropy(logits, labels), (logits, labels)


def _backward(saved: Any, g: Any) -> Any:
    logits, labels = saved
    return (F.softmax(logits, 1) - labels) * g, rn.zeros_like(labels)


cross_entropy.defvjp(_forward, _backward)


def softmaxcrossentropy_op(node_A: Node, node_B: Node) -> Node:
    """The cross-entropy of logits and labels, both [N, C]."""
    return dg.call(cross_entropy, node_A, node_B, name="softmaxcrossentropy")


def softmax_func(y: np.ndarray) -> np.ndarray:
    """The softmax of each row, in NumPy."""
    powers = np.exp(y - y.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


class Executor:
    """Computes nodes on arrays of the device ``ctx``."""

    def __init__(self, eval_node_list: Sequence[Node], ctx: tvm.Context | None = None) -> None:
        if ctx is not None and ctx != tvm.cpu(0):
            raise ValueError(f"nodes are computed on {tvm.cpu(0)}; received {ctx}")
        self.eval_node_list = list(eval_node_list)
        self._session = dg.Session(self.eval_node_list[0].operation.graph)

    def run(self, feed_dict: Mapping[Node, tvm.NDArray], convert_to_numpy_ret_vals: bool = False) -> list[Any]:
        """The values of the nodes in their order, as device arrays or as NumPy's."""
        values = self._session.run(self.eval_node_list, {x: value.variable for x, value in feed_dict.items()})
        return [x.numpy() if convert_to_numpy_ret_vals else tvm.array(x) for x in values]
