"""Values that functions require of tensors: a compiled function checks them in its program, before it changes anything."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import runnel as rn
from runnel import distributions
from tests.compile.adversarial.worlds import tensor

_BEFORE_VALUES: Final = re.compile(r"; |: its info|\.$")  # which programs cannot tell
GOOD: Final = tensor(0.5, 0.25, 0.25)
BAD: Final = tensor(0.5, -2.0, 0.25)
CHECKED: Final[dict[str, Callable[[rn.Tensor], Any]]] = {
    "bernoulli": rn.bernoulli,
    "bernoulli_": lambda x: rn.zeros(3).bernoulli_(x),
    "poisson": rn.poisson,
    "normal": lambda x: rn.normal(rn.zeros(3), x),
    "multinomial": lambda x: rn.multinomial(x, 2),
    "quantile": lambda x: rn.quantile(rn.arange(5.0), x),
    "Normal": lambda x: distributions.Normal(rn.zeros(3), x).sample(),
    "Normal that is not used": lambda x: (distributions.Normal(rn.zeros(3), x), x * 2)[1],
    "Bernoulli": lambda x: distributions.Bernoulli(x).sample(),
    "Bernoulli.log_prob": lambda x: distributions.Bernoulli(rn.full((3,), 0.5)).log_prob(rn.sign(x)),
    "Categorical": lambda x: distributions.Categorical(x).sample(),
    "Uniform.log_prob": lambda x: distributions.Uniform(rn.zeros(3), rn.ones(3)).log_prob(x),
    "Gamma": lambda x: distributions.Gamma(x, rn.ones(3)).log_prob(rn.ones(3)),
    "Dirichlet": lambda x: distributions.Dirichlet(x).log_prob(tensor(0.25, 0.25, 0.5)),
    "Exponential": lambda x: distributions.Exponential(x).rsample(),
    "choice": lambda x: rn.random.choice(3, 2, p=x),
    "istft": lambda x: rn.istft(rn.ones((2, 4)) + 0j, 2, 1, window=rn.maximum(x[:2], 0) * 0 + rn.where(x[1] < 0, 0, 1)),
    "cholesky_ex": lambda x: rn.linalg.cholesky_ex(rn.eye(3) * x[:, None], check_errors=True).L,
    "lu_factor_ex": lambda x: rn.linalg.lu_factor_ex(rn.eye(3) * rn.maximum(x, 0)[:, None], check_errors=True)[0],
    "kl_divergence": lambda x: distributions.kl_divergence(
        distributions.Binomial(rn.where(x < 0, 2.0, 3.0), rn.full((3,), 0.5)),
        distributions.Binomial(rn.full((3,), 3.0), rn.full((3,), 0.25)),
    ),
    "Geometric": lambda x: distributions.Geometric(x).sample(),
}


def seen(function: Callable[[rn.Tensor], Any], x: rn.Tensor) -> Any:
    rn.manual_seed(3)
    try:
        result = function(x).tolist()
    except Exception as problem:
        result = isinstance(problem, ValueError), _BEFORE_VALUES.split(str(problem))[0]
    return result, rn.rand(2).tolist()


@pytest.mark.parametrize("name", CHECKED)
def test_a_value_that_does_not_fit_is_the_error_of_eager_mode(name: str) -> None:
    function = CHECKED[name]
    compiled = rn.compile(function)
    for x in (GOOD, GOOD, BAD, GOOD, BAD):
        assert seen(compiled, x) == seen(function, x)
    assert compiled.statistics["traces"] == 1


def test_nothing_has_changed_behind_the_error() -> None:
    w = rn.Parameter(rn.ones(3))
    optimizer = rn.optim.SGD([w], lr=0.1)
    losses: list[Any] = []

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = -distributions.Normal(w, x).log_prob(rn.zeros(3)).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        return loss

    step(GOOD)
    before = w.tolist()
    with pytest.raises(ValueError, match=r"\[Normal\] scale is greater than 0; .*test_required_values.py.*Nothing was"):
        step(BAD)
    assert w.tolist() == before and len(losses) == 1
    step(GOOD)
    assert w.tolist() != before and len(losses) == 2


def test_under_vmap_and_grad() -> None:
    rows = rn.stack([GOOD, GOOD])
    mapped = rn.compile(lambda x: rn.vmap(lambda row: distributions.Bernoulli(row).log_prob(rn.ones(3)))(x))
    graded = rn.compile(lambda x: rn.grad(lambda v: distributions.Normal(rn.zeros(3), v).log_prob(v).sum())(x))
    mapped(rows), graded(GOOD)
    with pytest.raises(ValueError, match="probs is from 0 to 1"):
        mapped(rn.stack([GOOD, BAD]))
    with pytest.raises(ValueError, match="scale is greater than 0"):
        graded(BAD)


def test_no_check_where_validation_is_off() -> None:
    compiled = rn.compile(lambda x: distributions.Normal(rn.zeros(3), x, validate_args=False).log_prob(x))
    np.testing.assert_equal(compiled(BAD).numpy()[[0, 2]], compiled(GOOD).numpy()[[0, 2]])
