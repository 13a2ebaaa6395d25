"""A program of :mod:`tests.ops.indexing.programs` in each mode, against jets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn
from tests.ops.indexing.jets import Array, Jet
from tests.ops.indexing.programs import Machine, Program, RunnelMachine, random_program, run

Parameters = dict[str, Array]
Function = Callable[..., Any]


def loss_of(program: Program) -> Function:
    """The program as a function of its parameters, in their order."""

    def loss(*values: Any) -> Any:
        return run(RunnelMachine(dict(zip(program.shapes, values, strict=True)), 0), program)

    return loss


def scanned(program: Program) -> Function:
    function = loss_of(program)

    def loss(*values: Any) -> Any:
        return rn.scan(lambda carry, x: (carry, function(*carry)), values, None, length=1)[1].sum()

    return loss


def chosen(program: Program) -> Function:
    function = loss_of(program)
    return lambda *values: rn.cond(values[0].sum() > -1e9, function, lambda *v: v[0].sum(), *values)


def checkpointed(program: Program) -> Function:
    function = loss_of(program)
    return lambda *values: rn.checkpoint(function, *values)


MODES: dict[str, Callable[[Program], Function]] = {
    "plain": loss_of, "checkpoint": checkpointed, "scan": scanned, "cond": chosen
}  # fmt: skip


def expected(program: Program, values: Parameters, directions: Parameters) -> Jet:
    """The loss as a jet."""
    count = sum(x.size for x in values.values())
    arrays, first = {}, 0
    for name, value in values.items():
        arrays[name] = Jet.parameter(value, first, directions[name], count)
        first += value.size
    with np.errstate(all="ignore"):
        jet: Jet = run(Machine(arrays, count), program)
    return jet


def flat(tensors: Any) -> Array:
    return np.concatenate([x.numpy().reshape(-1) for x in tensors])


def close(actual: Array, expected_result: Array, what: str) -> None:
    scale = max(1.0, float(np.abs(expected_result).max(initial=0.0)))
    np.testing.assert_allclose(actual / scale, expected_result / scale, rtol=1e-9, atol=1e-9, err_msg=what)


def check(seed: int, mode: str = "plain", *, compiled: bool = False, second: bool = False, length: int = 10) -> None:
    """Values, gradients and, if asked for, second derivatives of the program of ``seed`` agree with its jet."""
    rng = np.random.default_rng(seed)
    program = random_program(rng, length)
    values = {name: rng.normal(size=shape) for name, shape in program.shapes.items()}
    directions = {name: rng.normal(size=shape) for name, shape in program.shapes.items()}
    jet = expected(program, values, directions)
    if not np.isfinite(jet.both).all() or np.abs(jet.value) > 1e12:
        return
    function = MODES[mode](program)
    numbers = tuple(range(len(values)))
    both = rn.value_and_grad(function, numbers)
    tensors = [rn.asarray(x) for x in values.values()]
    value, gradients = both(*tensors)
    close(value.numpy(), jet.value, f"value of program {seed}")
    close(flat(gradients), jet.by, f"gradient of program {seed}")
    if mode == "plain":
        leaves = [rn.tensor(x, requires_grad=True) for x in values.values()]
        function(*leaves).backward()
        accumulated = [rn.zeros_like(x) if x.grad is None else x.grad for x in leaves]
        assert np.array_equal(flat(accumulated), flat(gradients)), f"backward() and grad() differ on program {seed}"
    if compiled:
        same_value, same_gradients = rn.compile(lambda *v: both(*v))(*tensors)
        assert np.array_equal(same_value.numpy(), value.numpy()), f"compiled value of program {seed}"
        assert np.array_equal(flat(same_gradients), flat(gradients)), f"compiled gradient of program {seed}"
    if second:

        def along(*v: Any) -> Any:
            actual = rn.grad(function, numbers)(*v)
            return sum((g * d).sum() for g, d in zip(actual, directions.values(), strict=True))

        close(flat(rn.grad(along, numbers)(*tensors)), jet.both, f"second derivative of program {seed}")


def run_random(seed: int) -> str:
    """Check the program of ``seed`` in the mode that the seed says: half of them with second derivatives, one in ten
    compiled."""
    mode, compiled = list(MODES)[seed % len(MODES)], seed % 10 == 9
    check(seed, mode, compiled=compiled, second=seed // len(MODES) % 2 == 0, length=5 if compiled else 10)
    return f"program {seed}, {mode}"
