"""Lengths compute what ints compute, for all lengths that satisfy their conditions."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, strategies as st

from runnel.core.lengths import Lengths, as_size, expected, is_static, largest, span

OPERATIONS = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, max, min)
COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)


def program(steps, symbols):
    """Compute with numbers by a list of steps; return the numbers, and the outcomes of comparisons."""
    numbers, outcomes = [*symbols, 1, 2, 3, 64, -1], []
    for kind, which, i, j in steps:
        a, b = numbers[i % len(numbers)], numbers[j % len(numbers)]
        if kind:
            outcomes.append(bool(COMPARISONS[which % len(COMPARISONS)](a, b)))
            continue
        operation = OPERATIONS[which % len(OPERATIONS)]
        if operation in (operator.floordiv, operator.mod) and b == 0:
            continue
        if operation is operator.mul and max(abs(expected(a)), abs(expected(b))) > 1 << 20:
            continue
        numbers.append(largest([a, b]) if operation is max else operation(a, b))
    return numbers, outcomes


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 41), st.integers(0, 30), st.integers(0, 30)), max_size=12)
SYMBOLS = st.lists(st.integers(2, 300), min_size=2, max_size=2)


@given(STEPS, SYMBOLS, st.lists(SYMBOLS, min_size=1, max_size=5))
def test_lengths_compute_as_ints(steps, first, others):
    lengths = Lengths()
    found, outcomes = program(steps, [lengths.symbol(n) for n in first])
    evaluate = lengths.evaluator([x for x in found if not is_static([x])])
    for values in (first, *others):
        evaluated = evaluate(values)
        if evaluated is None:
            assert values != first
            continue
        of_ints, also = program(steps, values)
        assert outcomes == also
        symbolic = iter(evaluated)
        assert [x if is_static([x]) else next(symbolic) for x in found] == of_ints


@pytest.mark.parametrize("key", [slice(1, None), slice(None, -1), slice(-3, None), slice(2, 9, 3), slice(None, 100)])
def test_spans_are_those_of_slices(key):
    lengths = Lengths()
    n = lengths.symbol(12)
    found = span(key, n)
    evaluate = lengths.evaluator(found)
    for size in range(2, 130):
        values = evaluate([size])
        if values is not None:
            start, stop, step = key.indices(size)
            assert values[1:] == (len(range(start, stop, step)), step)
            assert not values[1] or values[0] == start
    assert evaluate([12]) is not None


def test_a_length_that_is_asked_for_an_int_is_fixed():
    lengths = Lengths()
    n = lengths.symbol(5)
    assert lengths.vary()
    assert np.zeros(n).shape == (5,)
    assert not lengths.vary()
    assert lengths.evaluator([n])([5]) == (5,)
    assert lengths.evaluator([n])([6]) is None


def test_bounds_answer_without_a_condition():
    lengths = Lengths()
    n = lengths.symbol(5)
    assert n > 1
    assert n != 0
    assert 3 * n + 1 >= n
    assert (64 * n) % 64 == 0
    assert 64 * n // 32 is 2 * n
    assert as_size(n) is n
    with pytest.raises(TypeError, match="belongs to the program"):
        n.__reduce__()
    with pytest.raises(ValueError, match="at least 2; got 1"):
        lengths.symbol(1)
