"""The same numbers eagerly, compiled, on one thread and on two, on each device, and under ``vmap`` with keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.backends.cpu.target import AVX2, host
from runnel.core import switches

LAM = rn.asarray(np.linspace(0.1, 60, 24).reshape(4, 6).astype(np.float32))
DRAWS: dict[str, Callable[[Any], Any]] = {
    "normal": lambda k: rn.normal(LAM, 2.0, key=k),
    "truncated_normal": lambda k: rn.random.truncated_normal(0.0, 1.0, -1.0, LAM, key=k),
    "exponential": lambda k: rn.random.exponential(LAM, key=k),
    "gamma": lambda k: rn.random.gamma(LAM, 2.0, key=k),
    "dirichlet": lambda k: rn.random.dirichlet(LAM, key=k),
    "beta": lambda k: rn.random.beta(LAM, 0.5, (2, 4, 6), key=k),
    "standard_t": lambda k: rn.random.standard_t(LAM, key=k),
    "poisson": lambda k: rn.random.poisson(LAM, key=k),
    "binomial": lambda k: rn.random.binomial(rn.floor(LAM), 0.6, key=k),
    "negative_binomial": lambda k: rn.random.negative_binomial(LAM, 0.4, key=k),
    "vonmises": lambda k: rn.random.vonmises(0.0, LAM, key=k),
    "categorical": lambda k: rn.random.categorical(LAM, (3,), key=k),
    "multinomial": lambda k: rn.multinomial(LAM, 3, key=k),
    "multinomial with replacement": lambda k: rn.multinomial(LAM, 9, True, key=k),
    "permutation": lambda k: rn.random.permutation(LAM, 1, key=k),
    "choice": lambda k: rn.random.choice(LAM, (2, 2), False, key=k),
    "multivariate_normal": lambda k: rn.random.multivariate_normal(LAM, rn.eye(6), key=k),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_bits(name: str) -> None:
    draw, keys = DRAWS[name], rn.split_key(rn.Generator(3).next_key(), 3)
    eager = [draw(key).numpy() for key in keys]
    for threads in (1, 2):
        with switches.override(num_threads=threads):
            compiled = rn.compile(lambda k: draw(k))
            for key, expected in zip(keys, eager, strict=True):
                np.testing.assert_array_equal(compiled(key).numpy(), expected)
    np.testing.assert_array_equal(rn.vmap(draw)(keys).numpy(), np.stack(eager))


@pytest.mark.parametrize("name", ["gamma", "poisson", "binomial", "vonmises", "permutation"])
def test_the_interpreter_draws_the_same(name: str) -> None:
    key = rn.Generator(3).next_key()
    eager = DRAWS[name](key).numpy()
    there = LAM.to(device="interpreter")
    moved = {
        "gamma": lambda k: rn.random.gamma(there, 2.0, key=k),
        "poisson": lambda k: rn.random.poisson(there, key=k),
        "binomial": lambda k: rn.random.binomial(rn.floor(there), 0.6, key=k),
        "vonmises": lambda k: rn.random.vonmises(0.0, there, key=k),
        "permutation": lambda k: rn.random.permutation(there, 1, key=k),
    }[name](key.to(device="interpreter"))
    np.testing.assert_array_equal(moved.numpy(), eager)


@pytest.mark.skipif(host().name == "avx2" or not AVX2.runs_here, reason="one target alone runs here")
@pytest.mark.parametrize("name", ["normal", "gamma", "poisson", "binomial", "vonmises", "categorical"])
def test_the_same_on_both_targets(name: str) -> None:
    numbers = []
    for target in ("avx2", "avx512"):
        with switches.override(target=target):
            numbers.append(DRAWS[name](rn.Generator(3).next_key()).numpy())
    np.testing.assert_array_equal(*numbers)


def test_an_element_depends_on_no_neighbor() -> None:
    """However many attempts, or terms of a search, the others take."""
    key = rn.Generator(4).next_key()
    for draw in (rn.random.standard_gamma, rn.random.poisson):
        alone = draw(rn.asarray([3.0, 20.0]), key=key).numpy()
        beside = draw(rn.asarray([3.0, 20.0, *np.linspace(0.1, 1000, 500)]), key=key).numpy()
        np.testing.assert_array_equal(alone, beside[:2])


def test_generators_go_on_in_compiled_functions() -> None:
    generators = [rn.Generator(5), rn.Generator(5)]
    step = rn.compile(lambda: rn.random.gamma(2.0, size=3, generator=generators[0]))
    for _ in range(3):
        expected = rn.random.gamma(2.0, size=3, generator=generators[1]).numpy()
        np.testing.assert_array_equal(step().numpy(), expected)
    assert generators[0].get_state().tolist() == generators[1].get_state().tolist()
