"""Thin sparse tensors: positions and values, for products with dense matrices as graph networks need them.

A sparse tensor has the attributes of PyTorch's. The functions and methods in ``HANDLERS`` compute with it by gathering
and summing segments of dense values, so that gradients reach the values and the dense operand; all others raise
UnsupportedError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.core import dtypes, pytree
from runnel.core.avals import aval
from runnel.core.dispatch import required
from runnel.core.dtypes import DType, Dtype, as_dtype
from runnel.core.errors import ArgumentError, ShapeError, UnsupportedError
from runnel.core.overrides import Override
from runnel.ops.indexing.scattering import segment_max, segment_sum
from runnel.tensor.creation import asarray, zeros
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.tensor.trace import ACTIVE

sparse_coo, sparse_csr = "sparse_coo", "sparse_csr"  # layouts


class SparseError(Override, UnsupportedError):
    """Raised where library code reads a sparse tensor: its call is handled here."""

    def handle(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = getattr(function, "__name__", str(function))
        if name not in HANDLERS:
            raise UnsupportedError(f"[{name}] a sparse tensor is not supported here; pass x.to_dense().")
        return HANDLERS[name](*args, **kwargs)


class SparseTensor(ArrayMethods[Any]):
    """A tensor of ``shape`` that is 0 except at ``indices`` (axes, count), where it has ``values`` (count, ...)."""

    is_sparse = True

    def __init__(
        self,
        indices: Tensor,
        values: Tensor,
        shape: Sequence[int],
        is_coalesced: bool = False,
        layout: str = sparse_coo,
    ) -> None:
        self.__dict__.update(places=indices, numbers=values)
        self._size = tuple(int(n) for n in shape)
        self._is_coalesced = is_coalesced
        self._layout_name = layout
        self._trace = ACTIVE.trace

    def __getattr__(self, name: str) -> Any:
        """Return the positions or values. A compiled function cannot follow them from outside: it runs eagerly."""
        if name not in ("_places", "_numbers"):
            raise AttributeError(f"[sparse] a sparse tensor has no attribute '{name}'; call to_dense() first.")
        trace = ACTIVE.trace
        if trace is not None and trace is not self._trace and not trace.is_body:
            raise UnsupportedError(
                "[sparse] a compiled function must make its sparse tensors itself, of dense arguments."
            )
        return self.__dict__[name.removeprefix("_")]

    # What library code asks for: its call is handled above.

    @property
    def aval(self) -> Any:
        raise SparseError("[sparse] a sparse tensor is not supported here; pass x.to_dense().")

    def read(self) -> Any:
        """Raise the error that hands the call of the user over."""
        return self.aval

    def apply_op(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Raise the error that hands the call of the user over."""
        return self.aval

    def lift(self, array: Any, dtype: DType) -> Any:
        """Raise the error that hands the call of the user over."""
        return self.aval

    # Attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self._size

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._size)

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._numbers.dtype

    @property
    def device(self) -> Any:
        """The device of the values."""
        return self._numbers.device

    @property
    def layout(self) -> str:
        """The layout: "sparse_coo" or "sparse_csr"."""
        return self._layout_name

    @property
    def is_sparse_csr(self) -> bool:
        """True if the layout is "sparse_csr"."""
        return self._layout_name == sparse_csr

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        """True if the values require a gradient."""
        return bool(self._numbers.requires_grad)

    @property
    def grad(self) -> Any:
        """The gradient of the values, as a sparse tensor; None without one."""
        gradient = self._numbers.grad
        return None if gradient is None else self._with(gradient)

    @property
    def T(self) -> SparseTensor:
        """The transpose of a matrix."""
        return transposed(self)

    def size(self, dim: int | None = None) -> Any:  # type: ignore[override]
        """Return the shape, or the size of one axis."""
        return self._size if dim is None else self._size[dim]

    def dim(self) -> int:
        """Return the number of axes."""
        return self.ndim

    def numel(self) -> int:
        """Return the number of elements, zeros included."""
        return math.prod(self._size)

    def sparse_dim(self) -> int:
        """Return the number of axes that positions name."""
        return int(self._places.shape[0])

    def dense_dim(self) -> int:
        """Return the number of axes of each value."""
        return self.ndim - self.sparse_dim()

    def is_coalesced(self) -> bool:
        """Return whether each position occurs once, in row-major order."""
        return self._is_coalesced

    def _nnz(self) -> int:
        return int(self._numbers.shape[0])

    def _indices(self) -> Tensor:
        return self._places

    def _values(self) -> Tensor:
        return self._numbers

    def indices(self) -> Tensor:
        """Return the positions (axes, count); of a coalesced tensor only, as in PyTorch."""
        self._require_coalesced("indices")
        return self._places

    def values(self) -> Tensor:
        """Return the values (count, ...); of a coalesced tensor only, as in PyTorch."""
        self._require_coalesced("values")
        return self._numbers

    def crow_indices(self) -> Tensor:
        """Return where each row begins among the values, and where the last ends."""
        counts = np.bincount(self._places[0].numpy(), minlength=self._size[0])
        return asarray(np.concatenate([[0], np.cumsum(counts)]))

    def col_indices(self) -> Tensor:
        """Return the column of each value."""
        return self._places[1]

    def _require_coalesced(self, name: str) -> None:
        if not self._is_coalesced:
            raise ArgumentError(f"[{name}] the sparse tensor must be coalesced; call coalesce() first, or _{name}().")

    # Conversions

    def _with(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self._places, values, self._size, self._is_coalesced, self._layout_name)

    def coalesce(self) -> SparseTensor:
        """Return the tensor with each position once, in row-major order; values of one position are added."""
        if self._is_coalesced:
            return self
        places = self._places.numpy()
        flat = np.ravel_multi_index(tuple(places), self._size[: len(places)]) if len(places) else places
        unique, number = np.unique(flat, return_inverse=True)
        values = segment_sum(self._numbers, asarray(number.reshape(-1)), len(unique))
        kept = np.stack(np.unravel_index(unique, self._size[: len(places)])).astype(np.int64)
        return SparseTensor(asarray(kept), values, self._size, True, self._layout_name)

    def to_dense(self, dtype: Dtype = None) -> Tensor:
        """Return the same tensor with its zeros."""
        values = self._numbers if dtype is None else self._numbers.to(dtype)
        sparse = self.sparse_dim()
        flat = _flat_places(self)
        rows = segment_sum(values, flat, math.prod(self._size[:sparse]))
        return ops.reshape(rows, self._size)

    def to_sparse(self, *sparse_dim: Any, layout: Any = None) -> Any:  # type: ignore[override]
        """Return the tensor itself."""
        return self

    to_sparse_coo: Any = to_sparse

    def to_sparse_csr(self, *dense_dim: Any) -> SparseTensor:
        """Return the matrix in rows."""
        once = self.coalesce()
        return SparseTensor(once._places, once._numbers, self._size, True, sparse_csr)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Return the tensor on another device, or with another dtype."""
        return self._with(self._numbers.to(*args, **kwargs))

    def type(self, dtype: Any = None) -> Any:
        """Return the tensor with another dtype."""
        return (
            f"torch.sparse.{self._numbers.type().removeprefix('torch.')}" if dtype is None else self.to(as_dtype(dtype))
        )

    def float(self) -> SparseTensor:
        """Return the tensor with float32 values."""
        return self.to(dtypes.float32)

    def double(self) -> SparseTensor:
        """Return the tensor with float64 values."""
        return self.to(dtypes.float64)

    def cpu(self) -> SparseTensor:
        """Return the tensor itself."""
        return self

    def cuda(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Raise DeviceError."""
        return self.to("cuda")

    def clone(self) -> SparseTensor:
        """Return a copy."""
        return self._with(self._numbers.clone())

    def detach(self) -> SparseTensor:
        """Return the tensor without a tape."""
        return self._with(self._numbers.detach())

    def requires_grad_(self, flag: bool = True) -> SparseTensor:
        """Set whether ``backward()`` computes a gradient of the values."""
        self._numbers.requires_grad_(flag)
        return self

    def __repr__(self) -> str:
        return (
            f"tensor(indices={self._places!r},\n       values={self._numbers!r},\n       size={self._size}, "
            f"nnz={self._nnz()}, layout=torch.{self.layout})"
        )

    def __len__(self) -> int:
        return self._size[0]

    def __matmul__(self, other: Any) -> Any:
        return product(self, other)

    def __mul__(self, other: Any) -> Any:
        return scaled(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return divided(self, other)

    def __add__(self, other: Any) -> Any:
        return total(self, other)

    def __sub__(self, other: Any) -> Any:
        return difference(self, other)


def _flat_places(x: SparseTensor) -> Tensor:
    """Return the row-major position of each value among the sparse axes."""
    flat: Any = zeros((x._nnz(),), dtype=dtypes.int64)
    for axis in range(x.sparse_dim()):
        flat = flat * x.shape[axis] + x._places[axis]
    return flat


# Making them


def sparse_coo_tensor(
    indices: Any,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: Dtype = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Return the tensor that has ``values`` (count, ...) at ``indices`` (axes, count), and is 0 elsewhere.

    Values of one position are added. Without ``size`` the tensor is as small as possible.

    Raises:
        ShapeError: a position is outside ``size``, or the counts differ.
    """
    places = asarray(indices, dtypes.int64)
    if values is None:
        places, values, size = zeros((len(indices), 0), dtype=dtypes.int64), np.zeros(0, np.float32), indices
    if places.ndim == 1:
        places = places.reshape((1, -1))
    numbers = asarray(values, dtype, device=device)
    if requires_grad:
        numbers = numbers.detach().clone().requires_grad_()
    count = places.shape[1]
    if numbers.ndim == 0 or numbers.shape[0] != count:
        raise ShapeError(
            f"[sparse_coo_tensor] values must have {count} rows, one for each position; got {numbers.shape}."
        )
    known = places.shaping()  # None where they exist only when a program runs
    if size is None:
        known = required(places, "[sparse_coo_tensor] size must be given where indices are computed in the function.")
        highest = known.max(axis=1) + 1 if count else np.zeros(len(known), np.int64)
        size = (*map(int, highest), *numbers.shape[1:])
    if len(size) != places.shape[0] + numbers.ndim - 1:
        raise ShapeError(
            f"[sparse_coo_tensor] size must have {places.shape[0] + numbers.ndim - 1} axes; got {tuple(size)}."
        )
    aval(tuple(size), numbers.dtype)  # a shape that can be
    if known is not None and count and ((known < 0).any() or (known >= np.array(size[: len(known)])[:, None]).any()):
        raise ShapeError(f"[sparse_coo_tensor] indices must be positions in size {tuple(size)}.")
    return SparseTensor(places, numbers, size, bool(is_coalesced))


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Sequence[int] | None = None, *, dtype: Dtype = None,
    device: Any = None, requires_grad: bool = False, check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """Return the matrix whose row i has ``values`` at ``col_indices`` from crow_indices[i] to crow_indices[i + 1]."""
    ends = asarray(crow_indices, dtypes.int64).numpy()
    columns = asarray(col_indices, dtypes.int64)
    if ends.ndim != 1 or ends[0] != 0 or ends[-1] != columns.size or (np.diff(ends) < 0).any():
        raise ShapeError("[sparse_csr_tensor] crow_indices must rise from 0 to the number of values.")
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    shape = (len(ends) - 1, int(columns.numpy().max(initial=-1)) + 1) if size is None else size
    places = ops.stack([asarray(rows), columns])
    made = sparse_coo_tensor(places, values, shape, dtype=dtype, device=device, requires_grad=requires_grad)
    return SparseTensor(made._places, made._numbers, made._size, True, sparse_csr)


def to_sparse(
    x: Any, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
) -> SparseTensor:
    """Return a tensor by the positions and values of its elements that are not 0. Blocks are refused."""
    if blocksize is not None or dense_dim is not None:
        raise UnsupportedError("[to_sparse] blocksize and dense_dim must be None: layouts of blocks are not supported.")
    axes = x.ndim if sparse_dim is None else sparse_dim
    known = x.detach().numpy()
    where = known != 0
    places = np.stack(np.nonzero(where.any(axis=tuple(range(axes, x.ndim))) if axes < x.ndim else where))
    values = x[tuple(asarray(row) for row in places)] if len(places) else x.reshape((1,))
    made = SparseTensor(asarray(places.astype(np.int64)), values, x.shape, True)
    return made.to_sparse_csr() if layout == sparse_csr else made


def to_sparse_csr(x: Any, dense_dim: int | None = None) -> SparseTensor:
    """Return a matrix in rows of the values that are not 0."""
    return to_sparse(x, layout=sparse_csr)


def _kind(dtype: DType) -> Callable[..., SparseTensor]:
    def make(indices: Any, values: Any = None, size: Any = None, **options: Any) -> SparseTensor:
        return sparse_coo_tensor(indices, values, size, dtype=dtype, **options)

    make.__doc__ = f"Return a sparse tensor of {dtype.name}: positions, values, and the shape."
    return make


FloatTensor, DoubleTensor, LongTensor, IntTensor = map(
    _kind, (dtypes.float32, dtypes.float64, dtypes.int64, dtypes.int32)
)

# Computing with them


def product(a: Any, b: Any, **options: Any) -> Any:
    """Return the product of matrices, or of a matrix and a vector, one or both of them sparse."""
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        return ops.matmul(a, b)
    if not isinstance(a, SparseTensor):
        return (
            ops.transpose(product(transposed(b), ops.transpose(a, -2, -1)), -2, -1)
            if a.ndim == 2
            else product(transposed(b), a)
        )
    if isinstance(b, SparseTensor):
        return to_sparse(product(a, b.to_dense()))
    if a.ndim != 2 or a.sparse_dim() != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[1]:
        raise ShapeError(
            f"[matmul] a sparse matrix and a dense one must have shapes (n, m) and (m,) or (m, k); got {a.shape} and "
            f"{tuple(b.shape)}."
        )
    rows, columns = a._places[0], a._places[1]
    parts = ops.take(b, columns, 0) * (a._numbers if b.ndim == 1 else ops.expand_dims(a._numbers, 1))
    return segment_sum(parts, rows, a.shape[0])


def spmm(input: Any, mat2: Any) -> Any:
    """Return the product of matrices, one or both of them sparse."""
    return product(input, mat2)


def added_product(input: Any, mat1: Any, mat2: Any, beta: float = 1.0, alpha: float = 1.0) -> Any:
    """Return beta·input + alpha·(mat1 @ mat2)."""
    return beta * input + alpha * product(mat1, mat2)


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Return input @ weightᵀ + bias."""
    result = product(input, weight.T)
    return result if bias is None else result + bias


def transposed(x: SparseTensor, *axes: int) -> SparseTensor:
    """Return a matrix with its axes swapped."""
    if x.ndim != 2 or x.sparse_dim() != 2:
        raise ShapeError(f"[transpose] a sparse tensor must be a matrix here; got shape {x.shape}.")
    return SparseTensor(ops.stack([x._places[1], x._places[0]]), x._numbers, x._size[::-1])


def scaled(a: Any, b: Any) -> SparseTensor:
    """Return the product by a number, or element by element by a dense tensor of the same shape."""
    x, other = (a, b) if isinstance(a, SparseTensor) else (b, a)
    if isinstance(other, SparseTensor):
        return scaled(x.coalesce(), other.to_dense())
    if isinstance(other, ArrayMethods) and other.size != 1:
        if tuple(other.shape) != x.shape:
            raise ShapeError(f"[multiply] the shapes must be the same; got {x.shape} and {tuple(other.shape)}.")
        other = ops.take(ops.reshape(other, (-1, *x.shape[x.sparse_dim() :])), _flat_places(x), 0)
    return x._with(x._numbers * other)


def divided(a: Any, b: Any, **options: Any) -> SparseTensor:
    """Return a sparse tensor divided by a number."""
    if not isinstance(a, SparseTensor) or isinstance(b, SparseTensor) or getattr(b, "size", 1) != 1:
        raise UnsupportedError("[divide] a sparse tensor can be divided by a number; pass x.to_dense().")
    return a._with(a._numbers / b)


def total(a: Any, b: Any, **options: Any) -> Any:
    """Return the sum of two tensors, sparse if both are."""
    if not (isinstance(a, SparseTensor) and isinstance(b, SparseTensor)):
        dense = [x.to_dense() if isinstance(x, SparseTensor) else x for x in (a, b)]
        if not all(isinstance(x, ArrayMethods) for x in dense):
            raise UnsupportedError("[add] a number cannot be added to a sparse tensor; pass x.to_dense().")
        return ops.add(*dense)
    if a.shape != b.shape:
        raise ShapeError(f"[add] the shapes must be the same; got {a.shape} and {b.shape}.")
    places, values = ops.concat([a._places, b._places], 1), ops.concat([a._numbers, b._numbers], 0)
    return SparseTensor(places, values, a.shape).coalesce()


def difference(a: Any, b: Any, **options: Any) -> Any:
    """Return the difference of two tensors, sparse if both are."""
    return total(a, scaled(b, -1) if isinstance(b, SparseTensor) else -b)


def sum_of(input: SparseTensor, dim: Any = None, dtype: Dtype = None, **options: Any) -> Any:
    """Return the sum of all elements, or the sparse sums over sparse axes ``dim``."""
    x = input if dtype is None else input.to(dtype)
    if dim is None:
        return ops.sum(x._numbers)
    axes = {axis % x.ndim for axis in ([dim] if isinstance(dim, int) else dim)}
    kept = [axis for axis in range(x.sparse_dim()) if axis not in axes]
    if max(axes) >= x.sparse_dim():
        raise UnsupportedError("[sum] the axes must be sparse; pass x.to_dense().")
    if not kept:
        return ops.sum(x._numbers, 0)
    shape = [n for axis, n in enumerate(x.shape) if axis not in axes]
    return SparseTensor(ops.stack([x._places[axis] for axis in kept]), x._numbers, shape).coalesce()


def softmax(input: SparseTensor, dim: int, dtype: Dtype = None, **options: Any) -> SparseTensor:
    """Return the softmax over the values of each row (``dim`` 1) or column (0) of a matrix; its zeros stay out."""
    values, group, count = _groups(input if dtype is None else input.to(dtype), dim)
    shifted = ops.exp(values._numbers - ops.take(segment_max(values._numbers.detach(), group, count), group, 0))
    return values._with(shifted / ops.take(segment_sum(shifted, group, count), group, 0))


def log_softmax(input: SparseTensor, dim: int, dtype: Dtype = None, **options: Any) -> SparseTensor:
    """Return the logarithms of :func:`softmax`."""
    values, group, count = _groups(input if dtype is None else input.to(dtype), dim)
    shifted = values._numbers - ops.take(segment_max(values._numbers.detach(), group, count), group, 0)
    return values._with(shifted - ops.take(ops.log(segment_sum(ops.exp(shifted), group, count)), group, 0))


def _groups(x: SparseTensor, dim: int) -> tuple[SparseTensor, Tensor, int]:
    if x.ndim != 2 or x.sparse_dim() != 2 or not -2 <= dim < 2:
        raise ShapeError(
            f"[softmax] a sparse tensor must be a matrix, and dim one of its axes; got {x.shape} and {dim}."
        )
    once = x.coalesce()
    other = 1 - dim % 2
    return once, once._places[other], x.shape[other]


def _of_values(function: Callable[[Any], Any]) -> Callable[[SparseTensor], SparseTensor]:
    """Return a function that is 0 at 0 for sparse tensors."""

    def apply(x: SparseTensor) -> SparseTensor:
        once = x.coalesce()
        return once._with(function(once._numbers))

    return apply


HANDLERS: Final[dict[str, Callable[..., Any]]] = {
    **dict.fromkeys(("matmul", "mm", "mv", "spmm"), product),
    "addmm": added_product,
    "linear": linear,
    **dict.fromkeys(("transpose", "t", "swapaxes"), transposed),
    **dict.fromkeys(("multiply", "mul"), scaled),
    **dict.fromkeys(("divide", "div", "true_divide", "divide_rounded"), divided),
    **dict.fromkeys(("add", "add_scaled"), total),
    **dict.fromkeys(("subtract", "subtract_scaled"), difference),
    "sum": sum_of,
    "softmax": softmax,
    "log_softmax": log_softmax,
    **{
        name: _of_values(getattr(ops, name))
        for name in ("negative", "abs", "sqrt", "square", "sin", "tanh", "relu", "sign", "expm1", "log1p", "floor")
    },
}

pytree.register(
    SparseTensor,
    lambda x: ([x._places, x._numbers], (x._size, x._is_coalesced, x._layout_name)),
    lambda static, children: SparseTensor(children[0], children[1], *static),
)
