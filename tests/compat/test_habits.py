"""Calls as people write them for PyTorch 2.13, with what it gives: arguments, shapes and dtypes beyond NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel.compat.torch import nn
from runnel.compat.torch.nn import functional as F
from runnel.core.errors import ArgumentError, AxisError, DeviceError, GradientError, ShapeError

ZERO = torch.tensor(0)

# Of an array without axes, the axes 0 and -1 are one of size 1.
WITHOUT_AXES: dict[str, Callable[[Any], Any]] = {
    "gather": lambda x: torch.gather(x, 0, ZERO),
    "gather several": lambda x: torch.gather(x, -1, torch.tensor([0, 0])).sum() / 2,
    "scatter": lambda x: torch.scatter(x, 0, ZERO, x * 1),
    "scatter a number": lambda x: torch.scatter(x, 0, ZERO, 2.5),
    "scatter_add": lambda x: torch.scatter_add(x, 0, ZERO, torch.tensor(0.0)),
    "scatter_reduce": lambda x: torch.scatter_reduce(x, 0, ZERO, x, "amax"),
    "index_select": lambda x: torch.index_select(x, 0, ZERO),
    "index_add": lambda x: x.index_add(0, ZERO, torch.tensor(0.0)),
    "index_copy": lambda x: x.index_copy(0, ZERO, x * 1),
    "index_fill": lambda x: x.index_fill(-1, torch.tensor([0]), 2.5),
    "index_reduce": lambda x: x.index_reduce(0, ZERO, torch.tensor(1.0), "prod"),
    "topk": lambda x: torch.topk(x, 1).values,
    "transpose": lambda x: torch.transpose(x, 0, -1),
}


@pytest.mark.parametrize("name", WITHOUT_AXES)
def test_arrays_without_axes_have_one(name: str) -> None:
    x = torch.tensor(2.5, requires_grad=True)
    result = WITHOUT_AXES[name](x)
    assert result.shape == () and result.item() == 2.5


def test_arrays_without_axes_have_no_second_axis() -> None:
    x = torch.tensor(2.5)
    for call in (
        lambda: torch.gather(x, 1, ZERO), lambda: torch.scatter_add(x, 1, ZERO, x), lambda: x.index_add(-2, ZERO, x),
        lambda: torch.transpose(x, 0, 1), lambda: torch.topk(x, 1, 1),
    ):  # fmt: skip
        with pytest.raises(AxisError, match="1 dimensions"):
            call()
    assert [p.tolist() for p in x.nonzero(as_tuple=True)] == [[0]]
    assert torch.topk(x, 0).values.shape == (0,) and torch.topk(-x, 1, largest=False).indices.shape == ()
    with pytest.raises(ShapeError, match="index_select"):
        torch.index_select(x, 0, torch.tensor([0, 0]))


def test_an_index_without_elements_has_any_shape() -> None:
    x = torch.ones(5, requires_grad=True)
    none = torch.zeros((2, 0), dtype=torch.int64)
    gathered = torch.gather(x, 0, none)
    gathered.sum().backward()
    assert gathered.shape == (2, 0) and x.grad.tolist() == [0.0] * 5
    assert torch.scatter(x, 0, none, torch.ones(2, 0)).tolist() == [1.0] * 5


def test_empty_vectors_count_for_nothing_in_cat() -> None:
    rows = torch.ones(2, 3)
    for cat in (torch.cat, torch.concat, torch.concatenate):
        assert cat([torch.empty(0), rows, torch.empty(0)], dim=1).shape == (2, 3)
    assert torch.cat([torch.empty(0, dtype=torch.float64), rows]).dtype is torch.float64
    assert torch.cat([torch.empty(0), torch.empty(0)]).shape == (0,)


def test_bools_count() -> None:
    yes, no = torch.tensor([True, False, False]), torch.tensor([False, True, False])
    index = torch.tensor([0, 2, 2])
    for name in ("scatter_add", "index_add"):
        added = getattr(torch, name)(no, 0, index, yes)
        assert added.dtype is torch.bool and added.tolist() == [True, True, False]
    assert torch.scatter_reduce(yes, 0, index, no, "amin").tolist() == [False, False, False]
    assert torch.scatter_reduce(yes, 0, index, no, "sum").tolist() == [True, False, True]
    assert no.index_put((index,), yes, accumulate=True).tolist() == [True, True, False]
    assert torch.square(yes).dtype is torch.int64 and torch.sign(yes).tolist() == yes.tolist()
    assert torch.signbit(yes).tolist() == [False] * 3
    column = torch.addr(torch.zeros(3, 3, dtype=torch.bool), yes, no, alpha=2)
    assert column.dtype is torch.bool and column.tolist()[0] == [False, True, False]


def test_integers_stay_integers() -> None:
    x = torch.arange(4).reshape(2, 2)
    sums = torch.addmm(x, x, x, beta=2.0, alpha=1.5)
    assert sums.dtype is torch.int64 and sums.tolist() == [[2, 5], [10, 17]]
    assert F.relu6(torch.tensor([-2, 9])).tolist() == [0, 6] and F.hardtanh(x, -1, 1).dtype is torch.int64
    counted = torch.bincount(torch.tensor([0, 1, 1]), weights=torch.tensor([1, 2, 3]))
    assert counted.dtype is torch.float64 and counted.tolist() == [1.0, 5.0]


def test_ranges_of_integers() -> None:
    assert torch.arange(2.9, -2.0, -1, dtype=torch.int64).tolist() == [2, 1, 0, -1]
    assert torch.arange(0.5, 4, 1.7, dtype=torch.int64).tolist() == [0, 1, 2, 3]
    assert torch.linspace(-3.5, 2, 5, dtype=torch.int32).tolist() == [-3, -1, 0, 0, 2]
    assert torch.logspace(1, 1.2, 3, dtype=torch.int64).tolist() == [10, 10, 10]


def test_numbers_keep_their_digits_on_the_way_to_another_dtype() -> None:
    assert torch.full_like(torch.ones(1), 0.1, dtype=torch.float64).item() == 0.1
    assert torch.full_like(torch.ones(1), 2**53 + 1, dtype=torch.int64).item() == 2**53 + 1
    assert torch.zeros_like(torch.ones(1) * 1j, dtype=torch.float32).dtype is torch.float32


def test_accepted_arguments_and_arguments_without_effect() -> None:
    x, y = torch.zeros(2, 3), torch.ones(2, 3)
    assert F.mse_loss(x, 2 * y, size_average=False).item() == 24 and F.l1_loss(x, y, reduce=False).shape == (2, 3)
    assert F.mse_loss(x, 2 * y, size_average=None, reduce=None, reduction="sum").item() == 24
    with pytest.raises(ArgumentError, match="reduction="):
        F.mse_loss(x, y, size_average=False, reduction="sum")
    assert F.celu(x, inplace=True).shape == F.threshold(x, 0.1, 20, inplace=True).shape == (2, 3)
    assert x.byte(memory_format=torch.contiguous_format).dtype is torch.uint8
    assert F.softmax(x, 1, _stacklevel=3).shape == F.normalize(x, out=None).shape == (2, 3)
    assert x.repeat(2, 1).shape == x.repeat((2, 1)).shape == x.tile(2, 1).shape == (4, 3)
    assert torch.repeat_interleave(torch.tensor([1, 2]), 2, output_size=4).tolist() == [1, 1, 2, 2]
    assert x.to(torch.float64, False, True).dtype is x.to("cpu", torch.float64, True).dtype is torch.float64
    assert x.to(torch.float32, False, True) is not x
    with pytest.raises(ArgumentError, match="non_blocking"):
        x.to(torch.float64, False, True, True)
    pooled = F.avg_pool2d(torch.ones(1, 1, 4, 4), (2,), stride=[2], padding=(0,))
    assert pooled.shape == (1, 1, 2, 2)


def test_running_statistics_may_be_tensors() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    mean, variance = torch.zeros(2), torch.ones(2)
    F.batch_norm(x, mean, variance, training=True, momentum=0.5)
    assert mean.tolist() == [1.0, 2.0] and variance.tolist() == [1.5, 4.5]


def test_shapes() -> None:
    row = torch.tensor([[1.0, 2.0, 4.0]])
    assert torch.cov(row).shape == torch.corrcoef(row).shape == ()
    assert torch.diff(row, n=0, append=torch.ones(1, 1)).shape == (1, 3)
    assert torch.linalg.vander(torch.tensor(2.0), N=3).tolist() == [[1.0, 2.0, 4.0]]
    spread = torch.masked_scatter(torch.zeros(2), torch.ones(2, 2).bool(), torch.arange(4.0))
    assert spread.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert F.feature_alpha_dropout(torch.ones(3), training=False).shape == (3,)
    assert F.unfold(torch.ones(0, 1, 3, 3), 2).shape == (0, 4, 4)
    assert torch.unique_consecutive(torch.ones(3, 0), dim=1).shape == (3, 0)


@pytest.mark.parametrize(("stride", "dilation", "more"), [(1, 2, 1), (2, 3, 2), (2, 1, 1)])
def test_a_transposed_convolution_that_reaches_less_than_its_output(stride: int, dilation: int, more: int) -> None:
    x, weight = torch.ones(1, 1, 3), torch.ones(1, 1, 2)
    smallest = F.conv_transpose1d(x, weight, torch.ones(1), stride=stride, dilation=dilation)
    larger = F.conv_transpose1d(x, weight, torch.ones(1), stride=stride, dilation=dilation, output_padding=more)
    assert larger.tolist()[0][0] == [*smallest.tolist()[0][0], *[1.0] * more]
    with pytest.raises(ShapeError, match="output_padding"):
        F.conv_transpose1d(x, weight, stride=stride, dilation=dilation, output_padding=max(stride, dilation))


def test_linear_algebra() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 3))
    solved = torch.linalg.solve(torch.tensor(a), torch.tensor(b))
    np.testing.assert_allclose(solved.numpy(), np.linalg.solve(a, b[..., None])[..., 0], rtol=1e-10)
    left = torch.linalg.solve(torch.tensor(a), torch.tensor(a[::-1].copy()), left=False)
    np.testing.assert_allclose(left.numpy() @ a, a[::-1], atol=1e-10)
    singular = torch.diag(torch.tensor([4.0, 1.0, 0.25]))
    for atol, rtol, rank in ((None, None, 3), (0.5, None, 2), (0.5, 0.5, 1), (None, 0.1, 2), (0.0, 0.0, 3)):
        assert torch.linalg.matrix_rank(singular, atol=atol, rtol=rtol).item() == rank
        pinv = torch.linalg.pinv(singular, atol=atol, rtol=rtol)
        assert int((torch.diagonal(pinv) != 0).sum()) == rank
    lower = torch.tensor([[2.0, 99.0], [1.0, 3.0]])
    inverse = np.linalg.inv([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(torch.linalg.pinv(lower, hermitian=True).numpy(), inverse, rtol=1e-5)
    assert torch.linalg.lstsq(singular, torch.ones(3, 1), driver="gels").solution.tolist() == [[0.25], [1.0], [4.0]]
    assert torch.linalg.vector_norm(torch.ones(4), dtype=torch.float64).dtype is torch.float64
    assert torch.linalg.diagonal(torch.tensor(a), dim1=0, dim2=1).shape == (3, 3)
    assert torch.vdot(torch.tensor([1j]), torch.tensor([1j])).item() == 1


def test_square_and_rectangular_matrices_have_gradients_of_their_full_singular_vectors() -> None:
    rng = np.random.default_rng(4)
    for shape in ((3, 3), (4, 2), (2, 4)):
        leaf = torch.tensor(rng.normal(size=shape), requires_grad=True)
        weight = torch.tensor(rng.normal(size=shape))
        k = min(shape)
        found = []
        for full in (True, False):
            u, s, vh = torch.linalg.svd(leaf, full_matrices=full)
            product = u[:, :k] @ torch.diag(s**2) @ vh[:k]
            found.append(torch.autograd.grad((product * weight).sum(), leaf)[0].numpy())
        np.testing.assert_allclose(*found, atol=1e-12)


A, B, M = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0]), torch.arange(6.0).reshape(2, 3)
PLACES, P, S = torch.tensor([[0, 1, 0]]), torch.tensor([0, 1]), torch.eye(2)

# Calls with PyTorch's keywords and positions, and the same calls as Runnel has them.
KEYWORDS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "add": (lambda: A.add(2, B), lambda: A + 2 * B),
    "add_": (lambda: A.clone().add_(-1, B), lambda: A - B),
    "addcdiv_": (lambda: A.clone().addcdiv_(2, B, A), lambda: A + 2 * B / A),
    "addmm": (lambda: torch.addmm(2, M, 3, S, M), lambda: 2 * M + 3 * S @ M),
    "addcmul": (lambda: A.addcmul(tensor1=A, tensor2=B), lambda: A + A * B),
    "arange": (lambda: torch.arange(end=3), lambda: torch.arange(3)),
    "as_tensor": (lambda: torch.asarray(obj=A, requires_grad=True).detach(), lambda: A),
    "atan2": (lambda: torch.atan2(input=A, other=B), lambda: torch.atan2(A, B)),
    "arctan2": (lambda: A.arctan2(other=B), lambda: torch.atan2(A, B)),
    "atan2_": (lambda: A.clone().atan2_(other=B), lambda: torch.atan2(A, B)),
    "kl_div": (lambda: F.kl_div(A, B, None, False), lambda: F.kl_div(A, B, reduction="none")),
    "bmm": (lambda: torch.bmm(input=M[None], mat2=M.T[None]), lambda: torch.bmm(M[None], M.T[None])),
    "cholesky_solve": (lambda: torch.cholesky_solve(input=S, input2=2 * S), lambda: S / 4),
    "cond": (lambda: torch.cond(A.sum() > 0, torch.add, torch.sub, (A, B)), lambda: A + B),
    "copy_": (lambda: A.clone().copy_(B, True), lambda: B),
    "CrossEntropyLoss": (
        lambda: torch.nn.CrossEntropyLoss(None, False, 1, None, "mean", 0.1)(S, P),
        lambda: F.cross_entropy(S, P, ignore_index=1, reduction="sum", label_smoothing=0.1),
    ),
    "det": (lambda: torch.linalg.det(A=torch.eye(2)), lambda: torch.linalg.det(torch.eye(2))),
    "dot": (lambda: torch.dot(input=A, tensor=B), lambda: torch.dot(A, B)),
    "hardtanh": (lambda: F.hardtanh(A.clone(), 0.0, 1.0, True), lambda: F.hardtanh(A, 0.0, 1.0)),
    "hsplit": (lambda: M.hsplit(sections=3)[1], lambda: M.hsplit(3)[1]),
    "igamma": (lambda: torch.igamma(input=A, other=B), lambda: torch.igamma(A, B)),
    "igammac": (lambda: A.igammac(other=B), lambda: torch.igammac(A, B)),
    "isin": (lambda: torch.isin(elements=A, test_elements=B), lambda: torch.isin(A, B)),
    "ldexp": (lambda: A.ldexp(other=B), lambda: A.ldexp(B)),
    "max": (lambda: torch.max(input=A, other=B), lambda: torch.maximum(A, B)),
    "min": (lambda: A.min(other=B), lambda: torch.minimum(A, B)),
    "mse_loss": (lambda: F.mse_loss(A, B, None, None, "sum"), lambda: F.mse_loss(A, B, reduction="sum")),
    "mv": (lambda: torch.mv(input=M, vec=torch.ones(3)), lambda: torch.mv(M, torch.ones(3))),
    "narrow": (lambda: M.narrow(dim=1, start=1, length=2), lambda: M[:, 1:3]),
    "nanmean": (lambda: M.nanmean(0, dtype=torch.float64), lambda: M.double().mean(0)),
    "permute": (lambda: M.permute(dims=(1, 0)), lambda: M.T),
    "repeat": (lambda: A.repeat(repeats=(2,)), lambda: A.repeat(2)),
    "reshape": (lambda: M.reshape(shape=(3, 2)), lambda: M.reshape(3, 2)),
    "roll": (lambda: torch.roll(M, shifts=1, dims=1), lambda: M.roll(1, 1)),
    "scatter": (lambda: M.scatter(1, PLACES, value=9.0), lambda: M.scatter(1, PLACES, 9.0)),
    "scatter_": (lambda: M.clone().scatter_(dim=1, index=PLACES, value=9.0), lambda: M.scatter(1, PLACES, 9.0)),
    "softmax": (lambda: F.softmax(M, 1, 3, torch.float64), lambda: torch.softmax(M, 1, torch.float64)),
    "split": (lambda: M.split(split_size=2, dim=1)[1], lambda: M[:, 2:]),
    "split of a function": (lambda: torch.split(tensor=M, split_size_or_sections=1)[1], lambda: M[1:]),
    "split_with_sizes": (lambda: M.split_with_sizes(split_sizes=[1, 2], dim=1)[1], lambda: M[:, 1:]),
    "swapaxes": (lambda: M.swapaxes(axis0=0, axis1=1), lambda: M.T),
    "tensor_split": (lambda: M.tensor_split(indices=(1,), dim=1)[1], lambda: M[:, 1:]),
    "tile": (lambda: M.tile(dims=(1, 2)), lambda: torch.cat([M, M], 1)),
    "unfold": (lambda: M.unfold(dimension=1, size=2, step=1), lambda: M.unfold(1, 2, 1)),
    "view": (lambda: A.view(dtype=torch.int32), lambda: A.view(torch.int32)),
    "while_loop": (
        lambda: torch.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x + x), (torch.tensor(0), A))[1],
        lambda: 4 * A,
    ),
    "zeta": (lambda: torch.special.zeta(input=B, other=A), lambda: torch.special.zeta(B, A)),
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords_of_pytorch(name: str) -> None:
    by_name, by_position = KEYWORDS[name]
    assert by_name().tolist() == by_position().tolist()


@pytest.mark.parametrize(
    "layer",
    [
        nn.ReLU(True), nn.ReLU6(True), nn.Hardswish(True), nn.SiLU(True), nn.Threshold(0.5, 20, True),
        nn.Dropout2d(1, True), lambda x: F.elu(x, 1.0, True), lambda x: F.dropout(x, 1.0, inplace=True),
        lambda x: F.leaky_relu(input=x, inplace=True),
    ],
)  # fmt: skip
def test_inplace_writes_into_the_input(layer: Any) -> None:
    w = -torch.ones(1, 2, 1, 1)
    w.requires_grad_()
    x = w * 1
    y = layer(x)
    assert y is x and (x != w).all()
    (x + y).sum().backward()
    twice = torch.autograd.grad(2 * layer(w * 1).sum(), w)[0]
    assert w.grad.tolist() == twice.tolist()
    with pytest.raises(GradientError, match="a leaf that requires a gradient"):
        layer(w)


def test_positions_of_layers() -> None:
    assert nn.Linear(2, 2, True, "cpu", torch.float64).weight.dtype is torch.float64
    assert nn.BatchNorm1d(2, 1e-5, 0.1, True, True, None, torch.float64, bias=False).weight.dtype is torch.float64
    with pytest.raises(DeviceError, match="'cuda'"):
        nn.Linear(2, 2, True, "cuda")
    for call in (
        lambda: F.mse_loss(A, B, None, None, "sum", reduction="sum"), lambda: F.mse_loss(A, B, "sum"),
        lambda: F.relu(A, True, 3), lambda: torch.exp(A, B),
    ):  # fmt: skip
        with pytest.raises(ArgumentError):
            call()


@pytest.mark.parametrize(
    "draw",
    [
        lambda **g: torch.rand_like(A, **g), lambda **g: torch.randn_like(A, **g),
        lambda **g: torch.bernoulli(torch.ones(20), 0.5, **g),
        lambda **g: torch.randint_like(M, high=99, **g), lambda **g: torch.zeros(4).random_(to=99, **g),
        lambda **g: nn.init.normal_(torch.zeros(2), **g), lambda **g: nn.init.trunc_normal_(torch.zeros(2), **g),
        lambda **g: nn.init.orthogonal_(torch.zeros(2, 2), **g),
        lambda **g: nn.init.xavier_uniform_(torch.zeros(2, 2), **g),
    ],
)  # fmt: skip
def test_generators_draw(draw: Callable[..., Any]) -> None:
    def seeded() -> Any:
        return draw(generator=torch.Generator().manual_seed(7))

    before = torch.get_rng_state()
    first = seeded()
    assert [x.tolist() for x in torch.get_rng_state()] == [x.tolist() for x in before]
    assert first.tolist() == seeded().tolist() != draw().tolist() and (first < 99).all()


def test_arguments_of_new_tensors_are_honored_or_refused() -> None:
    x = torch.ones(2, dtype=torch.float64)
    for make in (x.new_zeros, x.new_ones, x.new_empty, torch.zeros, rn.zeros):
        new = make((2,), dtype=torch.float32, requires_grad=True, layout=torch.strided, pin_memory=False)
        assert new.requires_grad and new.is_leaf and new.dtype is torch.float32
        with pytest.raises(ArgumentError, match="layout"):
            make((2,), layout="torch.sparse_coo")


def test_gradients_of_chosen_leaves() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (a * b).sum().backward(None, False, False, [a])
    assert a.grad.tolist() == [1.0, 1.0] and b.grad is None
    torch.autograd.backward((a * b).sum(), inputs=b)
    assert a.grad.tolist() == b.grad.tolist() == [1.0, 1.0]
    with pytest.raises(GradientError, match="leaves"):
        (a * b).sum().backward(inputs=[a * 1])


def test_the_text_of_a_number_is_its_number() -> None:
    norm = nn.BatchNorm1d(2)
    assert f"{torch.tensor(2.5)} {torch.tensor(3)} {torch.tensor(True)} {norm.num_batches_tracked}" == "2.5 3 True 0"
    assert f"{torch.tensor(0.125, requires_grad=True)} {nn.Parameter(torch.tensor(2.0)):.1f}" == "0.125 2.0"
    assert f"{torch.ones(1)}" == str(torch.ones(1))


def test_negative_padding_removes_at_both_ends() -> None:
    x = torch.arange(6.0).reshape(1, 6)
    for widths, kept in {(-3, 0): [3, 4, 5], (-1, -2): [1, 2, 3], (0, -5): [0], (-4, 1): [4, 5, 0]}.items():
        cut = F.pad(x, widths)
        assert cut.tolist() == [kept]
        cut += 1
    assert F.pad(x, (-1, -1), "circular").add_(1).tolist() == [[2.0, 3.0, 4.0, 5.0]]
    assert x.tolist() == [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]


def test_parameters_are_detached_in_place() -> None:
    layer = nn.Linear(2, 2)
    assert layer.weight.detach_() is layer.weight and not layer.weight.requires_grad
    (layer(torch.ones(1, 2)) * 2).sum().backward()
    assert layer.weight.grad is None and layer.bias.grad.tolist() == [2.0, 2.0]


def test_arithmetic_of_two_numbers() -> None:
    assert torch.div(7, 2, rounding_mode="trunc").item() == torch.floor_divide(7, 2).item() == 3
    assert torch.add(7, 2.5).item() == 9.5 and torch.mul(2, 3).dtype is torch.int64
    assert torch.true_divide(1, 2).item() == 0.5 and torch.sub(torch.ones(1), 1, alpha=2).item() == -1


def test_libraries_check_their_arguments() -> None:
    checks = {"_check": RuntimeError, "_check_index": IndexError, "_check_value": ValueError, "_check_type": TypeError}
    for name, kind in checks.items():
        getattr(torch, name)(True)
        with pytest.raises(kind, match="too small"):
            getattr(torch, name)(False, lambda: "too small")
    torch._check_is_size(3)
    with pytest.raises(RuntimeError, match="must be True"):
        torch._check_tensor_all(torch.tensor([True, False]))
    with pytest.raises(KeyError, match="no key"):
        torch._check_with(KeyError, torch.tensor(False), lambda: "no key")


def test_products_of_groups() -> None:
    a, b = torch.rand(8, 4, requires_grad=True), torch.rand(3, 4, 5, requires_grad=True)
    products = F.grouped_mm(a, b, offs=torch.tensor([2, 2, 6], dtype=torch.int32))
    by_hand = torch.cat([a[:2] @ b[0], a[2:6] @ b[2], torch.zeros(2, 5)])
    assert torch.allclose(products, by_hand)
    products.sum().backward()
    assert torch.allclose(b.grad[2, :, 0], a.detach()[2:6].sum(0)) and b.grad[1].abs().sum() == 0
    ends = torch.tensor([1, 4], dtype=torch.int32)
    left, right = torch.rand(2, 4), torch.rand(4, 3)
    assert torch.allclose(F.grouped_mm(left, right, offs=ends)[1], left[:, 1:] @ right[1:])
    stack = torch.rand(2, 5, 2)
    columns = F.grouped_mm(stack, left, offs=ends)
    assert torch.allclose(columns[:, 1:], stack[1] @ left[:, 1:]) and columns.shape == (5, 4)
    with pytest.raises(ArgumentError, match="offs must be given"):
        F.grouped_mm(a, b)
