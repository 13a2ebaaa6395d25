"""What is done to modules and all of their Parameters."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.torch.nn.utils import parametrizations, parametrize, prune, rnn, stateless

__all__ = ["parametrizations", "parametrize", "prune", "rnn", "stateless"]
_LATE = {
    "parametrizations": "runnel.compat.torch.nn.utils:parametrizations",
    "parametrize": "runnel.compat.torch.nn.utils:parametrize",
    "prune": "runnel.compat.torch.nn.utils:prune",
    "rnn": "runnel.compat.torch.nn.utils:rnn",
    "stateless": "runnel.compat.torch.nn.utils:stateless",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.nn.utils",))
del TYPE_CHECKING, public
