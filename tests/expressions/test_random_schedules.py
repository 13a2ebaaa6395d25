"""Random schedules: the nest changes, the result does not, and no element out of place is touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel.backends.interpreter import kernels as interpreter
from runnel.core.errors import ExpressionError
from runnel.expressions import nest, solving
from runnel.expressions.candidates import automatic
from runnel.expressions.lowering import dense_nest, kernel
from runnel.expressions.resolving import resolved
from runnel.expressions.schedule import Schedule
from runnel.expressions.solving import Solved, solved
from runnel.loops import verifier

CASES = (
    ("C[i, j] += A[i, k] * B[k, j]", ((7, 5), (5, 21))),
    ("C[i, j] += A[i, k] * B[k, j]", ((2, 30), (30, 3))),
    ("O[n, y, x] += I[n, y + i, x + j] * W[i, j]", ((2, 6, 21), (3, 3))),
    (
        "O[y: 6, x: 19] += I[y + i - 1, x + j - 1] * W[i, j] where 0 <= y + i - 1 < 6, 0 <= x + j - 1 < 19",
        ((6, 19), (3, 3)),
    ),
    ("O[2*q + i: 9, 2*p + j: 40] += G[q, p] * W[i, j]", ((4, 19), (3, 3))),
    ("O[i: 19] += I[k: 19] where i - k < 19", ((19,),)),
    ("O[2*i: 20] += I[2*i: 20, j]", ((20, 4),)),
    ("O[i] max= I[2*i + j, k] where j < 3", ((11, 4),)),
    ("O[3*i + 2*j: 33] min= I[i, j]", ((6, 9),)),
    ("O[i, j] = exp(A[j, i]) - A[i, 0]", ((7, 7),)),
    ("O[i + 1: 9, j: 5] = A[i, j] where i < 7, j < 4", ((7, 4),)),
    ("O[] *= A[i, j]", ((5, 3),)),
    ("O[i, i: 5] += A[i, j]", ((5, 3),)),
    ("O[i] += I[i, k] where 7*i - k < 20, k < 19", ((3, 20),)),
    ("O[g: 3, y] += I[n, k, y] where 0 <= k - 3*g < 3", ((3, 9, 2),)),
    ("O[g: 3] += I[k, n] where 0 <= k - 3*g < 3", ((9, 5),)),
)


def arrays_of(expression: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    pairs = zip(expression.names, expression.shapes, strict=True)
    return {name: rng.standard_normal(shape).astype(np.float32).reshape(-1) for name, shape in pairs}


def computed(schedule: Schedule) -> bytes:
    """The result of a schedule on two threads, by the interpreter, which checks each position."""
    expression = schedule.solved.expression
    dense = dense_nest(schedule)
    written = kernel(dense)
    verifier.verify(written)
    arrays = arrays_of(expression)
    arrays[expression.name] = np.full(int(np.prod(expression.shape)), np.nan, np.float32)
    arrays |= {cache.buffer: np.full(cache.size, np.nan, np.float32) for cache in dense.caches.values()}
    for i0, i1 in ((0, dense.rows // 2), (dense.rows // 2, dense.rows)):
        if i0 < i1:
            interpreter.run(written, arrays, {}, i0, i1)
    return arrays[expression.name].tobytes()


def by_machine_code(schedule: Schedule) -> bytes:
    expression = schedule.solved.expression
    function = rn.expressions.tensor_expr(expression.text).scheduled(schedule)
    arrays = arrays_of(expression)
    pairs = zip(expression.names, expression.shapes, strict=True)
    return function(*(rn.asarray(arrays[name].reshape(shape)) for name, shape in pairs)).numpy().tobytes()


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """A schedule made by primitives that are chosen at random; those that are refused are left out."""
    text, shapes = draw(st.sampled_from(CASES))
    schedule = Schedule(solved(resolved(text, shapes)))
    for _ in range(draw(st.integers(1, 9))):
        names = st.sampled_from([x.name for x in schedule.loops] or ["i"])
        primitive = draw(
            st.sampled_from(
                ("split", "split", "tile", "reorder", "reorder", "fuse", "vectorise", "unroll", "parallel", "cache")
            )
        )
        try:
            if primitive == "split":
                schedule.split(draw(names), draw(st.integers(1, 18)))
            elif primitive == "tile":
                schedule.tile(draw(names), draw(names), draw(st.integers(1, 5)), draw(st.integers(1, 17)))
            elif primitive == "reorder":
                schedule.reorder(*draw(st.lists(names, min_size=2, max_size=4, unique=True)))
            elif primitive == "fuse":
                at = draw(st.integers(0, max(len(schedule.loops) - 2, 0)))
                schedule.fuse(*(x.name for x in schedule.loops[at : at + 2]))
            elif primitive == "cache":
                operand = draw(st.sampled_from(schedule.solved.expression.names))
                schedule.cache(operand)
                schedule.compute_at(operand, draw(names))
            else:
                schedule.apply((primitive, draw(names)))
        except (ExpressionError, TypeError):
            continue
    return schedule


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(((1024, 64), (2, 2), (3, 2), (2, 4))))
def test_a_schedule_never_changes_a_result(data: st.DataObject, lengths: tuple[int, int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solving, "LONGEST", lengths[0])  # chains of few terms, and few chains in a block
        patch.setattr(nest, "CHAIN", lengths[1])
        patch.setattr(interpreter, "CHAIN", lengths[1])
        schedule = data.draw(schedules())
        try:
            actual = computed(schedule)
        except ExpressionError as error:  # loops that no nest can be made of
            assert str(error).startswith("[schedule]")
            return
        assert actual == computed(Schedule(schedule.solved)), str(schedule)


@settings(max_examples=12, deadline=None)
@given(schedules())
def test_machine_code_has_the_same_bits(schedule: Schedule) -> None:
    try:
        actual = by_machine_code(schedule)
    except ExpressionError:
        return
    assert actual == by_machine_code(Schedule(schedule.solved)), str(schedule)


def test_the_automatic_schedule_has_the_same_bits() -> None:
    for text, shapes in CASES:
        expression: Solved = solved(resolved(text, shapes))
        assert computed(automatic(expression)) == computed(Schedule(expression)), text


def test_caches_stay_inside_their_arrays_where_loops_continue() -> None:
    """Two fused loops of 5 × 5 elements, split by 2 and fused again, make 26 rounds: the last one is of row 5."""
    schedule = Schedule(solved(resolved("O[i, i: 5] += A[i, j]", ((5, 3),))))
    plain = computed(schedule)
    schedule.fuse("i", "o1")
    schedule.cache("A")
    schedule.compute_at("A", "i_o1")
    schedule.split("i_o1", 2)
    schedule.fuse("i_o1_0", "i_o1_1")
    assert computed(schedule) == plain == by_machine_code(schedule)
