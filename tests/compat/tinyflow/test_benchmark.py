"""benchmarks/tinyflow.py: both forms of its networks are the same network, and its steps train it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.tinyflow as tf
from runnel import declarative
from runnel.nn import functional as F

PATH = Path(__file__).resolve().parents[3] / "benchmarks" / "tinyflow.py"
pytestmark = pytest.mark.suite


@pytest.fixture(scope="module")
def benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("benchmarks_tinyflow", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("network", ["LeNet", "ResNet"])
def test_both_forms_are_one_network(network: str, benchmark: Any) -> None:
    layers, model, shape, _ = benchmark.NETWORKS[network]
    generator = np.random.default_rng(0)
    values = generator.uniform(0, 1, (2, *shape)).astype(np.float32)
    labels = np.array([3, 7])
    live = model()
    with declarative.Graph():
        x, label = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        loss = tf.nn.mean_sparse_softmax_cross_entropy_with_logits(layers(x), label)
        session = tf.Session("cpu")
        shapes = list(tf.infer_variable_shapes(loss, feed_dict={x: values.shape, label: labels.shape}))
        parameters = list(live.parameters())
        assert [tuple(shape) for _, _, shape in shapes] == [p.shape for p in parameters]
        weights = [p.numpy() for p in parameters]
        session.run([tf.assign(v, declarative.constant(w)) for (v, _, _), w in zip(shapes, weights, strict=True)])
        declared = session.run(loss, {x: values, label: labels})
    expected = F.cross_entropy(live(rn.asarray(values)), rn.asarray(labels))
    np.testing.assert_allclose(declared.item(), expected.item(), rtol=1e-4)


def test_every_way_trains(benchmark: Any) -> None:
    steps = benchmark.steps("LeNet", 2)
    assert tuple(steps) == benchmark.WAYS
    for step in steps.values():
        losses = [step() for _ in range(4)]
        assert losses[-1] < losses[0]
    times = benchmark.measured({name: lambda: None for name in steps}, 2)
    assert times.keys() == steps.keys()
