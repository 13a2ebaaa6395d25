"""Infer results of operations before they run, by calling functions on abstract values and trying unknown sizes.

Two sizes replace an unknown one in turn. Sizes of the result that are the same for both do not depend on it; the others
are unknown. If the function rejects both, other sizes are tried: sizes next to it, sizes among the arguments and their
products (for reshapes), and small ones. This finds a size that must equal another.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from runnel.core import pytree
from runnel.core.avals import ShapedArray, aval
from runnel.core.caching import Recent
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import float32
from runnel.core.errors import GradientError, MissingRuleError, RunnelError, ShapeError
from runnel.declarative.operation import Dims, Static
from runnel.tensor.creation import asarray
from runnel.tensor.tracer import Tracer

_SIZES: Final = (240, 480)  # with many divisors, so that reshapes find some
_RANKS: Final = (2, 1, 4, 3, 0, 5)  # tried for tensors of which not even the number of axes is known
_MOST: Final = 400  # assignments of sizes that are tried
_SMALL: Final = range(2, 65)  # sizes that are tried last, the same for all axes
_KNOWN: Final[Recent[Hashable, tuple[list[Static], Any]]] = Recent(4096)
_DERIVABLE: Final[Recent[Hashable, bool]] = Recent(4096)


class Results(NamedTuple):
    """The avals of a function's results, and their structure."""

    avals: list[ShapedArray]
    structure: Any


def abstract(function: Callable[..., Any], avals: Sequence[ShapedArray]) -> Results:
    """Return the avals of what ``function`` returns on tensors of these avals."""
    with Tracer() as tracer:
        inputs = [tracer.argument(x, f"x{i}") for i, x in enumerate(avals)]
        leaves, structure = pytree.flatten(function(*inputs))
        avals = [(x if isinstance(x, TensorLike) else asarray(x)).aval.unplaced for x in leaves]
    return Results(avals, structure)


def outputs(
    name: str, function: Callable[..., Any], key: Hashable, statics: Sequence[Static], hints: Sequence[int] = ()
) -> tuple[list[Static], Any]:
    """Return what is known of the results of ``function``, and their structure.

    ``key`` distinguishes the function from others; ``hints`` are sizes that unknown axes may have.

    Raises:
        ShapeError: no sizes of the unknown axes fit. If all sizes are known, the function's own error.
    """
    place = (key, tuple(statics))
    try:
        results = _KNOWN.get(place)
    except TypeError:  # an argument is not hashable
        place, results = None, None  # type: ignore[assignment]
    if results is None:
        results = _inferred(name, function, statics, hints)
        if place is not None:
            _KNOWN[place] = results
    return results


def _inferred(
    name: str, function: Callable[..., Any], statics: Sequence[Static], hints: Sequence[int]
) -> tuple[list[Static], Any]:
    if all(x.is_complete for x in statics):
        results = abstract(function, _avals(statics, (), 0))
        return [Static(x.shape, x.dtype) for x in results.avals], results.structure
    first_error: Exception | None = None
    ranks_are_known = all(x.shape is not None for x in statics)
    for ranked in _with_ranks(statics):
        count = len(_unknown(ranked))
        for chosen in _choices(ranked, count, hints) if ranks_are_known else [(None,) * count]:
            first, error = _tried(function, ranked, chosen, 0)
            first_error = first_error or error
            second = None if first is None else _tried(function, ranked, chosen, 1)[0]
            if first is not None and second is not None and len(first.avals) == len(second.avals):
                typed = all(x.dtype is not None for x in statics)
                pairs = zip(first.avals, second.avals, strict=True)
                return [_common(a, b, ranks_are_known, typed) for a, b in pairs], first.structure
    if not ranks_are_known:  # the ranks may differ: the function is taken to give one tensor
        return [Static(None, statics[0].dtype)], pytree.LEAF
    listed = " and ".join(map(str, statics))
    raise ShapeError(f"[{name}] no sizes of the unknown axes of {listed} fit one another: {first_error}") from None


def require_derivative(
    derivative: Callable[..., Any], key: Hashable, statics: Sequence[Static], hints: Sequence[int] = ()
) -> None:
    """Raise GradientError or MissingRuleError if a function has no derivative.

    It calls ``derivative`` to find out. Sizes that do not fit are not an error, because the sizes of a run may fit.
    """
    place = (key, tuple(statics))
    try:
        if _DERIVABLE.get(place):
            return
    except TypeError:  # an argument is not hashable
        place = None  # type: ignore[assignment]
    ranks_are_known = all(x.shape is not None for x in statics)
    for ranked in _with_ranks(statics):
        count = len(_unknown(ranked))
        for chosen in _choices(ranked, count, hints) if ranks_are_known else [(None,) * count]:
            error = _tried(derivative, ranked, chosen, 0)[1]
            if isinstance(error, (GradientError, MissingRuleError)):
                raise error
            if error is None:
                if place is not None:
                    _DERIVABLE[place] = True
                return


def forced_sizes(function: Callable[..., Any], statics: Sequence[Static], hints: Sequence[int] = ()) -> list[Static]:
    """Return ``statics`` with those unknown sizes filled in that ``function`` leaves no choice for."""
    if any(x.shape is None for x in statics):
        return list(statics)
    unknown = _unknown(statics)
    if not unknown or any(_tried(function, statics, (None,) * len(unknown), i)[0] for i in (0, 1)):
        return list(statics)
    choices = _choices(statics, len(unknown), hints)
    fitting = [chosen for chosen in choices if _tried(function, statics, chosen, 0)[0] is not None]
    sizes = [{chosen[i] for chosen in fitting} for i in range(len(unknown))]
    forced = tuple([next(iter(fitting)) if len(fitting) == 1 else None for fitting in sizes])
    shapes = [list(x.shape or ()) for x in statics]
    for (i, axis), size in zip(unknown, forced, strict=True):
        shapes[i][axis] = size
    return [Static(tuple(shape), x.dtype) for shape, x in zip(shapes, statics, strict=True)]


def _tried(
    function: Callable[..., Any], statics: Sequence[Static], chosen: Sequence[int | None], number: int
) -> tuple[Results | None, Exception | None]:
    """Return the result of, or error for, chosen sizes, with size number ``number`` for the others."""
    try:
        return abstract(function, _avals(statics, chosen, number)), None
    except (RunnelError, ValueError, TypeError, IndexError, ArithmeticError) as error:
        return None, error


def _with_ranks(statics: Sequence[Static]) -> Iterator[list[Static]]:
    """Yield ``statics`` with a number of axes for those with an unknown rank."""
    if all(x.shape is not None for x in statics):
        yield list(statics)
        return
    for rank in _RANKS:
        yield [Static((None,) * rank, x.dtype) if x.shape is None else x for x in statics]


def _unknown(statics: Sequence[Static]) -> list[tuple[int, int]]:
    return [(i, axis) for i, x in enumerate(statics) for axis, n in enumerate(x.shape or ()) if n is None]


def _choices(statics: Sequence[Static], count: int, hints: Sequence[int]) -> Iterator[tuple[int | None, ...]]:
    """Yield sizes for the unknown axes, None for any; those that choose few come first."""
    known = sorted({n for x in statics for n in x.shape or () if n is not None} | {1, *hints})
    every = itertools.islice(itertools.product([None, *known], repeat=count), _MOST)
    yield from sorted(every, key=lambda chosen: sum(n is not None for n in chosen))
    if count:
        yield from ((n,) * count for n in _SMALL)


def _avals(statics: Sequence[Static], chosen: Sequence[int | None], number: int) -> list[ShapedArray]:
    rest = iter(chosen)
    avals = []
    for x in statics:
        shape = [next(rest) if n is None else n for n in x.shape or ()]
        avals.append(aval(tuple([_SIZES[number] if n is None else n for n in shape]), x.dtype or float32))
    return avals


def _common(a: ShapedArray, b: ShapedArray, whole: bool, typed: bool) -> Static:
    shape: Dims | None = None
    if whole and a.ndim == b.ndim:
        shape = tuple([n if n == m else None for n, m in zip(a.shape, b.shape, strict=True)])
    return Static(shape, a.dtype if typed or a.dtype.kind == "bool" else None)
