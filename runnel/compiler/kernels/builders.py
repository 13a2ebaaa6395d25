"""Ops that are kernels of their own, by the form of their lowering rule: how each becomes calls.

The planner asks here for every node that fuses with no other. A builder is given the node, its operands and the places
of its results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from runnel.compiler.kernels.attention import attention, attention_gradient
from runnel.compiler.kernels.convolution import winograd_gradient
from runnel.compiler.kernels.copies import alone, padding
from runnel.compiler.kernels.host_calls import host
from runnel.compiler.kernels.indexing import buckets
from runnel.compiler.kernels.operands import Operands
from runnel.compiler.kernels.places import Call, Place
from runnel.compiler.kernels.sorting import sorting
from runnel.graph.node import Value
from runnel.loops.rules import (
    Attention,
    AttentionGradient,
    Buckets,
    BucketSums,
    Concatenation,
    Gather,
    HostCall,
    Padding,
    ScatterAdd,
    Sort,
    WinogradGradient,
)

Builder = Callable[[Value, Operands, list[Place]], list[Call]]

BUILDERS: Final[dict[type, Builder]] = {
    Attention: attention.attention,
    AttentionGradient: attention_gradient.attention_gradient,
    Concatenation: lambda node, x, results: alone.concatenation(node, x.lie, results[0]),
    Padding: lambda node, x, results: padding.padding(node, x.lie(node.inputs[0]), x.lie(node.inputs[1]), results[0]),
    HostCall: host.call,
    Gather: lambda node, x, results: alone.gather(node, x.dense, results[0]),
    ScatterAdd: lambda node, x, results: alone.scatter_add(node, x.dense, results[0]),
    Buckets: lambda node, x, results: [buckets.sort(node, x.dense(node.inputs[0]), results[0])],
    BucketSums: lambda node, x, results: [
        buckets.sums(node, x.dense(node.inputs[0]), x.dense(node.inputs[2]), results[0])
    ],
    Sort: sorting.sort,
    WinogradGradient: winograd_gradient.winograd_gradient,
}
