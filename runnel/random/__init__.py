"""Random numbers: generators and keys, distributions under NumPy's names, permutations and choices."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public
from runnel.ops.random import fold_in, random_bits, split_key
from runnel.tensor.random import (
    Generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    rand,
    randint,
    randn,
    seed,
    set_rng_state,
)

if TYPE_CHECKING:
    from runnel.random.categories import categorical, multinomial
    from runnel.random.circular import vonmises
    from runnel.random.continuous import (
        cauchy,
        exponential,
        gumbel,
        laplace,
        logistic,
        lognormal,
        normal,
        pareto,
        rayleigh,
        truncated_normal,
        uniform,
        weibull,
    )
    from runnel.random.counts import bernoulli, binomial, geometric, negative_binomial, poisson
    from runnel.random.forking import fork_rng
    from runnel.random.gamma_family import (
        beta,
        chisquare,
        chisquare as chi2,
        dirichlet,
        gamma,
        standard_gamma,
        standard_t,
        standard_t as student_t,
    )
    from runnel.random.like import rand_like, randint_like, randn_like
    from runnel.random.order import choice, permutation, randperm, shuffle
    from runnel.random.vectors import multivariate_normal

__all__ = [
    "Generator",
    "bernoulli",
    "beta",
    "binomial",
    "categorical",
    "cauchy",
    "chi2",
    "chisquare",
    "choice",
    "dirichlet",
    "exponential",
    "fold_in",
    "fork_rng",
    "gamma",
    "geometric",
    "get_rng_state",
    "gumbel",
    "initial_seed",
    "laplace",
    "logistic",
    "lognormal",
    "manual_seed",
    "multinomial",
    "multivariate_normal",
    "negative_binomial",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random_bits",
    "randperm",
    "rayleigh",
    "seed",
    "set_rng_state",
    "shuffle",
    "split_key",
    "standard_gamma",
    "standard_t",
    "student_t",
    "truncated_normal",
    "uniform",
    "vonmises",
    "weibull",
]
_LATE = {
    "bernoulli": "runnel.random.counts:bernoulli",
    "beta": "runnel.random.gamma_family:beta",
    "binomial": "runnel.random.counts:binomial",
    "categorical": "runnel.random.categories:categorical",
    "cauchy": "runnel.random.continuous:cauchy",
    "chi2": "runnel.random.gamma_family:chisquare",
    "chisquare": "runnel.random.gamma_family:chisquare",
    "choice": "runnel.random.order:choice",
    "dirichlet": "runnel.random.gamma_family:dirichlet",
    "exponential": "runnel.random.continuous:exponential",
    "fork_rng": "runnel.random.forking:fork_rng",
    "gamma": "runnel.random.gamma_family:gamma",
    "geometric": "runnel.random.counts:geometric",
    "gumbel": "runnel.random.continuous:gumbel",
    "laplace": "runnel.random.continuous:laplace",
    "logistic": "runnel.random.continuous:logistic",
    "lognormal": "runnel.random.continuous:lognormal",
    "multinomial": "runnel.random.categories:multinomial",
    "multivariate_normal": "runnel.random.vectors:multivariate_normal",
    "negative_binomial": "runnel.random.counts:negative_binomial",
    "normal": "runnel.random.continuous:normal",
    "pareto": "runnel.random.continuous:pareto",
    "permutation": "runnel.random.order:permutation",
    "poisson": "runnel.random.counts:poisson",
    "rand_like": "runnel.random.like:rand_like",
    "randint_like": "runnel.random.like:randint_like",
    "randn_like": "runnel.random.like:randn_like",
    "randperm": "runnel.random.order:randperm",
    "rayleigh": "runnel.random.continuous:rayleigh",
    "shuffle": "runnel.random.order:shuffle",
    "standard_gamma": "runnel.random.gamma_family:standard_gamma",
    "standard_t": "runnel.random.gamma_family:standard_t",
    "student_t": "runnel.random.gamma_family:standard_t",
    "truncated_normal": "runnel.random.continuous:truncated_normal",
    "uniform": "runnel.random.continuous:uniform",
    "vonmises": "runnel.random.circular:vonmises",
    "weibull": "runnel.random.continuous:weibull",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
