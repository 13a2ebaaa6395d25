"""Methods that answer as PyTorch's do, where the function of that name in ``rn`` answers as the Array API says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import AxisError, GradientError

X = np.array([[1.0, 3.0, 3.0], [4.0, 0.0, -4.0]], np.float32)


def test_max_and_min_give_values_and_positions_along_an_axis() -> None:
    x = rn.asarray(X)
    values, indices = x.max(1)
    assert values.tolist() == [3.0, 4.0] and indices.tolist() == [1, 0] and indices.dtype is rn.int64
    assert x.min(dim=0, keepdim=True).values.shape == (1, 3) and x.min(-1).indices.tolist() == [0, 2]
    assert x.max().item() == 4.0 and x.max((0, 1)).item() == 4.0
    assert x.max(rn.zeros((2, 3))).tolist() == [[1, 3, 3], [4, 0, 0]]
    assert x.sum().max(0).indices.item() == 0
    with pytest.raises(AxisError):
        x.max(2)


def test_numpys_keywords_ask_for_values_alone() -> None:
    x = rn.asarray(X)
    assert x.max(axis=1).tolist() == [3.0, 4.0] and x.min(1, keepdims=True).tolist() == [[1.0], [-4.0]]
    assert x.sort(axis=1).tolist() == np.sort(X, 1).tolist() and rn.max(x, 1).tolist() == [3.0, 4.0]


def test_the_gradient_of_a_greatest_element_goes_to_its_position() -> None:
    x = rn.tensor(X, requires_grad=True)
    x.max(1).values.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_sort_gives_values_and_positions() -> None:
    values, indices = rn.asarray(X).sort(descending=True)
    assert values.tolist() == [[3, 3, 1], [4, 0, -4]] and indices.tolist() == [[1, 2, 0], [0, 1, 2]]
    assert rn.asarray(2.0).sort().indices.item() == 0


def test_deviations_divide_by_one_less() -> None:
    x = rn.asarray(X)
    for value, expected in (
        (x.std(), X.std(ddof=1)),
        (x.var(1), X.var(1, ddof=1)),
        (x.var(dim=1, unbiased=False), X.var(1)),
        (x.std(False), X.std()),
        (x.std(0, True, keepdim=True), X.std(0, ddof=1, keepdims=True)),
        (x.var(correction=0), X.var()),
        (rn.std(x), X.std()),
    ):
        np.testing.assert_allclose(value.numpy(), expected, rtol=1e-6)


def test_norms_comparisons_and_choices() -> None:
    x = rn.asarray(X)
    np.testing.assert_allclose(float(x.norm()), np.linalg.norm(X), rtol=1e-6)
    np.testing.assert_allclose(x.norm(p=1, dim=1).numpy(), np.abs(X).sum(1))
    assert x.equal(rn.asarray(X)) is True and x.equal(x + 1) is False and x.equal(x[0]) is False
    assert x.where(x > 0, 9.0).tolist() == [[1, 3, 3], [4, 9, 9]]
    assert x.nonzero().tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 2]] and len(x.nonzero(as_tuple=True)) == 2


def test_arrays_like_another() -> None:
    x = rn.asarray(X.astype(np.float64))
    assert x.new_zeros(2, 3).dtype is rn.float64 and x.new_ones((2,)).tolist() == [1, 1]
    assert x.new_full((2,), 7, dtype="int64").tolist() == [7, 7] and x.new_tensor([1, 2]).dtype is rn.float64
    assert x.type() == "torch.DoubleTensor" and x.type("int32").dtype is rn.int32


def test_leaves_are_told_from_what_was_computed() -> None:
    w = rn.tensor([1.0], requires_grad=True)
    assert w.is_leaf and w.grad_fn is None and rn.nn.Parameter(np.ones(1)).is_leaf and rn.ones(1).is_leaf
    assert (not (w * 2).is_leaf and "multiply" in repr((w * 2).grad_fn)) or "mul" in repr((w * 2).grad_fn)


def test_hooks_see_and_replace_gradients() -> None:
    w = rn.tensor([1.0, 2.0], requires_grad=True)
    seen: list[list[float]] = []
    y = w * 3
    y.retain_grad()
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    own = w.register_hook(lambda g: g * 10)
    after = w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (y * y).sum().backward()
    assert seen == [[6.0, 12.0], [180.0, 360.0]] and y.grad is not None and y.grad.tolist() == [6.0, 12.0]
    for each in (handle, own, after):
        each.remove()
        each.remove()
    w.grad = None
    (w * 3).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [3.0, 3.0] and len(seen) == 2
    with pytest.raises(GradientError, match="requires no gradient"):
        rn.ones(2).register_hook(print)
    with w.register_hook(lambda g: g.sum()), pytest.raises(GradientError, match="must be the same"):
        (w * 3).sum().backward()


def test_hooks_stay_with_values_and_retained_gradients_with_tensors() -> None:
    w = rn.ones(3, requires_grad=True)
    y, seen = w * 2, list[Any]()
    y.retain_grad()
    first = y.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(3)
    second = y.register_hook(lambda g: seen.append(g.tolist()))
    y[0] = 1
    (y * 2).sum().backward(retain_graph=True)
    assert seen == [[0, 2, 2], [0, 6, 6]] and y.grad.tolist() == [2, 2, 2] and w.grad.tolist() == [0, 12, 12]
    first.remove()
    second.remove()
    y.sum().backward()
    assert len(seen) == 2


def test_hooks_of_parameters_outlive_their_values() -> None:
    p = rn.nn.Parameter(np.ones(2, np.float32))
    p.register_hook(lambda g: g * 0.5)
    optimizer = rn.optim.SGD([p], lr=1.0)
    for _ in range(2):
        optimizer.zero_grad()
        (p * 2).sum().backward()
        assert p.grad is not None and p.grad.tolist() == [1.0, 1.0]
        optimizer.step()
    assert p.tolist() == [-1.0, -1.0]
