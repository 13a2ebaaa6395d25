"""Sparse tensors against dense ones: products, sums, softmax, gradients; refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel.compat.torch as torch
from runnel.core.errors import RunnelError, ShapeError, UnsupportedError

PLACES = torch.tensor([[0, 1, 1, 2, 0], [2, 0, 2, 1, 2]])
VALUES = torch.tensor([3.0, 4.0, 5.0, 2.0, 1.0])
S = torch.sparse_coo_tensor(PLACES, VALUES, (3, 3))
D = S.to_dense()
X = torch.arange(6.0).view(3, 2)
HYBRID = [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
HIDDEN = torch.where(D == 0, -torch.inf, D)


SAME: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
    (lambda: S, lambda: torch.tensor([[0.0, 0.0, 4.0], [4.0, 0.0, 5.0], [0.0, 2.0, 0.0]])),
    (lambda: torch.mm(S, X), lambda: D @ X),
    (lambda: torch.spmm(S, X), lambda: D @ X),
    (lambda: torch.sparse.mm(S, X), lambda: D @ X),
    (lambda: torch.sparse.mm(S, S), lambda: D @ D),
    (lambda: S @ X, lambda: D @ X),
    (lambda: S.matmul(X[:, 0]), lambda: D @ X[:, 0]),
    (lambda: X.T @ S, lambda: X.T @ D),
    (lambda: S.t() @ X, lambda: D.T @ X),
    (lambda: S.transpose(0, 1) @ X, lambda: D.T @ X),
    (lambda: torch.sparse.addmm(X, S, X), lambda: X + D @ X),
    (lambda: torch.nn.functional.linear(S, X.T), lambda: D @ X),
    (lambda: 2 * S / 4 - S, lambda: -D / 2),
    (lambda: S * D, lambda: D * D),
    (lambda: S + S, lambda: D + D),
    (lambda: D + S, lambda: D + D),
    (lambda: torch.sparse.sum(S), lambda: D.sum()),
    (lambda: torch.sparse.sum(S, dim=1), lambda: D.sum(1)),
    (lambda: torch.sparse.softmax(S, 1), lambda: torch.softmax(HIDDEN, 1)),
    (lambda: torch.sparse.softmax(S, 0), lambda: torch.softmax(HIDDEN, 0)),
    (lambda: torch.relu(-S), lambda: 0 * D),
    (lambda: D.to_sparse(), lambda: D),
    (lambda: D.to_sparse_csr().double(), lambda: D.double()),
    (lambda: torch.sparse_csr_tensor([0, 1, 3, 4], [2, 0, 2, 1], [4.0, 4.0, 5.0, 2.0]), lambda: D),
    (lambda: torch.sparse.FloatTensor(PLACES, VALUES, (3, 3)).coalesce(), lambda: D),
    (lambda: torch.sparse_coo_tensor([[0, 2]], torch.ones(2, 2), (3, 2)), lambda: torch.tensor(HYBRID)),
    (lambda: torch.sparse_coo_tensor(torch.zeros(2, 0), torch.zeros(0), (2, 2)), lambda: torch.zeros(2, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("sparse", "dense"), SAME)
def test_results_are_those_of_dense_tensors(sparse: Callable[[], Any], dense: Callable[[], Any]) -> None:
    found, expected = sparse(), dense()
    if found.is_sparse:
        found = found.to_dense()
    assert found.dtype is expected.dtype
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


def test_attributes() -> None:
    assert (S.shape, S.ndim, S.dtype, S.is_sparse, S.layout) == ((3, 3), 2, torch.float32, True, "sparse_coo")
    assert isinstance(S, torch.Tensor) and S._nnz() == 5 and not S.is_coalesced() and S.size(0) == 3
    once = S.coalesce()
    assert once.indices().tolist() == [[0, 1, 1, 2], [2, 0, 2, 1]] and once.values().tolist() == [4, 4, 5, 2]
    rows = D.to_sparse_csr()
    assert rows.crow_indices().tolist() == [0, 1, 3, 4] and rows.col_indices().tolist() == [2, 0, 2, 1]


def test_gradients_reach_values_and_dense_operands() -> None:
    w, x = VALUES.clone().requires_grad_(), X.clone().requires_grad_()
    step = torch.compile(lambda w, x: ((torch.sparse_coo_tensor(PLACES, w, (3, 3)) @ x) ** 2).sum(), fullgraph=True)
    dense = torch.zeros(3, 3).index_put((PLACES[0], PLACES[1]), VALUES, accumulate=True).requires_grad_()
    (dense @ X).pow(2).sum().backward()
    for function in (step, lambda w, x: ((torch.sparse_coo_tensor(PLACES, w, (3, 3)) @ x) ** 2).sum()):
        w.grad = x.grad = None
        function(w, x).backward()
        assert w.grad.tolist() == dense.grad[PLACES[0], PLACES[1]].tolist()
        assert x.grad.tolist() == (2 * D.T @ (D @ X)).tolist()


class Product(torch.autograd.Function):
    """A product that keeps the sparse matrix for its backward pass."""

    @staticmethod
    def forward(ctx: Any, places: Any, values: Any, x: Any) -> Any:
        a = torch.sparse_coo_tensor(places, values, (3, 3))
        ctx.save_for_backward(a, x)
        return torch.matmul(a, x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, x = ctx.saved_tensors
        return None, g.matmul(x.t()).view(-1)[a._indices()[0] * 3 + a._indices()[1]], a.t().matmul(g)


def test_functions_of_the_user_keep_sparse_tensors() -> None:
    w, x = VALUES.clone().requires_grad_(), X.clone().requires_grad_()
    (Product.apply(PLACES, w, x) ** 2).sum().backward()
    assert w.grad.tolist() == [328, 58, 450, 52, 328] and x.grad.tolist() == [[160, 232], [16, 24], [328, 450]]


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: torch.exp(S), UnsupportedError, r"\[exp\].*to_dense"),
    (lambda: S[0], UnsupportedError, r"\[getitem\].*to_dense"),
    (lambda: S + 1, UnsupportedError, r"\[add\] a number.*to_dense"),
    (lambda: S.indices(), RunnelError, r"coalesce\(\)"),
    (lambda: S @ torch.ones(2, 2), ShapeError, r"\[matmul\].*\(3, 3\) and \(2, 2\)"),
    (lambda: torch.sparse_coo_tensor(PLACES, VALUES, (2, 3)), ShapeError, "positions in size"),
    (lambda: torch.sparse_coo_tensor(PLACES, VALUES[:2], (3, 3)), ShapeError, "5 rows"),
    (lambda: torch.sparse_csr_tensor([0, 2], [0], [1.0]), ShapeError, "crow_indices"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_refusals(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()
