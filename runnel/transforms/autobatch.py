"""``autobatch``: run a function of one sample, written in any Python, for many samples at once."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.core import pytree
from runnel.core.errors import ArgumentError, GradientError, LevelError, ShapeError
from runnel.core.functions import FunctionLike
from runnel.ops import stack
from runnel.tensor import tensor as tensors
from runnel.tensor.creation import asarray
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import MultiResultRecord, results_of
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor, from_numpy
from runnel.tensor.trace import ACTIVE
from runnel.transforms.autobatching.recording import Earlier, Known, Pending, Recording
from runnel.transforms.autobatching.schedules import Rows


class Report(NamedTuple):
    """The work of a call. Times are in seconds; a backward pass adds to them when it runs."""

    samples: int
    calls: int  # of pieces, as the function made them
    groups: int  # of calls that ran together
    read: int  # bytes that groups read
    copied: int  # bytes of those that were not adjacent
    recording: float
    tracing: float
    scheduling: float
    copies: float
    programs: float

    def __str__(self) -> str:
        steps = ("recording", "tracing", "scheduling", "copies", "programs")
        total = sum(getattr(self, step) for step in steps)
        shares = ", ".join(f"{step} {100 * getattr(self, step) / (total or 1):.0f} %" for step in steps)
        return (
            f"{self.samples} samples: {self.calls} calls in {self.groups} groups; "
            f"{100 * self.copied / max(self.read, 1):.0f} % of the bytes read were gathered. Time: {shares} of "
            f"{1e3 * total:.1f} ms."
        )


class Autobatch(FunctionLike):
    """A function of a list of samples: see :func:`autobatch`."""

    def __init__(self, function: Callable[..., Any], known: Known | None = None) -> None:
        self.__name__ = type(function).__name__
        functools.update_wrapper(self, function)
        self.function: Final = function
        self._known: Final = Known() if known is None else known

    def __get__(self, instance: Any, owner: type | None = None) -> Autobatch:
        return self if instance is None else Autobatch(self.function.__get__(instance), self._known)

    def __call__(self, samples: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        if ACTIVE.trace is not None or ACTIVE.level is not None:
            raise LevelError(
                f"[autobatch] '{self.__name__}' must be called outside compile, vmap, jvp and other batched functions; "
                "what it calls is compiled already."
            )
        samples = _listed(samples)
        recording = Recording(self._known)
        before = time.perf_counter()
        with recording:
            try:
                results = [self.function(recording.sample(x), *args, **kwargs) for x in samples]
            except RecursionError as error:
                raise _endless(self.__name__) from error
            leaves, structure = _alike(results)
            columns = [_column(recording, i, list(column)) for i, column in enumerate(zip(*leaves, strict=True))]
            times = recording.times
            times.recording += time.perf_counter() - before - times.tracing - times.scheduling - times.running
            recording.flush()
        self._known.last = recording, len(samples)
        return pytree.unflatten(structure, _ended(recording, columns))

    def one_by_one(self, samples: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """Return what a call returns, computed for one sample after another."""
        try:
            results = [self.function(sample, *args, **kwargs) for sample in _listed(samples)]
        except RecursionError as error:
            raise _endless(self.__name__) from error
        leaves, structure = _alike(results)
        columns = [list(column) for column in zip(*leaves, strict=True)]
        return pytree.unflatten(structure, [stack([*map(asarray, x)]) if _is_array(x[0]) else x for x in columns])

    def report(self) -> Report:
        """Return what the last call did, with its backward pass if that has run."""
        if self._known.last is None:
            raise ArgumentError(f"[autobatch] '{self.__name__}' must be called before its report is asked for.")
        recording, samples = self._known.last
        times = recording.times
        return Report(
            samples,
            recording.nodes,
            times.kernels,
            sum(run.schedule.read for run in recording.runs),
            sum(run.schedule.copied for run in recording.runs),
            times.recording,
            times.tracing,
            times.scheduling,
            times.copies,
            times.programs,
        )


def autobatch(fn: Callable[..., Any]) -> Autobatch:
    """Return a function that computes ``fn``, which takes one sample, for a list of samples at once.

    ``fn`` may be any Python: recursion over trees, loops over words, a stack that a parser keeps. It runs once
    for each sample; calls of modules, of compiled functions and of array functions are recorded instead of computed.
    Equal calls of all samples then run as one, as their dependences allow. Gradients go the same way.

    The result has the structure that ``fn`` returns, which is the same for all samples, with the tensors of all
    samples stacked along a new first axis, and other values in lists. Values and gradients of samples equal what
    :meth:`Autobatch.one_by_one` gives, bit for bit; sums over samples, such as gradients of weights, are added in
    another order. A value that ``fn`` looks at (``item()``, ``if``) makes what was recorded so far run at once.

    Args:
        fn: takes a sample and further arguments, which are the same for all samples. It may call modules with
            tensors, numbers, and tuples of them: each such call is one unit, which must depend on nothing else that
            changes. Other calls of modules, such as with trees or lists, run as Python.

    Example:
        >>> double = nn.Linear(2, 2)
        >>> @rn.autobatch
        ... def last(words):
        ...     state = rn.zeros(2)
        ...     for word in words:
        ...         state = double(state + word)
        ...     return state
        >>> last([[rn.ones(2)], [rn.ones(2), rn.ones(2)]]).shape
        (2, 2)
    """
    if not callable(fn):
        raise ArgumentError(f"[autobatch] fn must be a function; got {type(fn).__name__}.")
    return Autobatch(fn)


def _listed(samples: Any) -> list[Any]:
    if isinstance(samples, (str, bytes, dict)) or not hasattr(samples, "__iter__"):
        raise ArgumentError(f"[autobatch] samples must be a list of samples; got {type(samples).__name__}.")
    listed = list(samples)
    if not listed:
        raise ArgumentError("[autobatch] samples must not be empty.")
    return listed


def _endless(name: str) -> ArgumentError:
    return ArgumentError(
        f"[autobatch] '{name}' calls itself too deeply: a sample has a cycle, or is deeper than Python's limit "
        "(sys.setrecursionlimit)."
    )


def _is_array(x: Any) -> bool:
    return isinstance(x, (ArrayMethods, np.ndarray))


def _alike(results: Sequence[Any]) -> tuple[list[list[Any]], pytree.Structure]:
    """Return the leaves of each result, and the structure of all."""
    pairs = [pytree.flatten(x) for x in results]
    first = pairs[0][1]
    for i, (_, structure) in enumerate(pairs):
        if structure != first:
            raise ArgumentError(
                f"[autobatch] the function must return the same structure for all samples; got {first!r} for sample 0 "
                f"and {structure!r} for sample {i}."
            )
    return [leaves for leaves, _ in pairs], first


def _column(recording: Recording, place: int, values: list[Any]) -> list[Any]:
    """Return the values of all samples at a place of the results, ready to run."""
    if not any(map(_is_array, values)):
        return values
    own = [recording.own(asarray(x)) for x in values]
    for i, x in enumerate(own):
        if x.aval is not own[0].aval:
            raise ShapeError(
                f"[autobatch] result {place} must have the same shape and dtype for all samples; got {own[0].aval} for "
                f"sample 0 and {x.aval} for sample {i}. Reduce it in the function, or pad it."
            )
    return own


def _ended(recording: Recording, columns: Sequence[list[Any]]) -> list[Any]:
    """Return the stacked values, with a record on the tape if they need one."""
    values: list[Any] = list(columns)
    ends: dict[int, Rows] = {}  # of the results that need gradients
    for i, column in enumerate(columns):
        if not isinstance(column[0], Pending):
            continue
        run, _ = column[0].located()
        array, rows = run.stacked(column[0].aval, np.asarray([x.located()[1] for x in column], np.int64))
        values[i] = from_numpy(array, column[0].dtype, copy=False)
        if RECORDING.get() and any(x._parts[2].needs_gradient for x in column):
            ends[i] = rows
    if not ends:
        return values
    outs = tuple([values[i] for i in ends])
    joint = tensors.from_storage(outs[0].aval, None)
    joint.requires_grad = True
    backward = _Backward(recording, list(ends.values()))
    joint._record = MultiResultRecord(None, backward.inputs, {}, outs, backward)
    for i, x in zip(ends, results_of(joint, outs), strict=True):
        values[i] = x
    return values


class _Backward:
    """The rule of the record of a call: from cotangents of results to cotangents of what was read outside."""

    def __init__(self, recording: Recording, ends: Sequence[Rows]) -> None:
        self._runs = recording.runs
        self._ends = ends
        reads = [x for run in self._runs for x in (*run.reads, *run.leaf_tensors)]
        self.inputs: Final = tuple({id(x): x for x in reads if x.requires_grad}.values())

    def __call__(self, cotangents: dict[int, Tensor], out: Tensor) -> list[Any]:
        if out.requires_grad:
            raise GradientError(
                "[autobatch] gradients of a batched call cannot be differentiated again; use one_by_one()."
            )
        totals: dict[int, np.ndarray] = {}

        def add(x: Tensor, g: np.ndarray) -> None:
            before = totals.get(id(x))
            if before is None:
                totals[id(x)] = g
            else:
                before += g

        for run in self._runs:
            run.begin_backward()
        for number, g in cotangents.items():
            rows = self._ends[number]
            self._runs[-1].seed(rows, g.numpy().reshape(rows.rows, -1))
        for run in reversed(self._runs):
            run.backward(add)
            for x, array in run.leaf_cotangents():
                if isinstance(x, Earlier):
                    x.run.add_cotangent(x.offset, array)
                elif x.requires_grad:
                    add(x, np.array(array))
            run.end_backward()
        return [None if id(x) not in totals else from_numpy(totals[id(x)], x.dtype, copy=False) for x in self.inputs]
