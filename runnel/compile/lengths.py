"""Lengths in an observed run: sizes of tensors that differed between calls are symbols (:mod:`runnel.core.lengths`).

The function sees its tensors and plain ints, as always. Runnel's own functions get a *stand-in* of a tensor whose sizes
differ: the same memory, with symbols in its shape. A size that they return becomes a number that may change
(``observe/numbers.py``) before the function sees it, and a length again where it is passed on.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any, Final

from runnel.compile.observe import numbers
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import Whole
from runnel.core.avals import ShapedArray, aval, row_major
from runnel.core.lengths import LEAST, Length, Lengths, is_static
from runnel.tensor import tracing
from runnel.tensor.dense import dense
from runnel.tensor.tensor import Tensor, from_storage

OF_TENSOR: Final = "shape, dtype or requires_grad of "  # begins the label of a check
_ARITHMETIC: Final = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


_SIZE: Final = "the size of axis "


def label_of(source: str, axis: int) -> str:
    """Return the name of a size, among the names of numbers that differ between calls."""
    return f"{_SIZE}{axis} of {source}"


def is_size(label: str) -> bool:
    """Return whether a number that differs between calls is a size."""
    return label.startswith(_SIZE)


def changed(label: str, was: Any, now: Any) -> list[str]:
    """Return the names of the sizes of a tensor that differ from ``was``; none where more than its lengths does.
    ``label`` is the label of a check."""
    if type(was) is not ShapedArray or type(now) is not Tensor or now.requires_grad:
        return []
    if now.dtype is not was.dtype or now.ndim != was.ndim:
        return []
    source = label.removeprefix(OF_TENSOR)
    pairs = list(enumerate(zip(was.shape, now.shape, strict=True)))
    if any(not isinstance(a, Length) and a != b and min(a, b) < LEAST for _, (a, b) in pairs):
        return []
    return [label_of(source, axis) for axis, (a, b) in pairs if isinstance(a, Length) or a != b]


class RunLengths:
    """The lengths of one run, whose sizes ``varying`` (:func:`label_of`) are symbols. Equal sizes are one symbol."""

    def __init__(self, varying: Collection[str], are_all: bool) -> None:
        self._varying = varying
        self._are_all = are_all  # sizes of all arguments are symbols
        self.lengths: Final = Lengths()
        self._by_value: Final[dict[int, Length]] = {}
        self.sources: Final[list[Source]] = []  # where the symbols are found
        self._avals: Final[dict[int, ShapedArray]] = {}  # of tensors with symbols in their shapes, by id
        self._stand_ins: Final[dict[int, Tensor]] = {}
        self._originals: Final[dict[int, Tensor]] = {}
        self._length_of: Final[dict[int, Length]] = {}  # by id of the number that the function sees

    @property
    def are_used(self) -> bool:
        return bool(self.lengths.symbols)

    def begin(self, rec: Recorder) -> None:
        """Let the functions of the run make numbers of lengths."""
        self.lengths.number = lambda length: rec.session.number(rec, self._float(rec, length))

    def found(self, rec: Recorder, value: Tensor, source: Source) -> ShapedArray:
        """Return the aval of a tensor that was found at ``source``, with a symbol for each size that differs."""
        shape = [self._size(rec, n, source, axis) for axis, n in enumerate(value.shape)]
        if is_static(shape) or value.requires_grad:
            return value._aval
        return self._avals.setdefault(id(value), aval(tuple(shape), value.dtype, value._aval.device))

    def _size(self, rec: Recorder, n: int, source: Source, axis: int) -> Any:
        if n < LEAST or not ((self._are_all and source.is_argument) or label_of(source.label, axis) in self._varying):
            return n
        if n not in self._by_value:
            self._by_value[n] = self.lengths.symbol(n)
            at = rec.log.source(source, f"{{p}}._aval.shape[{axis}]", label_of(source.label, axis), n)
            self.sources.append(at)
        return self._by_value[n]

    def stand_in(self, rec: Recorder, value: Tensor) -> Tensor:
        """Return the stand-in of a tensor; the tensor itself if it has none."""
        known = self._stand_ins.get(id(value))
        if known is not None:
            return known
        shape_and_dtype = self._avals.get(id(value))
        if shape_and_dtype is None:
            return value
        with tracing.activate(None):
            content = dense(value)  # as the program will read it
        twin = from_storage(shape_and_dtype, content._storage, content._layout[0], row_major(shape_and_dtype.shape))
        twin._serial = value._serial  # it belongs outside
        self._stand_ins[id(value)], self._originals[id(twin)] = twin, value
        rec.sources[id(twin)] = rec.sources[id(value)]
        rec.keep(twin)
        return twin

    def seen(self, rec: Recorder, value: Any) -> Any:
        """Return a result of Runnel's own code as the function sees it."""
        kind = type(value)
        if kind is Length:
            return self._number(rec, value)
        if kind is Tensor:
            return self._originals.get(id(value), value)
        if (kind is list or isinstance(value, tuple)) and any(isinstance(x, (Length, Tensor, tuple)) for x in value):
            parts = [self.seen(rec, x) for x in value]
            if all(a is b for a, b in zip(parts, value, strict=True)):
                return value
            return parts if kind is list else tuple.__new__(kind, parts)
        return value

    def _number(self, rec: Recorder, length: Length) -> Any:
        """Return the number that the function sees in place of a length."""
        if length in self.lengths.symbols:
            number = numbers.symbol(rec, length.value, self.sources[self.lengths.symbols.index(length)])
        else:
            places = ", ".join(map(str, self.sources))
            source = rec.log.computed(self.lengths.text(length), tuple(self.sources), f"a size of {places}", ())
            number = numbers.symbol(rec, length.value, source)
        self._length_of[id(number)] = length
        return number

    def _float(self, rec: Recorder, length: Length) -> Any:
        return numbers.computed(rec, "float({a0})", (self._number(rec, length),), float(length.value))

    def length_of(self, value: Any) -> Any:
        """Return the length that a number is, or None."""
        return self._length_of.get(id(value))

    def computed(self, symbol: str, a: Any, b: Any, result: Any) -> None:
        """Note that the function computed ``result`` from numbers, perhaps lengths."""
        apply = _ARITHMETIC.get(symbol)
        operands = [self._length_of.get(id(x), x) for x in (a, b)]
        if apply is None or type(result) is not Whole or not all(type(x) in (int, Length) for x in operands):
            return
        length = apply(*operands)
        if isinstance(length, Length):
            self._length_of[id(result)] = length
