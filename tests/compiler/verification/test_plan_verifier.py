"""Plans that were damaged on purpose are found out; sound ones pass (the whole suite runs with the verifier on)."""

from __future__ import annotations

import pytest

from runnel import ops
from runnel.compiler.plan_ir.calls import MemorySpace
from runnel.compiler.schedule import partition
from runnel.compiler.verification import footprint, verifier
from runnel.core.errors import VerifierError
from runnel.core.records import replace
from runnel.loops.ir import Update
from tests.compiler.harness import Traced
from tests.compiler.test_plans import make_training, numbers


@pytest.fixture(autouse=True)
def split_everything(monkeypatch):
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)


def chain(threads: int = 2):
    """Column sums, which need all rows, between maps over rows."""

    def fn(x):
        y = ops.exp(x)
        z = ops.tanh(y - y.sum(0, keepdims=True))
        return z * z.sum(0, keepdims=True) + y

    return Traced(fn, (numbers(40, 24),), threads=threads).plan


def refused(plan, message: str) -> None:
    with pytest.raises(VerifierError, match=message):
        verifier.verify(plan)


def test_sound_plans_pass():
    for threads in (1, 2, 3):
        verifier.verify(chain(threads))


def test_every_barrier_of_a_chain_is_needed():
    plan = chain()
    assert sum(plan.barriers) >= 2
    for at, stands in enumerate(plan.barriers):
        if stands:
            plan.barriers[at] = False
            refused(plan, f"no barrier between thread . in call {at} ")
            plan.barriers[at] = True
    verifier.verify(plan)


def test_a_training_step_without_barriers_is_refused():
    step, _ = make_training()
    x, y = numbers(24, 20), ops.argmax(numbers(24, 5), 1)
    plan = Traced(step, (x, y), threads=2).plan
    plan.barriers[:] = [False] * len(plan.barriers)
    refused(plan, "no barrier")


def test_one_thread_needs_no_barrier():
    plan = chain(1)
    plan.barriers[:] = [False] * len(plan.barriers)
    verifier.verify(plan)


def alive_together(plan):
    lives = plan.arena.lives
    return next(
        (a.allocation, b.allocation)
        for a in lives
        for b in lives
        if a is not b and a.first <= b.last and b.first <= a.last
    )


def test_places_alive_together_may_not_overlap():
    plan = chain(1)
    a, b = alive_together(plan)
    low, high = sorted((a, b), key=lambda allocation: allocation.offset)
    high.offset = low.offset + low.nbytes - 4
    refused(plan, "are both alive at call")


def test_places_lie_inside_the_arena():
    plan = chain(1)
    plan.arena.lives[0].allocation.offset = plan.arena.peak
    refused(plan, f"and the arena has {plan.arena.peak} bytes")


def test_a_value_may_not_be_overwritten_before_it_is_read(monkeypatch):
    """The simulation finds it by itself, without the comparison of places."""
    monkeypatch.setattr(verifier, "_places", lambda plan: iter(()))
    plan = chain(1)
    calls = plan.calls
    written = {
        a.allocation for c in calls[:1] for a in c.accesses if a.writes and a.allocation.space is MemorySpace.ARENA
    }
    first = next(p for p in written if any(a.allocation is p for a in calls[-1].accesses))
    between = next(a.allocation for c in calls[1:-1] for a in c.accesses if a.writes and a.allocation is not first)
    between.offset = first.offset
    refused(plan, "do not hold its value")


def test_calls_out_of_order_read_what_is_not_there():
    plan = chain(1)
    for in_order in (plan.calls, plan.blocks, plan.barriers):
        in_order.reverse()
    refused(plan, "do not hold its value")


def test_blocks_cover_everything_once():
    for change in (lambda b: (b[0], b[1] - 1, b[2], b[3]), lambda b: (b[0], b[1] + 1, b[2], b[3])):
        plan = chain()
        at = next(i for i, c in enumerate(plan.calls) if c.rows > 1)
        plan.blocks[at][0] = change(plan.blocks[at][0])
        refused(plan, "do not cover its")


def test_accesses_stay_inside_their_places():
    plan = Traced(lambda x: ops.exp(x[1:, 1:]), (numbers(9, 9),)).plan
    plan.calls[0].accesses[0].offset += 1
    refused(plan, "reaches for bytes .* of 'arg0' through 'b0', and it has 324")


def test_strides_are_read_from_the_params():
    plan = Traced(lambda x: ops.exp(x[:, 1:]), (numbers(9, 9),)).plan
    plan.calls[0].params[0] += 2
    refused(plan, "reaches for bytes")


def test_inputs_are_not_written():
    plan = Traced(lambda x: ops.exp(x), (numbers(9, 9),)).plan
    plan.calls[0].accesses[1].allocation = plan.inputs[0]
    refused(plan, "writes to the input 'arg0'")


def test_accesses_admit_that_they_write():
    plan = Traced(lambda x: ops.exp(x), (numbers(9, 9),)).plan
    plan.calls[0].accesses[1].writes = False
    refused(plan, "through an access that says it only reads")


def test_a_product_is_not_stored_over_its_operand():
    plan = Traced(lambda x: ops.exp(x) @ ops.exp(x), (numbers(8, 8),), fuse=False).plan
    product = plan.calls[-1]
    product.accesses[2].allocation = product.accesses[0].allocation
    refused(plan, "at other points")


def test_reading_shifted_what_is_overwritten_is_refused():
    plan = Traced(lambda x: ops.exp(x)[1:] + ops.tanh(x)[1:], (numbers(50),), fuse=False).plan
    last = plan.calls[-1]
    last.accesses[2].allocation = last.accesses[0].allocation
    refused(plan, "at other points")


def test_dtypes_of_places_and_buffers_agree():
    plan = Traced(lambda x: ops.exp(x), (numbers(9, 9),)).plan
    half = Traced(lambda x: x + 1.0, (ops.cast(numbers(9, 9), "float16"),)).plan
    plan.calls[0].accesses[0].allocation = half.inputs[0]
    refused(plan, "to one of float16")


def test_kernels_are_verified_too():
    plan = Traced(lambda x: ops.exp(x), (numbers(9, 9),)).plan
    kernel = plan.calls[0].kernel
    plan.calls[0].kernel = replace(kernel, body=(Update("nobody", kernel.body[0].body[0].body[0].value),))
    refused(plan, "'nobody' is not an accumulator")


def test_a_plan_in_too_many_pieces_is_let_pass(monkeypatch):
    monkeypatch.setattr(footprint, "LARGEST", 1)
    plan = chain()
    plan.barriers[:] = [False] * len(plan.barriers)
    verifier.verify(plan)
