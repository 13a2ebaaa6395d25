"""TinyFlow's interface: its ops, state and gradients, and small twins of its examples."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel.compat.tinyflow as tf
from runnel.compat.tinyflow import base, datasets
from runnel.core.errors import GradientError, GraphError, RunnelError
from runnel.declarative import Graph

CONFIGS = ["cpu", "gpu fusion"]


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    base._INITIAL.clear()
    with Graph():
        yield


@pytest.fixture(params=CONFIGS)
def session(request: pytest.FixtureRequest) -> tf.Session:
    return tf.Session(config=request.param)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow])
def test_elementwise(op: Callable[[Any, Any], Any], session: tf.Session) -> None:
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    a, b = rng().uniform(1, 2, (2, 3)), rng().uniform(1, 2, (2, 3))
    for z, expected in ((op(x, y), op(a, b)), (op(x, 10), op(a, 10)), (op(10, y), op(10, b))):
        np.testing.assert_allclose(session.run(z, feed_dict={x: a, y: b} if z is not None else {}), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh"])
def test_functions(name: str, session: tf.Session) -> None:
    x = tf.placeholder(tf.float32)
    a = rng().uniform(0.5, 2, (2, 3))
    np.testing.assert_allclose(session.run(getattr(tf, name)(x), {x: a}), getattr(np, name)(a), rtol=1e-5)


def test_softmax_and_matmul(session: tf.Session) -> None:
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    a, b = rng().standard_normal((2, 3)), rng().standard_normal((3, 4))
    product = session.run(tf.matmul(x, y) * 4, {x: a, y: b})
    np.testing.assert_allclose(product, a @ b * 4, rtol=1e-5)
    e = np.exp(a)
    np.testing.assert_allclose(session.run(tf.nn.softmax(x), {x: a}), e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_reductions(name: str, session: tf.Session) -> None:
    x = tf.placeholder(tf.float32)
    reduce = getattr(tf, f"reduce_{name}")
    a = rng().uniform(size=(2, 4, 8, 7))
    some = session.run(reduce(x, reduction_indices=[1, 3]), {x: a})
    np.testing.assert_allclose(some, getattr(a, name)(axis=(1, 3)), rtol=1e-5)
    whole = session.run(reduce(x), {x: a})
    assert whole.shape == (1,) and whole.dtype == np.float32
    assert f"{whole.item():.4f}" == f"{getattr(a, name)():.4f}"


def test_argmax_and_equal(session: tf.Session) -> None:
    x, label = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    a = rng().uniform(size=(700, 10))
    place = session.run(tf.argmax(x, 1), {x: a})
    assert place.dtype == np.float32
    np.testing.assert_array_equal(place, a.argmax(1))
    right = tf.reduce_mean(tf.equal(tf.argmax(x, 1), label))
    assert session.run(right, {x: a, label: np.where(np.arange(700) < 70, a.argmax(1), -1)}).item() == pytest.approx(
        0.1
    )


def test_padding(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32)
    a = rng().standard_normal((5, 4, 6))
    padded = tf.pad(tf.pad(x, dim=1, pad=-3), dim=1, pad=2)
    np.testing.assert_allclose(session.run(padded, {x: a}), np.pad(a, ((0, 0), (3, 2), (0, 0))), rtol=1e-6)


def test_gradients(session: tf.Session) -> None:
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    a, b = rng().standard_normal((2, 3)), rng().standard_normal((2, 3))
    feeds = {x: a, y: b}
    by_x, by_y = tf.gradients(x + y, [x, y])
    np.testing.assert_array_equal(session.run(by_x, feeds), np.ones((2, 3)))
    np.testing.assert_array_equal(session.run(by_y, feeds), np.ones((2, 3)))
    np.testing.assert_array_equal(session.run(tf.gradients(x * 14, [x])[0], {x: a}), np.full((2, 3), 14))
    np.testing.assert_array_equal(
        session.run(tf.gradients(-tf.reduce_sum(x) * 14, [x])[0], {x: a}), -np.full((2, 3), 14)
    )
    mean = session.run(tf.gradients(-tf.reduce_mean(x) * 14, [x])[0], {x: a})
    np.testing.assert_allclose(mean, np.full((2, 3), -14 / 6), rtol=1e-6)
    by_x, by_y = tf.gradients(tf.matmul(x, y) * 4, [x, y])
    feeds = {x: a, y: b.T}
    np.testing.assert_allclose(session.run(by_x, feeds), np.ones((2, 2)) @ b * 4, rtol=1e-5)
    np.testing.assert_allclose(session.run(by_y, feeds), a.T @ np.ones((2, 2)) * 4, rtol=1e-5)
    with pytest.raises(GradientError, match="do not depend on"):
        tf.gradients(x * 2, [y])


def test_state(session: tf.Session) -> None:
    first, second = tf.Variable(tf.ones(shape=[2, 3])), tf.Variable(tf.zeros(shape=[2, 3]))
    assert session.run(tf.initialize_all_variables()) is None
    np.testing.assert_array_equal(session.run(first), np.ones((2, 3)))
    both = tf.group(tf.assign(first, tf.zeros([2, 3])), tf.assign(second, tf.ones([2, 3])))
    session.run(both)
    np.testing.assert_array_equal(session.run(first), np.zeros((2, 3)))
    np.testing.assert_array_equal(session.run(second), np.ones((2, 3)))
    late = tf.Variable(tf.ones([1]), name="late")
    with pytest.raises(GraphError, match=r"'late'.* has no value"):
        session.run(late)
    session.run(tf.assign(late, tf.zeros([1])))
    session.run(tf.initialize_all_variables())  # the list was emptied: only "late" is initialized
    assert session.run(late).item() == 1
    np.testing.assert_array_equal(session.run(second), np.ones((2, 3)))
    with pytest.raises(TypeError, match="takes a symbol"):
        tf.Variable(np.ones(2))  # type: ignore[arg-type]


def test_lists_come_back_as_lists(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32)
    nothing = tf.group(x * 2)
    value, none = session.run([x + 1, nothing], {x: np.ones(2)})
    np.testing.assert_array_equal(value, [2, 2])
    assert none is None


def test_results_of_one_element_are_printed_as_numbers(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32)
    total = 0.0
    for _ in range(2):
        loss, both = session.run([tf.reduce_sum(x), x], {x: np.array([1.5, 2.0])})
        total += loss
    assert "%g" % (total / 2) == "3.5" and f"{loss}" == "[3.5]"
    assert type(both) is np.ndarray
    with pytest.raises((TypeError, ValueError)):
        float(loss + both)


def digits(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of 28×28 pixels with a bright row, which is the label."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 10, count)
    images = generator.uniform(0, 0.3, (count, 1, 28, 28)).astype(np.float32)
    images[np.arange(count), 0, 2 * labels + 4] += 0.7
    return images, labels.astype(np.float32)


@pytest.mark.parametrize("explicit", [True, False])
def test_logistic_regression(explicit: bool, session: tf.Session) -> None:
    images, labels = digits(200)
    x, y_ = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
    w = tf.Variable(tf.zeros([784, 10]))
    y = tf.nn.softmax(tf.matmul(x, w))
    loss = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
    if explicit:
        step: Any = tf.assign(w, w - 0.5 * tf.gradients(loss, [w])[0])
    else:
        step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    session.run(tf.initialize_all_variables())
    feeds = {x: images.reshape(-1, 784), y_: np.eye(10)[labels.astype(int)]}
    for _ in range(15):
        session.run(step, feed_dict=feeds)
    accuracy = tf.reduce_mean(tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1)))
    assert session.run(accuracy, feed_dict=feeds).item() > 0.95


def initialized(session: tf.Session, loss: Any, known: dict[Any, list[int]], stdev: float) -> dict[str, list[int]]:
    shapes, steps = {}, []
    for v, name, shape in tf.infer_variable_shapes(loss, feed_dict=known):
        steps.append(tf.assign(v, tf.normal(shape, stdev)))
        shapes[name] = shape
    session.run(steps)
    session.run(tf.initialize_all_variables())
    return shapes


def test_shapes_of_parameters_are_inferred(session: tf.Session) -> None:
    x, label = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    hidden = tf.nn.relu(tf.nn.linear(x, num_hidden=30, name="fc1", no_bias=False))
    logits = tf.nn.linear(hidden, num_hidden=10, name="fc2")
    loss = tf.nn.mean_sparse_softmax_cross_entropy_with_logits(logits, label)
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with pytest.raises(ValueError, match="not sufficient information in feed_dict"):
        list(tf.infer_variable_shapes(loss, feed_dict={label: [100]}))
    shapes = initialized(session, loss, {x: [100, 784], label: [100]}, 0.05)
    assert shapes == {"fc1_weight": [30, 784], "fc1_bias": [30], "fc2_weight": [10, 30]}
    images, labels = digits(400)
    train = datasets.ArrayPacker(images.reshape(-1, 784), labels)
    losses = []
    for _ in range(5):
        total = 0.0
        for _ in range(8):
            batch, truth = train.next_batch(50)
            value, nothing = session.run([loss, step], feed_dict={x: batch, label: truth})
            total += value.item()
            assert nothing is None
        losses.append(total)
    assert losses[-1] < losses[0] / 4


@pytest.mark.suite
def test_lenet(session: tf.Session) -> None:
    x, label = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    h = tf.tanh(tf.nn.conv2d(x, num_filter=4, ksize=[1, 5, 5, 1], name="conv1", no_bias=False))
    h = tf.nn.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    h = tf.tanh(tf.nn.conv2d(h, num_filter=8, ksize=[1, 5, 5, 1], name="conv2", no_bias=False))
    h = tf.nn.flatten_layer(tf.nn.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1]))
    logits = tf.nn.linear(tf.tanh(tf.nn.linear(h, num_hidden=32, name="fc1")), num_hidden=10, name="fc2")
    loss = tf.nn.mean_sparse_softmax_cross_entropy_with_logits(logits, label)
    step = tf.train.AdamOptimizer(0.005).minimize(loss)
    shapes = initialized(session, loss, {x: [32, 1, 28, 28], label: [32]}, 0.1)
    assert shapes["conv2_weight"] == [8, 4, 5, 5] and shapes["fc1_weight"] == [32, 8 * 4 * 4]
    images, labels = digits(32)
    losses = [session.run([loss, step], feed_dict={x: images, label: labels})[0].item() for _ in range(12)]
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.suite
def test_residual_network(session: tf.Session) -> None:
    def block(x: Any, filters: int, size: int) -> Any:
        x = tf.nn.conv2d(x, num_filter=filters, ksize=[1, size, size, 1], padding="SAME")
        return tf.nn.relu(tf.nn.batch_normalization(x))

    x, label = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    h = tf.tanh(tf.nn.conv2d(x, num_filter=4, ksize=[1, 5, 5, 1], padding="SAME"))
    h = tf.nn.relu(block(h, 8, 1) + block(block(h, 8, 3), 8, 3))
    h = tf.nn.avg_pool(h, ksize=[1, 4, 4, 1], strides=[1, 2, 2, 1], padding="SAME", data_format="NCHW")
    loss = tf.nn.mean_sparse_softmax_cross_entropy_with_logits(
        tf.nn.linear(tf.nn.flatten_layer(h), num_hidden=10, name="fc1"), label
    )
    step = tf.train.AdamOptimizer(0.005).minimize(loss)
    shapes = initialized(session, loss, {x: [16, 3, 16, 16], label: [16]}, 0.1)
    assert shapes["fc1_weight"] == [10, 8 * 8 * 8]
    generator = rng()
    images, labels = generator.standard_normal((16, 3, 16, 16)), generator.integers(0, 10, 16)
    losses = [session.run([loss, step], feed_dict={x: images, label: labels})[0].item() for _ in range(12)]
    assert losses[-1] < losses[0]


def test_a_residual_network_classifies_images_that_it_has_not_seen() -> None:
    """The blocks of TinyFlow's CIFAR example, on pictures of ten kinds in noise."""

    def layer(x: Any, filters: int, stride: int) -> Any:
        x = tf.nn.conv2d(x, num_filter=filters, ksize=[1, 3, 3, 1], strides=[1, stride, stride, 1], padding="SAME")
        return tf.nn.batch_normalization(x)

    x, label = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    h = tf.nn.relu(layer(x, 8, 1))
    h = tf.nn.relu(layer(tf.nn.relu(layer(h, 8, 1)), 8, 1) + h)
    h = tf.nn.relu(layer(tf.nn.relu(layer(h, 16, 2)), 16, 1) + layer(h, 16, 2))
    h = tf.nn.avg_pool(h, ksize=[1, 4, 4, 1], strides=[1, 4, 4, 1], padding="VALID", data_format="NCHW")
    logits = tf.nn.linear(tf.nn.flatten_layer(h), num_hidden=10, name="fc1")
    loss = tf.nn.mean_sparse_softmax_cross_entropy_with_logits(logits, label)
    right = tf.reduce_mean(tf.equal(tf.argmax(logits, 1), label))
    step = tf.train.AdamOptimizer(0.01).minimize(loss)
    session = tf.Session("cpu fusion")
    initialized(session, loss, {x: [64, 3, 16, 16], label: [64]}, 0.1)
    generator = rng()
    kinds = generator.standard_normal((10, 3, 4, 4)).repeat(4, 2).repeat(4, 3)

    def drawn() -> dict[Any, Any]:
        labels = generator.integers(0, 10, 64)
        return {x: kinds[labels] + generator.standard_normal((64, 3, 16, 16)), label: labels}

    before = session.run(right, feed_dict=drawn())[0]
    for _ in range(40):
        session.run(step, feed_dict=drawn())
    assert before < 0.4 and session.run(right, feed_dict=drawn())[0] > 0.9


def test_fused_and_single_operations_give_the_same_bits() -> None:
    x = tf.placeholder(tf.float32)
    v = tf.Variable(tf.ones([3]))
    loss = tf.reduce_mean(tf.tanh(x * v) ** 2)
    step, init = tf.train.AdamOptimizer(0.1).minimize(loss), tf.initialize_all_variables()
    bits = []
    for config in CONFIGS:
        session = tf.Session(config)
        session.run(init)
        for _ in range(3):
            session.run(step, {x: np.arange(3)})
        bits.append(session.run(v).tobytes())
    assert bits[0] == bits[1]


def test_data_sets(tmp_path: Path) -> None:
    packer = datasets.ArrayPacker(np.arange(10), np.arange(10))
    assert [packer.next_batch(4)[0].tolist() for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]]
    with pytest.raises(RunnelError):
        datasets.get_mnist(folder=tmp_path)
