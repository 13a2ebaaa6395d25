"""Networks: modules."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.torch.nn.modules import (
        activation,
        adaptive,
        batchnorm,
        container,
        conv,
        distance,
        dropout,
        flatten,
        fold,
        instancenorm,
        lazy,
        linear,
        loss,
        module,
        normalization,
        padding,
        pixelshuffle,
        pooling,
        rnn,
        sparse,
        transformer,
        upsampling,
        utils,
    )

__all__ = [
    "activation",
    "adaptive",
    "batchnorm",
    "container",
    "conv",
    "distance",
    "dropout",
    "flatten",
    "fold",
    "instancenorm",
    "lazy",
    "linear",
    "loss",
    "module",
    "normalization",
    "padding",
    "pixelshuffle",
    "pooling",
    "rnn",
    "sparse",
    "transformer",
    "upsampling",
    "utils",
]
_LATE = {
    "activation": "runnel.compat.torch.nn.modules:activation",
    "adaptive": "runnel.compat.torch.nn.modules:adaptive",
    "batchnorm": "runnel.compat.torch.nn.modules:batchnorm",
    "container": "runnel.compat.torch.nn.modules:container",
    "conv": "runnel.compat.torch.nn.modules:conv",
    "distance": "runnel.compat.torch.nn.modules:distance",
    "dropout": "runnel.compat.torch.nn.modules:dropout",
    "flatten": "runnel.compat.torch.nn.modules:flatten",
    "fold": "runnel.compat.torch.nn.modules:fold",
    "instancenorm": "runnel.compat.torch.nn.modules:instancenorm",
    "lazy": "runnel.compat.torch.nn.modules:lazy",
    "linear": "runnel.compat.torch.nn.modules:linear",
    "loss": "runnel.compat.torch.nn.modules:loss",
    "module": "runnel.compat.torch.nn.modules:module",
    "normalization": "runnel.compat.torch.nn.modules:normalization",
    "padding": "runnel.compat.torch.nn.modules:padding",
    "pixelshuffle": "runnel.compat.torch.nn.modules:pixelshuffle",
    "pooling": "runnel.compat.torch.nn.modules:pooling",
    "rnn": "runnel.compat.torch.nn.modules:rnn",
    "sparse": "runnel.compat.torch.nn.modules:sparse",
    "transformer": "runnel.compat.torch.nn.modules:transformer",
    "upsampling": "runnel.compat.torch.nn.modules:upsampling",
    "utils": "runnel.compat.torch.nn.modules:utils",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.nn",))
del TYPE_CHECKING, public
