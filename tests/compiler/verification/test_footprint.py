"""Footprints are the bytes that kernels touch: compared with the sets that plain loops give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from runnel import ops
from runnel.compiler.verification import footprint
from runnel.compiler.verification.footprint import TooLarge, common, footprints, merged, missing, runs_of
from tests.compiler.harness import Traced
from tests.compiler.test_plans import numbers

steps = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(0, 4), st.integers(-9, 9)).map(lambda t: (t[0], t[0] + t[1], t[2])),
    max_size=4,
)
ranges = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 6)), max_size=8).map(
    lambda pairs: np.array([[b, b + n] for b, n in pairs], np.int64).reshape(-1, 2)
)


def bytes_of(pieces: np.ndarray) -> set[int]:
    return {byte for begin, end in pieces for byte in range(begin, end)}


@settings(deadline=None, max_examples=200)
@given(st.integers(-5, 5), steps, st.sampled_from([1, 2, 4, 8]))
def test_runs_are_the_bytes_of_all_positions(start, loops, size):
    expected = {
        (start + sum(x * stride for x, (_, _, stride) in zip(point, loops, strict=True))) * size + byte
        for point in itertools.product(*(range(begin, end) for begin, end, _ in loops))
        for byte in range(size)
    }
    actual = runs_of(start, loops, size)
    assert bytes_of(actual) == expected
    assert (actual[1:, 0] > actual[:-1, 1]).all()


@settings(deadline=None, max_examples=200)
@given(ranges, ranges)
def test_common_and_missing(a, b):
    a, b = merged(a), merged(b)
    both = common(a, b)
    assert (both is not None) == bool(bytes_of(a) & bytes_of(b))
    if both is not None:
        assert set(range(*both)) <= bytes_of(a) & bytes_of(b)
    assert (missing(a, b) is not None) == bool(bytes_of(a) - bytes_of(b))


def test_dense_blocks_are_one_run_and_columns_many():
    plan = Traced(lambda x: ops.exp(x[:, 1:]), (numbers(30, 20),)).plan
    (call,) = plan.calls
    read, written = footprints(call, (0, 30, 0, 19))
    assert (read.writes, written.writes) == (False, True)
    assert written.runs.tolist() == [[0, 30 * 19 * 4]]
    assert len(read.runs) == 30
    half = footprints(call, (10, 20, 0, 8))[1]
    assert half.runs.tolist() == [[(r * 19) * 4, (r * 19 + 8) * 4] for r in range(10, 20)]


def test_positions_from_data_stay_inside_their_clamp():
    plan = Traced(lambda x: ops.take(x, ops.argmax(x, 0), 0), (numbers(6, 5),)).plan
    table = [f for call in plan.calls if call.kernel.name.startswith("gather")
             for f in footprints(call, (0, call.rows, 0, call.columns)) if f.path is None]  # fmt: skip
    assert [f.runs.tolist() for f in table] == [[[0, 6 * 5 * 4]]]


def test_too_many_pieces_are_refused(monkeypatch):
    monkeypatch.setattr(footprint, "LARGEST", 8)
    (call,) = Traced(lambda x: ops.exp(x[:, 1:]), (numbers(30, 20),)).plan.calls
    with pytest.raises(TooLarge):
        footprints(call, (0, 30, 0, 19))


def test_lists_lead_to_their_elements_alone():
    """A product over the interior of an array goes by lists of offsets: it reads no border."""

    def f(x, w):
        return ops.tensordot(x[:, 1:-1, 1:-1], w, ((0,), (0,)))

    plan = Traced(f, (numbers(3, 6, 7), numbers(3, 2))).plan
    call = next(c for c in plan.calls if c.kernel.name.startswith("contract"))
    inside = np.arange(3 * 6 * 7).reshape(3, 6, 7)[:, 1:-1, 1:-1].reshape(-1)
    read = next(f for f in footprints(call, (0, call.rows, 0, call.columns)) if f.buffer == "b0")
    assert any(f.buffer == "b2" for f in footprints(call, (0, call.rows, 0, call.columns)))
    assert bytes_of(read.runs) == {4 * int(at) + byte for at in inside for byte in range(4)}
