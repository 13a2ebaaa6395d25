"""``linearize``: a function's derivative at a point, as a linear function that may be called many times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.core import pytree
from runnel.ops import zeros_like
from runnel.tensor.forward import Transpose
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.transforms.gradients import vjp
from runnel.transforms.jvp import direction_of, directions_of
from runnel.transforms.leaves import as_float


def linearize(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``fn(*primals)``, and the function that takes tangents of the primals to that of the result.

    That function does what is linear only: ``fn`` runs once, and its values are kept. The primals are trees of floating
    tensors, the result is a tree of tensors; what is no floating tensor in it has a tangent of zeros. With ``has_aux``
    ``fn`` returns a pair of the result and anything else, which comes third.
    """
    leaves, structure = pytree.flatten(tuple(primals))
    xs = [as_float("linearize", leaf) for leaf in leaves]
    out, pull, *aux = vjp(fn, *pytree.unflatten(structure, xs), has_aux=has_aux)
    out_leaves, form = pytree.flatten(out)
    places = [i for i, y in enumerate(out_leaves) if isinstance(y, ArrayMethods)]
    outs = [out_leaves[i].read() for i in places]

    def pulled(seeds: list[Tensor]) -> list[Tensor]:
        cotangents = list(out_leaves)
        for i, seed in zip(places, seeds, strict=True):
            cotangents[i] = seed
        return pytree.flatten(pull(pytree.unflatten(form, cotangents)))[0]

    transpose = Transpose(pulled, outs, xs)

    def linear(*tangents: Any) -> Any:
        """The derivative along ``tangents``."""
        directions = directions_of("linearize", tangents, structure)
        in_tangents = [
            None if t is None else direction_of("linearize", x, t) for x, t in zip(xs, directions, strict=True)
        ]
        out_tangents = transpose.tangents(in_tangents, keep=True)
        answers = list(out_leaves)
        for i, y, t in zip(places, outs, out_tangents, strict=True):
            answers[i] = zeros_like(y.detach()) if t is None else t
        return pytree.unflatten(form, answers)

    return (out, linear, *aux)
