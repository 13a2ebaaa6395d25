"""What is known of a tensor besides its values: leaf or computed, hooks, strides; asked in compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import CaptureWarning
from tests.compile.adversarial.worlds import without_audits


def tensors() -> list[rn.Tensor]:
    """Of one shape and dtype: plain, leaves, computed, detached; dense, transposed, sliced, repeated, turned round."""
    plain = rn.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    leaf = rn.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    with rn.no_grad():
        unrecorded = leaf * 1
    wide = rn.asarray(np.arange(12, dtype=np.float32).reshape(2, 6))
    different = [plain, leaf, leaf * 2, plain * 1, (leaf * 2).detach(), unrecorded, leaf[:], plain.mT.contiguous().mT]
    different += [wide[:, ::2], plain[:1].expand(2, 3), plain.flip(0), plain.flip(1), plain * 1]
    return [*different, *reversed(different)]


def hooked() -> list[rn.Tensor]:
    """Leaves and computed tensors, some with hooks."""
    a, b = (rn.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
    computed, other = a * 2, b * 2
    b.register_hook(lambda g: g * 10)
    other.register_hook(lambda g: g * 100)
    kept = a * 3
    kept.retain_grad()
    return [a, computed, b, other, kept, computed, a, kept, other, b]


def gradient(x: rn.Tensor) -> Any:
    return rn.autograd.grad((x * x).sum(), [x])


def gradient_left(x: rn.Tensor) -> Any:
    if not x.requires_grad:
        return x
    (x * x).sum().backward()
    return x.grad


def seen(function: Callable[[rn.Tensor], Any], x: rn.Tensor) -> Any:
    try:
        result = function(x)
    except Exception as problem:
        return type(problem), str(problem)
    results = result if isinstance(result, (list, tuple)) else (result,)
    told = [(r.tolist(), r.requires_grad, r is x) if isinstance(r, rn.Tensor) else r for r in results]
    return told, None if x.grad is None else x.grad.tolist()


@pytest.mark.filterwarnings("ignore::runnel.core.errors.CaptureWarning")
@pytest.mark.parametrize(
    ("function", "make"),
    [
        pytest.param(lambda x: x.strides, tensors, id="strides"),
        pytest.param(lambda x: (x.stride(), x.stride(1), x * 2), tensors, id="stride()"),
        pytest.param(lambda x: x * 2 if x.is_contiguous() else x * 3, tensors, id="is_contiguous"),
        pytest.param(lambda x: (x * 2).mT.is_contiguous(), tensors, id="is_contiguous of a view of a result"),
        pytest.param(lambda x: (x.mT.stride(), (x * 1).mT.strides), tensors, id="strides of views"),
        pytest.param(lambda x: (x.contiguous(), x, x.detach().contiguous()), tensors, id="contiguous"),
        pytest.param(lambda x: x * 2 if x.is_leaf else x * 3, tensors, id="is_leaf"),
        pytest.param(lambda x: ((x * 2).is_leaf, x.detach().is_leaf, x[:1].is_leaf), tensors, id="is_leaf of results"),
        pytest.param(lambda x: x * 2 if x.grad_fn is None else x * 3, tensors, id="grad_fn"),
        pytest.param(gradient_left, tensors, id="backward"),
        pytest.param(gradient, tensors, id="grad"),
        pytest.param(gradient, hooked, id="grad where hooks are"),
        pytest.param(lambda x: x.retain_grad(), hooked, id="retain_grad"),
    ],
)
def test_calls_are_those_of_eager_mode(
    function: Callable[[rn.Tensor], Any], make: Callable[[], list[rn.Tensor]]
) -> None:
    compiled = rn.compile(function)
    with without_audits():
        assert [seen(compiled, x) for x in make()] == [seen(function, x) for x in make()]


def test_contiguous_gives_a_tensor_of_its_own() -> None:
    def changed(x: rn.Tensor) -> Any:
        y = x.mT
        z, w = y.contiguous(), x.contiguous()
        z.add_(1)
        w.mul_(3)
        return x, y, z, w

    x = rn.asarray([[1.0, 2.0], [3.0, 4.0]])
    expected = [[[1, 2], [3, 4]], [[1, 3], [2, 4]], [[2, 4], [3, 5]], [[3, 6], [9, 12]]]
    for function in (changed, rn.compile(changed)):
        assert [t.tolist() for t in function(x)] == expected


def test_strides_of_arguments_are_checked_and_those_of_results_are_refused() -> None:
    argument = rn.compile(lambda x: x.stride()[0] * x)
    x = rn.asarray([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(3):
        assert argument(x).tolist() == [[2.0, 4.0], [6.0, 8.0]]
        assert argument(x.mT).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert argument.statistics["traces"] == 2
    with pytest.warns(CaptureWarning, match="how the elements of a traced tensor .* lie in memory is asked"):
        rn.compile(lambda x: (x * 2).mT.stride())(x)
