"""Long programs: where the commit point stands, and that records cut short compute the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel.backends.base import COMMIT
from runnel.compile import compile
from runnel.compiler.plan_ir.calls import Call, MemorySpace
from runnel.compiler.program import Program
from runnel.compiler.schedule import partition
from runnel.core import switches


def written(call: Call) -> list[int]:
    return [a.allocation.index for a in call.accesses if a.writes and a.allocation.space is MemorySpace.VARIABLE]


def product(m: int, k: int, n: int) -> Call:
    x, w = rn.ones((m, k)), rn.ones((k, n))
    (call,) = compile(lambda x, w: x @ w).program(x, w).plan.calls
    return call


CALLS = [
    product(130, 70, 1100),
    product(1030, 5, 40),
    compile(lambda x: x.sum(1)).program(rn.ones((90, 50))).plan.calls[0],
]


@settings(deadline=None, max_examples=100)
@given(st.data(), st.sampled_from(CALLS), st.floats(0.05, 30))
def test_pieces_cover_a_block_once_each(data: st.DataObject, call: Call, parts: float) -> None:
    i0 = data.draw(st.integers(0, call.rows - 1))
    i1 = data.draw(st.integers(i0 + 1, call.rows))
    j0, j1 = (0, call.columns) if call.split == "rows" else (3, data.draw(st.integers(4, call.columns)))
    counts = np.zeros((call.rows, call.columns), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "PIECE", call.seconds / parts)
        for a, b, c, d in partition.pieces(call, (i0, i1, j0, j1)):
            assert a < b and c < d
            assert call.split != "rows" or (c, d) == (j0, j1)
            counts[a:b, c:d] += 1
    expected = np.zeros_like(counts)
    expected[i0:i1, j0:j1] = 1
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(700, 300, 500), (64, 300, 1500), (2000, 64, 40)])
def test_cutting_records_changes_no_bit(
    shape: tuple[int, int, int], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k, n = shape
    rng = np.random.default_rng(m)
    x, w = (rn.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((m, k), (k, n)))
    v = rn.Variable(np.zeros(n, np.float32))

    def results() -> tuple[list[bytes], int]:
        @compile
        def step(x: rn.Tensor, w: rn.Tensor) -> tuple[rn.Tensor, ...]:
            y = (x @ w).tanh()
            v.assign(y.mean(0))
            return y, (y * 2).exp(), y.sum(1)

        state_bits = [r.numpy().tobytes() for r in (*step(x, w), v)]
        return state_bits, sum(map(len, Program(step.program(x, w).plan).buffer.commands))

    with switches.override(num_threads=threads):
        monkeypatch.setattr(partition, "LONG", 9.0)
        whole, few = results()
        monkeypatch.setattr(partition, "LONG", 0.0)
        monkeypatch.setattr(partition, "PIECE", 20e-6)
        cut, many = results()
    assert cut == whole and many > few


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("which", ["none", "early", "late"])
def test_the_seal_stands_once_before_the_first_change(
    which: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "LONG", 0.0)
    w, v = rn.ones((100, 100)), rn.Variable(np.zeros((100, 100), np.float32))

    @compile
    def step(x: rn.Tensor) -> rn.Tensor:
        if which == "early":
            v.assign(v + 1)
        for _ in range(5):
            x = x @ w
        if which == "late":
            v.assign(x)
        return x

    with switches.override(num_threads=threads):
        program = Program(step.program(rn.ones((100, 100))).plan)
    assert len(program.buffer.commands) == threads
    changes = [i for i, call in enumerate(program.plan.calls) if written(call)]
    assert partition.commit_point(program.plan.calls) == (changes[0] if changes else len(program.plan.calls))
    changing = {program.command(i, (0, 0, 0, 0))[1] for i in changes}  # their arguments
    for commands in program.buffer.commands:
        commits = np.flatnonzero(commands[:, 0] == COMMIT)
        assert len(commits) == (which != "none")
        if which != "none":
            assert not changing & set(commands[: commits[0], 1].tolist())
            assert any(np.isin(commands[commits[0] :, 1], list(changing))) or threads > 1


def test_short_programs_have_neither_seal_nor_pieces() -> None:
    v = rn.Variable(np.zeros(4, np.float32))

    @compile
    def step() -> None:
        v.assign(v + 1)

    program = Program(step.program().plan)
    assert not program.buffer.is_long
    assert COMMIT not in program.buffer.commands[0][:, 0]
    frame = program.frame()
    assert frame.run == frame.launch.run
