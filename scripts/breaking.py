"""A plugin of pytest for `scripts/mutations.py --rules`: breaks rules of ops in the tables, and says what is noticed.

Tests are collected once. Each broken rule is tried in a child of the process: first on the tests that name the op, and
if none of them fails, on all others that were collected, until the first failure.
"""

from __future__ import annotations

import copy
import os
import random
import re
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest
from _pytest import main as pytest_main

import runnel as rn
import runnel.expressions.views  # an op that is made late
from runnel import ops
from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import LOOPED
from runnel.core.dtypes import as_dtype
from runnel.core.rules import TRANSPOSED, Together, no_tangent
from runnel.core.tables import Op, abstract_eval, axes, jvp, lower, reference, vjp
from runnel.loops.rules import Elementwise, Reduction

FAMILIES: Final = {
    "arithmetic": "add sub mul div floor_divide remainder neg abs sign maximum minimum relu floor ceil round trunc",
    "transcendental": "exp expm1 log log1p log2 tanh sigmoid sin cos pow tan sinh cosh asinh acosh atanh asin atan2",
    "special": "erf erfc erfcx erfinv ndtr ndtri log_ndtr lgamma digamma polygamma i0 i0e i1 i1e nextafter copysign",
    "logic": "lt le gt ge eq ne and or xor not isnan isinf signbit where shift_left shift_right",
    "reductions": "sum prod max min any all cast_reduce",
    "views": "reshape permute broadcast slice concat pad cast affine_view im2col contiguous",
    "contractions": "matmul tensordot panel_product winograd winograd_gradient",
    "convolutions": "convolution convolution_input_gradient convolution_weight_gradient max_pool",
    "indexing": "take scatter_add label counting_sort segment_sums",
    "orders": "sort",
    "matrices": "solve eigh qr svd",
    "complex": "real imag conj pair",
    "attention": "attention attention_gradient sequence_offset sequence_length",
    "random": "random_bits iota",
    "control": "scan while_loop cond",
    "expressions": "tensor_expression optimization_barrier stop_gradient",
}
WIDER: Final = {
    "bool": "uint8", "uint8": "uint16", "uint16": "uint32", "uint32": "uint64", "uint64": "int64", "int8": "int16",
    "int16": "int32", "int32": "int64", "int64": "int32", "float16": "float32", "bfloat16": "float32",
    "float32": "float64", "float64": "float32", "complex64": "complex128", "complex128": "complex64",
}  # fmt: skip

SECONDS: Final = 900  # after which a child is ended, which counts as a failure


class _Seen:
    """The use of the broken rule in a child: True if it ``ran``, and if it then said anything ``else_``."""

    ran = False
    else_ = False


_NOTHING_ELSE: Final = 3  # exit codes of children in which no test failed
_NEVER_RAN: Final = 4
_LINE: Final = "\n{:15} {:28} {:12} {}"


def _changed(before: Any, after: Any) -> Any:
    """``after``, and a note whether it is not what was there ``before``."""
    _Seen.ran = True
    if before is not after:
        try:
            _Seen.else_ = _Seen.else_ or not np.array_equal(np.asarray(before), np.asarray(after), equal_nan=True)
        except Exception:  # no numbers yet: traced, or of a shape alone
            _Seen.else_ = True
    return after


def _each(results: Any, change: Callable[[Any], Any]) -> Any:
    return tuple(change(r) for r in results) if isinstance(results, (tuple, list)) else change(results)


def _last_changed(x: Any) -> Any:
    """The last element of an array is another number."""
    x = np.array(x)
    if x.size:
        last = x.reshape(-1)[-1]
        x.reshape(-1)[-1] = ~last if x.dtype == bool else last ^ 1 if x.dtype.kind in "iu" else last * 1.01 + 0.01
    return x


def _longer(a: ShapedArray) -> ShapedArray:
    return aval((*a.shape[:-1], a.shape[-1] + 1), a.dtype, a.device) if a.shape else a


def _no_zeros(a: ShapedArray) -> ShapedArray:
    return aval(tuple(size or 1 for size in a.shape), a.dtype, a.device)


def _wider(a: ShapedArray) -> ShapedArray:
    return aval(a.shape, as_dtype(WIDER[a.dtype.name]), a.device)


def _after(rule: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *args, **attrs: _each(rule(*args, **attrs), lambda x: _changed(x, change(x)))


def _scaled(x: Any) -> Any:
    """A cotangent or tangent, one in a thousand too large."""
    if x is None or not x.dtype.is_inexact:
        return _changed(x, x)
    return _changed(x, ops.multiply(x, 1.001))


def _broken_vjp(rule: Callable[..., Any]) -> Callable[..., Any]:
    def broken(*args: Any, **attrs: Any) -> Any:
        made = [None if part is None else part() if callable(part) else part for part in rule(*args, **attrs)]
        return tuple(map(_scaled, made))

    return broken


def _broken_jvp(rule: Any) -> Any:
    if isinstance(rule, Together):
        together = rule.rule

        def broken(*args: Any, **attrs: Any) -> Any:
            results, tangents = together(*args, **attrs)
            return results, [_scaled(t) for t in tangents]

        return Together(broken)
    return lambda *args, **attrs: [
        _each(term, _scaled) if isinstance(term, list) else _scaled(term) for term in rule(*args, **attrs)
    ]


def _broken_axes(rule: Any) -> Any:
    """With a new axis in front, the elements come in the opposite order."""
    changed = copy.copy(rule)
    batched = rule.batched

    def broken(*args: Any) -> Any:
        results = batched(*args)
        return None if results is None else _each(results, lambda x: _changed(x, ops.flip(x, 0)))

    object.__setattr__(changed, "batched", broken)
    return changed


def _sibling(op: Op) -> Any:
    """Return the lowering of another op with as many operands."""
    rule = lower.get(op)
    if isinstance(rule, Reduction):
        return Reduction({"sum": "max", "max": "min", "min": "max", "prod": "sum", "any": "all", "all": "any"}[rule.op])
    if type(rule) is not Elementwise:
        return None
    alike = [
        other
        for other in Op.registry.values()
        if other is not op and type(lower.get(other)) is Elementwise and other.signature == op.signature
    ]
    return lower[alike[len(op.name) % len(alike)]] if alike else None


def breakages(op: Op) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Return the rules of the op that can be broken, by name: the last one says how."""
    yield "value", lambda: reference.register(op, _after(reference[op], _last_changed), replace=True)
    sibling = _sibling(op)
    if sibling is not None:
        yield "kernel", lambda: lower.register(op, sibling, replace=True)
    for name, change in (("shape", _longer), ("empty shape", _no_zeros), ("dtype", _wider)):
        yield (
            name,
            lambda change=change: abstract_eval.register(op, _after(abstract_eval[op], change), replace=True),
        )
    if op in vjp and jvp.get(op) is not no_tangent:
        yield "vjp", lambda: vjp.register(op, _broken_vjp(vjp[op]), replace=True)
        if jvp.get(op) not in (None, TRANSPOSED):
            yield "jvp", lambda: jvp.register(op, _broken_jvp(jvp[op]), replace=True)
    if op in axes and axes[op] is not LOOPED:
        yield "vmap", lambda: axes.register(op, _broken_axes(axes[op]), replace=True)


def _outcome(session: pytest.Session, items: list[pytest.Item], breaks: Callable[[], Any]) -> str:
    """Return the fate of ``items`` in a child with a broken rule: "found" if a test fails, or does not end."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        session.items, session.testsfailed = items, 0
        session.config.option.maxfail = 1
        try:
            breaks()
            pytest_main.pytest_runtestloop(session)
        except BaseException:  # whatever ends a run of tests is a failure
            os._exit(1)
        os._exit(1 if session.testsfailed else 0 if _Seen.else_ else _NOTHING_ELSE if _Seen.ran else _NEVER_RAN)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {0: "SURVIVES", _NOTHING_ELSE: "says the same", _NEVER_RAN: "NEVER RUNS"}.get(code, "found")


def _named(items: list[pytest.Item], name: str) -> list[pytest.Item]:
    word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")
    return [item for item in items if word.search(item.nodeid.replace("_", " " if "_" not in name else "_"))]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Instead of the tests: every breakage, and what became of it. Those that the tests which name the op do not notice
    are tried on all tests at the end."""
    each, seed = int(os.environ["BREAK_EACH"]), os.environ["BREAK_SEED"]
    wanted = [family for family in os.environ["BREAK_FAMILIES"].split(",") if family] or list(FAMILIES)
    only = os.environ.get("BREAK_ONLY", "")
    with os.fdopen(os.dup(sys.__stderr__.fileno()), "w", buffering=1) as out:
        _try_all(session, each, seed, wanted, only, lambda *words: print(_LINE.format(*words), file=out))
    return True


def _try_all(
    session: pytest.Session, each: int, seed: str, wanted: list[str], only: str, say: Callable[..., None]
) -> None:
    rn.asarray([1.0])
    later = []
    for family in wanted:
        every = FAMILIES[family].split()
        for name in random.Random(f"{family} {seed}").sample(every, min(each, len(every))):
            named = _named(session.items, name)
            for rule, breaks in breakages(Op.registry[name]):
                if only and not re.search(only, f"{name} {rule}"):
                    continue
                if _outcome(session, named, breaks) == "found":
                    say(family, name, rule, "found")
                else:
                    later.append((family, name, rule, breaks))
    for family, name, rule, breaks in later:
        say(family, name, rule, _outcome(session, session.items, breaks))
