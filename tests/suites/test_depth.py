"""Depth is no limit: chains of ten times as many ops as Python calls may nest run forward and backward, are freed,
traced, checked and hashed."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np

import runnel as rn
from runnel.graph import hashing, verifier
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind
from runnel.tensor import tensor as tensors, tracing

DEPTH = 10 * sys.getrecursionlimit()


def chain(x: rn.Tensor, depth: int) -> rn.Tensor:
    for _ in range(depth):
        x = x + 1.0
    return x


def test_forward_backward_and_release() -> None:
    limit = sys.getrecursionlimit()
    x = rn.tensor([1.0, 2.0], requires_grad=True)
    y = chain(x, DEPTH)
    first = weakref.ref(y._record.inputs[0])
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [1.0, 1.0] and y.tolist() == [DEPTH + 1.0, DEPTH + 2.0]
    assert sys.getrecursionlimit() == limit
    del y
    gc.collect()
    assert first() is None, "a chain nobody holds is freed, link after link"


def test_a_consumed_tape_is_released() -> None:
    x = rn.tensor([1.0], requires_grad=True)
    y = chain(x, 1000)
    first = weakref.ref(y._record.inputs[0])
    y.backward()
    gc.collect()
    assert first() is None and x.grad.tolist() == [1.0]


def traced(depth: int) -> Graph:
    trace = tracing.Trace(tensors.serial_now())
    with tracing.activate(trace):
        x = tensors.symbolic(trace.input(rn.asarray([1.0]).aval, InputKind.ARGUMENT, "x"))
        return trace.graph([tensors.node_of(chain(x, depth), trace)], {}, "deep")


def test_tracing_checking_and_hashing() -> None:
    graph = traced(DEPTH)
    assert sys.getrecursionlimit() < DEPTH
    verifier.verify(graph)
    assert len(graph.values) == DEPTH + 2
    assert hashing.structural_hash(graph) != hashing.structural_hash(traced(100))
    assert hashing.structural_hash(traced(99)) != hashing.structural_hash(traced(100))
    assert hashing.structural_hash(traced(100)) == hashing.structural_hash(traced(100))
    del graph
    gc.collect()


def test_backward_of_a_wide_sum_is_linear() -> None:
    x = rn.tensor(np.ones(3, np.float32), requires_grad=True)
    parts = [x * float(i % 7) for i in range(3000)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    total.sum().backward()
    assert x.grad.tolist() == [float(sum(i % 7 for i in range(3000)))] * 3
