"""Special functions, under PyTorch's and SciPy's names."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public
from runnel.ops.precision import log_softmax, logsumexp, softmax
from runnel.ops.transcendental import erf, expm1, log1p, sigmoid as expit

if TYPE_CHECKING:
    from runnel.ops.library.numbers import entr, exp2, logit, sinc, xlog1py, xlogy
    from runnel.ops.library.special import (
        digamma,
        digamma as psi,
        erfc,
        erfcx,
        erfinv,
        i0,
        i0e,
        i1,
        i1e,
        lgamma,
        lgamma as gammaln,
        log_ndtr,
        mvlgamma as multigammaln,
        ndtr,
        ndtri,
        polygamma,
    )
    from runnel.random.incomplete_gamma import gammainc, gammaincc

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "lgamma",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
]
_LATE = {
    "digamma": "runnel.ops.library.special:digamma",
    "entr": "runnel.ops.library.numbers:entr",
    "erfc": "runnel.ops.library.special:erfc",
    "erfcx": "runnel.ops.library.special:erfcx",
    "erfinv": "runnel.ops.library.special:erfinv",
    "exp2": "runnel.ops.library.numbers:exp2",
    "gammainc": "runnel.random.incomplete_gamma:gammainc",
    "gammaincc": "runnel.random.incomplete_gamma:gammaincc",
    "gammaln": "runnel.ops.library.special:lgamma",
    "i0": "runnel.ops.library.special:i0",
    "i0e": "runnel.ops.library.special:i0e",
    "i1": "runnel.ops.library.special:i1",
    "i1e": "runnel.ops.library.special:i1e",
    "lgamma": "runnel.ops.library.special:lgamma",
    "log_ndtr": "runnel.ops.library.special:log_ndtr",
    "logit": "runnel.ops.library.numbers:logit",
    "multigammaln": "runnel.ops.library.special:mvlgamma",
    "ndtr": "runnel.ops.library.special:ndtr",
    "ndtri": "runnel.ops.library.special:ndtri",
    "polygamma": "runnel.ops.library.special:polygamma",
    "psi": "runnel.ops.library.special:digamma",
    "sinc": "runnel.ops.library.numbers:sinc",
    "xlog1py": "runnel.ops.library.numbers:xlog1py",
    "xlogy": "runnel.ops.library.numbers:xlogy",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
