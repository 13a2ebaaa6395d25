"""Shapes, dtypes, arrays in place, generators; and one clear error for arguments that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ArgumentError, DTypeError, ShapeError
from tests.random_numbers import RNG

WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "std": (lambda: rn.normal(0.0, -1.0), ValueError, r"\[normal\] std must not be negative; got -1"),
    "scale": (lambda: rn.random.laplace(0.0, rn.asarray([1.0, -2.0])), ValueError, r"\[laplace\] scale .* got -2"),
    "shape": (lambda: rn.random.gamma(-0.5), ValueError, r"\[gamma\] shape must not be negative"),
    "nan": (lambda: rn.random.beta(1.0, float("nan")), ValueError, r"\[beta\] b must be greater than 0; got nan"),
    "rate": (lambda: rn.random.poisson(-1.0), ValueError, r"\[poisson\] lam must not be negative"),
    "probability": (lambda: rn.bernoulli(rn.asarray([0.5, 1.5])), ValueError, r"p is a probability.* 1.5"),
    "trials": (lambda: rn.random.binomial(2.5, 0.5), ValueError, r"\[binomial\] n must be a whole number"),
    "never": (lambda: rn.random.geometric(0.0), ValueError, "p must be a probability greater than 0"),
    "interval": (lambda: rn.random.truncated_normal(0.0, 1.0, 2.0, 1.0), ValueError, "low must be greater than 0"),
    "nothing": (lambda: rn.random.choice(0), ValueError, r"\[choice\] there is nothing to choose from"),
    "empty": (lambda: rn.random.choice(rn.zeros((0, 2)), 3), ValueError, r"nothing to choose from"),
    "too many": (lambda: rn.random.choice(3, 4, False), ValueError, r"\[choice\] 4 different ones .* among 3"),
    "sum": (lambda: rn.random.choice(2, 4, p=[0.5, 0.4]), ValueError, r"\[choice\] the probabilities p have the sum 1"),
    "length": (lambda: rn.random.choice(3, 4, p=[0.5, 0.5]), ShapeError, r"a probability for each of 3"),
    "few": (lambda: rn.multinomial(rn.asarray([1.0, 0.0, 0.0]), 2), ValueError, r"fewer weights .* than the 2"),
    "zeros": (lambda: rn.multinomial(rn.zeros(3), 2, True), ValueError, r"fewer weights are positive than the 1"),
    "weight": (lambda: rn.multinomial(rn.asarray([1.0, -1.0]), 1), ValueError, "must be finite and not negative"),
    "samples": (lambda: rn.multinomial(rn.ones(3), 0), ValueError, r"num_samples must be greater than 0"),
    "categories": (lambda: rn.random.categorical(rn.zeros((2, 0))), ShapeError, r"there is no category"),
    "size": (lambda: rn.normal(rn.zeros(3), 1.0, (2,)), ShapeError, r"\(3,\) do not broadcast to the size \(2,\)"),
    "dtype": (lambda: rn.normal(0.0, 1.0, 3, dtype="int32"), DTypeError, "the dtype must be floating; got int32"),
    "order": (lambda: rn.randperm(-1), ValueError, r"\[randperm\] n must not be negative"),
    "list": (lambda: rn.random.shuffle([1, 2]), ArgumentError, r"x must be a tensor or a Variable; .* list"),
    "vector": (lambda: rn.random.dirichlet(2.0), ShapeError, r"\[dirichlet\]"),
    "matrix": (lambda: rn.random.multivariate_normal(rn.zeros(2), rn.eye(3)), ShapeError, r"\[multivariate_normal\]"),
    "integers": (lambda: rn.zeros(2, dtype="int32").normal_(), DTypeError, r"\[normal_\] the dtype must be floating"),
    "range": (lambda: rn.zeros(2, dtype="int8").random_(0, 1000), ValueError, r"\[random_\] the .*got \[0, 1000\)"),
    "rate in place": (lambda: rn.zeros(2).exponential_(0.0), ValueError, "lambd must be greater than 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("draw", [rn.random.standard_gamma, rn.random.poisson, lambda p: rn.random.binomial(3.0, p)])
def test_programs_check_parameters_and_bodies_of_loops_give_nan(draw: Any) -> None:
    bad = rn.asarray([1.0, -1.0, np.nan, np.inf])
    with pytest.raises(ValueError, match="Nothing was changed"):
        rn.compile(lambda p: draw(p))(bad)
    for run in (rn.compile, lambda function: function):
        drawn = run(lambda p: rn.scan(lambda carry, q: (carry, draw(q)), rn.zeros(()), p)[1])(bad).numpy()
        assert np.isfinite(drawn[0]) and np.isnan(drawn[1:]).all()


def test_shapes_and_dtypes() -> None:
    wide = rn.zeros((3, 1), dtype="float64")
    assert (rn.normal(wide, rn.ones(4)).shape, rn.normal(wide, 1.0).dtype) == ((3, 4), rn.float64)
    assert rn.normal().shape == () and rn.normal(2, 3).dtype is rn.float32
    assert rn.random.exponential(1.0, (2, 3), dtype="bfloat16").dtype is rn.bfloat16
    assert rn.random.gamma(rn.ones(3), 1.0, (2, 3)).shape == (2, 3)
    assert (
        rn.bernoulli(0.5, 3, dtype=bool).dtype is rn.bool_
        and rn.random.poisson(3.0, 2, dtype="int64").dtype is rn.int64
    )
    assert rn.random.dirichlet(rn.ones((5, 2)), (3, 5)).shape == (3, 5, 2)
    assert rn.random.categorical(rn.zeros((2, 3)), (4,), axis=0).shape == (4, 3)
    assert rn.normal(np.zeros(2), [1.0, 2.0]).shape == (2,)
    assert rn.random.gamma(rn.zeros((0, 3)), 1.0).shape == (0, 3) and rn.randperm(0).shape == (0,)
    assert rn.random.standard_gamma(0.0, 2).tolist() == [0.0, 0.0] and rn.random.poisson(0.0, 2).tolist() == [0.0, 0.0]
    assert rn.random.multivariate_normal(rn.zeros((4, 2)), rn.eye(2), (3, 4)).shape == (3, 4, 2)
    assert rn.normal(mean=0.0, std=1.0, shape=3).shape == (3,)


def test_integers() -> None:
    for x in (rn.randint(10, (2, 3)), rn.randint(0, 10, (2, 3)), rn.randint(10, size=(2, 3))):
        assert x.shape == (2, 3) and int(x.min()) >= 0 and int(x.max()) < 10
    assert rn.randint(3, 7).shape == ()
    x = rn.zeros((3, 2), dtype="int32")
    assert (
        rn.random.randint_like(x, 5).dtype is rn.int32
        and rn.random.randint_like(x, -2, 0, dtype="int8").dtype is rn.int8
    )
    assert rn.rand_like(rn.ones(3, dtype="float64")).dtype is rn.float64
    assert rn.randn_like(rn.ones((3, 4)), dtype="float16").dtype is rn.float16
    with pytest.raises(DTypeError):
        rn.rand_like(x)


def test_orders_keep_every_element() -> None:
    x = rn.asarray(RNG.standard_normal((5, 4)).astype(np.float32))
    for axis in (0, 1, -1):
        shuffled = rn.random.permutation(x, axis).numpy()
        rest = 1 - axis % 2
        rows, before = (np.moveaxis(a, rest, -1) for a in (shuffled, x.numpy()))
        assert sorted(map(tuple, rows)) == sorted(map(tuple, before))
    assert sorted(rn.random.permutation(7).tolist()) == list(range(7))
    assert rn.randperm(5, dtype="int32").dtype is rn.int32
    v = rn.Variable(np.arange(20.0))
    rn.random.shuffle(v)
    assert sorted(v.tolist()) == list(range(20)) and v.tolist() != list(range(20))


def test_choices() -> None:
    x = rn.asarray(np.arange(12).reshape(3, 4))
    assert rn.random.choice(x).shape == (4,) and rn.random.choice(x, (2, 2), axis=1).shape == (3, 2, 2)
    assert sorted(rn.random.choice(5, 5, replace=False).tolist()) == list(range(5))
    chosen = rn.random.choice(5, 2, False, p=[0.5, 0, 0, 0.5, 0]).tolist()
    assert sorted(chosen) == [0, 3]
    assert rn.random.choice([7, 7], 3).tolist() == [7, 7, 7]


def test_arrays_are_filled_in_place() -> None:
    for fill in ("normal_", "uniform_", "log_normal_", "cauchy_", "exponential_", "bernoulli_", "random_"):
        rn.manual_seed(1)
        for array in (rn.zeros(100), rn.Variable(np.zeros(100, np.float32)), rn.zeros(100, dtype="float64")):
            dtype, same = array.dtype, getattr(array, fill)()
            assert same is array and array.dtype is dtype and float(array.std()) > 0, fill
    p = rn.Parameter(np.zeros(3, np.float32))
    step = rn.compile(lambda: p.geometric_(0.5))
    step()
    before = p.tolist()
    step()
    assert min(before) >= 1 and before != p.tolist()
    counts = rn.zeros(50, dtype="int64")
    assert int(counts.random_(3, 6).min()) == 3 and int(counts.max()) == 5
    assert int(counts.random_().max()) > 1 << 55 and int(counts.min()) >= 0
    assert float(rn.zeros(100).random_(7).max()) == 6
    assert rn.zeros(2000, dtype=bool).bernoulli_(0.25).astype(rn.float32).mean() < 0.3
    assert 0.5 < float(rn.full((2000,), 0.7).bernoulli().mean()) < 0.8


def test_seeds_and_states() -> None:
    g = rn.Generator(7)
    assert g.initial_seed() == 7 and g.manual_seed(1 << 40) is g and g.initial_seed() == 1 << 40
    seed = g.seed()
    assert g.initial_seed() == seed and g.seed(3) == 3
    first = rn.randn(3, generator=g).tolist()
    assert rn.randn(3, generator=g.manual_seed(3)).tolist() == first
    rn.manual_seed(11)
    assert rn.initial_seed() == 11
    assert rn.random.seed() == rn.random.initial_seed()


def test_a_fork_leaves_the_generators_where_they_were() -> None:
    rn.manual_seed(5)
    expected = rn.rand(2).tolist()
    rn.manual_seed(5)
    with rn.random.fork_rng():
        rn.rand(10)
        rn.manual_seed(9)
    assert rn.rand(2).tolist() == expected
    rn.manual_seed(5)

    @rn.compile
    def inside() -> Any:
        with rn.random.fork_rng():
            x = rn.rand(2)
        return x, rn.rand(2)

    forked, after = inside()
    assert forked.tolist() == after.tolist() == expected
    rn.manual_seed(5)
    with rn.random.fork_rng(enabled=False):
        assert rn.rand(2).tolist() == expected
    assert rn.rand(2).tolist() != expected


@pytest.mark.parametrize("kappa", [1e13, 1e300, 1.7e308])
def test_narrow_distributions_of_angles_end(kappa: float) -> None:
    """Normal with variance 1/κ: cosines cannot tell such angles apart, so none would be accepted."""
    angles = rn.random.vonmises(0.0, kappa, (4000,), dtype="float64").numpy() * np.sqrt(kappa)
    assert abs(angles.std() - 1) < 0.05 and abs(angles.mean()) < 0.08
