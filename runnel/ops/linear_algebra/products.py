"""Products of several arrays: einsum, inner products, distances, covariances, and sums with products."""

from __future__ import annotations

import math
import operator
import string
from collections.abc import Sequence
from typing import Any

from runnel.core.composed import composed
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import Dtype, as_dtype, bool_, float32
from runnel.core.errors import ArgumentError, DTypeError, ShapeError
from runnel.ops.arguments import Array, Axis, Operand, broadcast_shapes, normalize_axis
from runnel.ops.conversion import cast
from runnel.ops.elementwise.arithmetic import add, divide, multiply, subtract
from runnel.ops.elementwise.comparison import isnan, logical_not, where
from runnel.ops.elementwise.complex_parts import complex, conj, imag, real
from runnel.ops.elementwise.exponential import sqrt
from runnel.ops.linear_algebra.contraction import matmul, matmul_p, outer, tensordot
from runnel.ops.promotion import alike
from runnel.ops.reductions.primitives import sum
from runnel.ops.reductions.statistics import clip, mean, norm, std, var
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.diagonals import diagonal
from runnel.ops.shapes.pieces import concat, narrow
from runnel.ops.shapes.views import expand_dims, permute, reshape, transpose

# --- einsum -------------------------------------------------------------------------------------------------------


@composed
def einsum(equation: str | Array, *operands: Any) -> Array:
    """Return the sum of products that ``equation`` describes (A. Einstein), such as ``"bij,bjk->bik"``.

    Each axis has one letter; ``...`` means any leading axes, which broadcast. A repeated letter in an operand takes its
    diagonal. Letters that the result does not name are summed over. Without ``->`` the result has the letters that
    occur once, in alphabetical order.

    Instead of letters, a list of numbers from 0 to 51 may follow each operand, with the list of the result at the end:
    ``einsum(x, [0, 1], y, [1, 2], [0, 2])``. The lists may contain ``...``.

    Three or more operands are multiplied pair by pair, each time the pair with the fewest multiplications. Only shapes
    decide. Each pair is one matrix product.
    """
    if isinstance(equation, TensorLike):
        equation, operands = _lettered((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    terms, result = _parsed(equation, operands)
    arrays = list(meet_dtypes(operands))
    sizes = _sizes(equation, terms, arrays)
    parts = [_diagonals(x, term) for x, term in zip(arrays, terms, strict=True)]
    while len(parts) > 1:
        i, j = _cheapest(parts, sizes)
        (x, left), (y, right) = parts[i], parts[j]
        others = [parts[k] for k in range(len(parts)) if k not in (i, j)]
        remaining = set(result).union(*(term for _, term in others))
        parts = [*others, _pair(x, left, y, right, remaining, sizes)]
    ((x, term),) = parts
    x, term = _summed(x, term, set(result))
    missing = [c for c in result if c not in term]
    x = reshape(x, (*x.shape, *(1,) * len(missing)))
    term += "".join(missing)
    product = permute(x, [term.index(c) for c in result])
    return broadcast_to(product, tuple(sizes[c] for c in result))


def _lettered(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return the equation and the operands of alternating arguments: an operand, its list, and the result's list."""
    operands, lists = arguments[0::2], arguments[1::2]
    is_named = len(operands) > len(lists)  # the last one is the result's list
    if is_named:
        operands, lists = operands[:-1], (*lists, arguments[-1])
    if not all(isinstance(each, Sequence) and not isinstance(each, str) for each in lists):
        raise ArgumentError("[einsum] behind each operand stands a list of the numbers of its axes, such as [0, 1].")
    terms = ["".join(map(_letter, each)) for each in lists]
    result = f"->{terms.pop()}" if is_named else ""
    return ",".join(terms) + result, operands


def _letter(number: Any) -> str:
    if number is ...:
        return "..."
    if not 0 <= operator.index(number) < len(string.ascii_letters):
        raise ArgumentError(f"[einsum] axes must have numbers from 0 to 51; got {number}.")
    return (string.ascii_uppercase + string.ascii_lowercase)[number]


def meet_dtypes(operands: Sequence[Array]) -> list[Array]:
    """Convert the operands to one dtype, each with its own axes."""
    return alike(matmul_p, *operands)


def _parsed(equation: str, operands: Sequence[Array]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result; the axes of ``...`` have separate letters."""
    if not isinstance(equation, str) or not operands:
        raise ArgumentError(f"[einsum] an equation such as 'ij,jk->ik' must come first; got {equation!r}.")
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ShapeError(f"[einsum] '{equation}' must have {len(terms)} operands; got {len(operands)}.")
    free = [c for c in string.ascii_letters if c not in equation][::-1]
    counts = [x.ndim - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True)]
    most = max((n for n, t in zip(counts, terms, strict=True) if "..." in t), default=0)
    if most > len(free):
        raise ShapeError(f"[einsum] there are not enough letters for the axes of '...' in '{equation}'.")
    dots = "".join(free[:most])
    for term, n, x in zip(terms, counts, operands, strict=True):
        letters = term.replace("...", "", 1)
        if n < 0 or (n and "..." not in term) or not (letters == "" or letters.isalpha()):
            raise ShapeError(f"[einsum] '{term}' of '{equation}' does not fit an operand of shape {x.shape}.")
    terms = [t.replace("...", dots[most - n :] if n > 0 else "") for t, n in zip(terms, counts, strict=True)]
    if not arrow:
        joined = "".join(terms)
        result = "..." * bool(dots) + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in dots))
    result = result.replace("...", dots)
    known = set("".join(terms))
    if len(set(result)) != len(result) or not set(result) <= known:
        raise ShapeError(f"[einsum] the result of '{equation}' names a letter twice, or one that no operand has.")
    return terms, result


def _sizes(equation: str, terms: Sequence[str], arrays: Sequence[Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, x in zip(terms, arrays, strict=True):
        for c, n in zip(term, x.shape, strict=True):
            if sizes.setdefault(c, n) != n and 1 not in (n, sizes[c]):
                raise ShapeError(f"[einsum] axis '{c}' of '{equation}' has the sizes {sizes[c]} and {n}.")
            sizes[c] = n if sizes[c] == 1 else sizes[c]
    return sizes


def _diagonals(x: Array, term: str) -> tuple[Array, str]:
    """Return an operand with each letter once."""
    for c in sorted(set(term)):
        while term.count(c) > 1:
            first, second = term.index(c), term.rindex(c)
            x = diagonal(x, 0, first, second)
            term = "".join(t for k, t in enumerate(term) if k not in (first, second)) + c
    return x, term


def _cheapest(parts: Sequence[tuple[Array, str]], sizes: dict[str, int]) -> tuple[int, int]:
    pairs = [(i, j) for j in range(len(parts)) for i in range(j)]
    return min(pairs, key=lambda p: math.prod(sizes[c] for c in set(parts[p[0]][1]) | set(parts[p[1]][1])))


def _summed(x: Array, term: str, remaining: set[str]) -> tuple[Array, str]:
    """Sum over the letters that are not needed."""
    gone = [a for a, c in enumerate(term) if c not in remaining]
    return (sum(x, gone, dtype=x.dtype), "".join(c for c in term if c in remaining)) if gone else (x, term)


def _pair(x: Array, left: str, y: Array, right: str, remaining: set[str], sizes: dict[str, int]) -> tuple[Array, str]:
    """Return the product of two operands as one product of matrices: batch axes, rows, columns, summed axes."""
    x, left = _summed(x, left, remaining | set(right))
    y, right = _summed(y, right, remaining | set(left))
    batch = "".join(c for c in left if c in right and c in remaining)
    inner = "".join(c for c in left if c in right and c not in remaining)
    rows, columns = ("".join(c for c in term if c not in batch + inner) for term in (left, right))
    if not inner:
        a = permute(x, [left.index(c) for c in batch + rows])
        b = permute(y, [right.index(c) for c in batch + columns])
        a = reshape(a, (*a.shape, *(1,) * len(columns)))
        b = reshape(b, (*b.shape[: len(batch)], *(1,) * len(rows), *b.shape[len(batch) :]))
        return multiply(a, b), batch + rows + columns

    def stacked(z: Array, term: str, order: Sequence[str]) -> Array:
        whole = tuple(n if c in rows + columns else sizes[c] for c, n in zip(term, z.shape, strict=True))
        z = permute(broadcast_to(z, whole), [term.index(c) for part in order for c in part])
        shape, at = [], 0
        for part in order[1:]:
            n = len(order[0]) + at
            shape.append(math.prod(z.shape[n : n + len(part)]))
            at += len(part)
        return reshape(z, (math.prod(z.shape[: len(order[0])]), *shape))

    product = matmul(stacked(x, left, (batch, rows, inner)), stacked(y, right, (batch, inner, columns)))
    outside = [x.shape[left.index(c)] for c in rows] + [y.shape[right.index(c)] for c in columns]
    shape = (*(sizes[c] for c in batch), *outside)
    return reshape(product, shape), batch + rows + columns


# --- inner products and sums with products ------------------------------------------------------------------------


def dot(x: Array, y: Array) -> Array:
    """Return the product of two vectors, or the sum over the last axis of ``x`` and the second to last of ``y``."""
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    if y.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, ([x.ndim - 1], [y.ndim - 2]))


def inner(x: Array, y: Array) -> Array:
    """Sum the products over the last axes of both."""
    return multiply(x, y) if x.ndim == 0 or y.ndim == 0 else tensordot(x, y, ([x.ndim - 1], [y.ndim - 1]))


def vdot(x: Array, y: Array) -> Array:
    """Return the product of two vectors, with the conjugates of complex ``x``."""
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(f"[vdot] takes two vectors; got shapes {x.shape} and {y.shape}.")
    return matmul(conj(x), y)


def multi_dot(arrays: Sequence[Array]) -> Array:
    """Return the product of several matrices, in the order that :func:`einsum` chooses.

    The first and the last may be vectors."""
    if len(arrays) < 2 or any(x.ndim != 2 for x in arrays[1:-1]) or any(x.ndim not in (1, 2) for x in arrays):
        raise ShapeError(
            f"[multi_dot] takes two or more matrices, the first and last perhaps vectors; got shapes "
            f"{', '.join(str(x.shape) for x in arrays)}."
        )
    letters = string.ascii_letters
    terms = [letters[i : i + 2] for i in range(len(arrays))]
    terms[0] = terms[0][-arrays[0].ndim :]
    terms[-1] = terms[-1][: arrays[-1].ndim]
    ends = [terms[0][0]] * (arrays[0].ndim == 2) + [terms[-1][-1]] * (arrays[-1].ndim == 2)
    return einsum(f"{','.join(terms)}->{''.join(ends)}", *arrays)


def addmm(x: Operand, mat1: Array, mat2: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """Return beta · x + alpha · mat1 · mat2 for matrices."""
    return _plus(x, matmul(mat1, mat2), beta, alpha)


def addmv(x: Operand, mat: Array, vec: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """Return beta · x + alpha · mat · vec for a matrix and a vector."""
    return _plus(x, matmul(mat, vec), beta, alpha)


def addr(x: Operand, vec1: Array, vec2: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """Return beta · x + alpha · the outer product of two vectors."""
    return _plus(x, outer(vec1, vec2), beta, alpha)


def baddbmm(x: Operand, batch1: Array, batch2: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """Return beta · x + alpha · batch1 · batch2 for stacks of matrices."""
    return _plus(x, matmul(batch1, batch2), beta, alpha)


def addbmm(x: Operand, batch1: Array, batch2: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """Return beta · x + alpha · the sum of the products of stacks of matrices."""
    return _plus(x, sum(matmul(batch1, batch2), 0), beta, alpha)


def _plus(x: Operand, product: Array, beta: float, alpha: float) -> Array:
    """Return beta · x + alpha · product; integers and bools have factors of their kind."""
    if not product.dtype.is_inexact and isinstance(x, TensorLike) and not x.dtype.is_inexact:
        kind = bool if product.dtype is bool_ is x.dtype else int
        beta, alpha = kind(beta), kind(alpha)
    scaled = product if alpha == 1 else multiply(product, alpha)
    if isinstance(beta, (int, float)) and beta == 0:
        return scaled  # whatever x is, NaN too
    return add(x if beta == 1 else multiply(x, beta), scaled)


def cross(x: Array, y: Array, axis: int = -1) -> Array:
    """Return the vector product along ``axis``, of size 3; other axes broadcast."""
    shape = broadcast_shapes("cross", x.shape, y.shape)
    place = normalize_axis("cross", axis, len(shape)) - len(shape)
    if -place > min(x.ndim, y.ndim) or x.shape[place] != 3 or y.shape[place] != 3:
        raise ShapeError(f"[cross] the axis {axis} of shapes {x.shape} and {y.shape} has size 3 in both.")
    (a, b, c), (d, e, f) = ([narrow(z, place, i, 1) for i in range(3)] for z in (x, y))
    parts = ((b, f, c, e), (c, d, a, f), (a, e, b, d))
    return concat([subtract(multiply(p, q), multiply(r, s)) for p, q, r, s in parts], place + len(shape))


# --- statistics of several ----------------------------------------------------------------------------------------


def nansum(x: Array, axis: Axis = None, keepdims: bool = False, dtype: Dtype = None) -> Array:
    """Sum over ``axis``, ignoring NaN."""
    return sum(where(isnan(x), 0, x), axis, keepdims, dtype)


def nanmean(x: Array, axis: Axis = None, keepdims: bool = False, *, dtype: Dtype = None) -> Array:
    """Return the mean over ``axis`` of x, cast to ``dtype`` if given, ignoring NaN; NaN where there are no numbers."""
    x = x if dtype is None else cast(x, as_dtype(dtype))
    count = sum(logical_not(isnan(x)), axis, keepdims)
    total = nansum(x, axis, keepdims, dtype=None if x.dtype.is_float and x.dtype.itemsize > 2 else float32)
    quotient = divide(total, cast(count, total.dtype))
    return cast(quotient, x.dtype) if x.dtype.is_float else quotient


def var_mean(x: Array, axis: Axis = None, correction: float = 1, keepdims: bool = False) -> tuple[Array, Array]:
    """Return the variance, with divisor n - ``correction``, and the mean."""
    return var(x, axis, correction, keepdims), mean(x, axis, keepdims)


def std_mean(x: Array, axis: Axis = None, correction: float = 1, keepdims: bool = False) -> tuple[Array, Array]:
    """Return the standard deviation, with divisor n - ``correction``, and the mean."""
    return std(x, axis, correction, keepdims), mean(x, axis, keepdims)


def cov(x: Array, correction: int = 1, fweights: Array | None = None, aweights: Array | None = None) -> Array:
    """Return the covariances of the rows of ``x``, with divisor n - ``correction``; a number for one row.

    ``fweights`` repeat columns, ``aweights`` weight them."""
    rows = reshape(x, (1, x.size)) if x.ndim < 2 else x
    if rows.ndim != 2:
        raise ShapeError(f"[cov] takes a vector or a matrix of rows; got shape {x.shape}.")
    rows = rows if rows.dtype.is_inexact else cast(rows, float32)
    if fweights is not None and not fweights.dtype.is_integer:
        raise DTypeError(f"[cov] fweights must be integers; got {fweights.dtype.name}.")
    if any(w is not None and w.shape not in ((), rows.shape[1:]) for w in (fweights, aweights)):
        raise ShapeError(f"[cov] weights are numbers or vectors, a number for each of the {rows.shape[1]} columns.")
    weights = [cast(w, rows.dtype) for w in (fweights, aweights) if w is not None]
    if not weights:
        centred = subtract(rows, mean(rows, 1, keepdims=True))
        result = divide(matmul(centred, transpose(conj(centred))), rows.shape[1] - correction)
    else:
        w = weights[0] if len(weights) == 1 else multiply(*weights)
        total = sum(w)
        centred = subtract(rows, divide(sum(multiply(rows, w), 1, keepdims=True), total))
        loss: Any = correction
        if aweights is not None:
            loss = divide(multiply(sum(multiply(w, cast(aweights, w.dtype))), correction), total)
        result = divide(matmul(multiply(centred, w), transpose(conj(centred))), subtract(total, loss))
    return reshape(result, ()) if result.size == 1 else result


def corrcoef(x: Array) -> Array:
    """Return the correlations of the rows of ``x``, in [-1, 1]; a number for one row."""
    c = cov(x)
    if c.ndim == 0:
        return divide(c, c)
    deviations = sqrt(real(diagonal(c)))
    ratios = divide(divide(c, expand_dims(deviations, 1)), expand_dims(deviations, 0))
    if ratios.dtype.is_complex:
        return complex(clip(real(ratios), -1, 1), clip(imag(ratios), -1, 1))
    return clip(ratios, -1, 1)


def dist(x: Array, y: Array, p: float = 2) -> Array:
    """Return the p-norm of x - y."""
    return norm(subtract(x, y), ord=p)


def cdist(x: Array, y: Array, p: float = 2) -> Array:
    """Return the p-norms (…, m, k) of the differences of each row of ``x`` (…, m, n) and each row of ``y`` (…, k, n).

    The derivative at distance 0 is 0."""
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"[cdist] takes rows of one length; got shapes {x.shape} and {y.shape}.")
    return norm(subtract(expand_dims(x, -2), expand_dims(y, -3)), axis=-1, ord=p)
