"""The course's first assignment, ``import autodiff as ad``: expressions, their gradients, and what runs them.

An expression is a declared tensor of ``runnel.declarative``; so are gradients, which can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import runnel as rn
import runnel.declarative as dg

Node = dg.Declared


def Variable(name: str, dtype: str = "float64") -> Node:
    """Declare an input of any shape."""
    return dg.placeholder(dtype, None, name)


def matmul_op(node_A: Node, node_B: Node, trans_A: bool = False, trans_B: bool = False) -> Node:
    """The product of two matrices, which may be transposed before."""
    return (node_A.T if trans_A else node_A) @ (node_B.T if trans_B else node_B)


def oneslike_op(node_A: Node) -> Node:
    return rn.ones_like(node_A)


def zeroslike_op(node_A: Node) -> Node:
    return rn.zeros_like(node_A)


def gradients(output_node: Node, node_list: Sequence[Node]) -> list[Node]:
    """The gradient of the sum of ``output_node`` by each of ``node_list``: zeros where it does not depend on one."""
    slopes = dg.gradients(output_node, list(node_list))
    return [zeroslike_op(x) if g is None else g for x, g in zip(node_list, slopes, strict=True)]


class Executor:
    """Computes nodes. All of them and what they need are one program, which is made at the first run."""

    def __init__(self, eval_node_list: Sequence[Node]) -> None:
        self.eval_node_list = list(eval_node_list)
        self._session = dg.Session(self.eval_node_list[0].operation.graph)

    def run(self, feed_dict: Mapping[Node, Any]) -> list[np.ndarray]:
        """The values of the nodes, in their order."""
        return [x.numpy() for x in self._session.run(self.eval_node_list, feed_dict)]
