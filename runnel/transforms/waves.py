"""Record ``waves`` on tensors, and the body that chooses the next wave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from runnel.core.avals import ShapedArray, aval
from runnel.core.caching import Recent
from runnel.core.dispatch import apply
from runnel.core.dtypes import int64
from runnel.graph.hashing import Body
from runnel.ops import cast, equal, flip, maximum, minimum, narrow, stack, sum, where
from runnel.ops.creation_like import iota
from runnel.ops.waves import Pull, waves_p
from runnel.tensor.bodies import graph_of
from runnel.tensor.tensor import Tensor


class Recurrence(NamedTuple):
    """A node of ``waves`` before it is recorded, with the values of its inputs."""

    body: Body
    constants: Sequence[Tensor]
    sources: Sequence[Tensor]
    starts: Tensor
    xs: Sequence[Tensor]
    pulls: tuple[Pull, ...]
    reverse: bool


def recorded(made: Recurrence, body: Body) -> tuple[Tensor, ...]:
    """Apply the op with ``body``."""
    results: tuple[Tensor, ...] = apply(
        waves_p, *made.constants, *made.sources, made.starts, *made.xs, body=body,
        advance=advance(made.starts.aval, made.reverse), constants=len(made.constants), sources=len(made.sources),
        pulls=made.pulls, reverse=made.reverse,
    )  # fmt: skip
    return results


_ADVANCES: Final[Recent[Any, Body]] = Recent(16)


def advance(starts: ShapedArray, reverse: bool) -> Body:
    """Return the body (starts, wave) to (whether there is such a wave, its first row, its end) and the next wave."""
    key = starts, reverse
    body = _ADVANCES.get(key)
    if body is None:
        waves = starts.size - 1

        def following(starts: Tensor, wave: Tensor) -> list[Tensor]:
            edges = flip(starts, (0,)) if reverse else starts
            one, other = narrow(edges, 0, 0, waves), narrow(edges, 0, 1, waves)
            is_wave = equal(iota(starts, (waves,), 0), wave)
            columns = (is_wave, where(is_wave, minimum(one, other), 0), where(is_wave, maximum(one, other), 0))
            return [stack([sum(cast(x, int64), 0) for x in columns]), wave + 1]

        body = _ADVANCES[key] = Body(graph_of("advance", following, [starts, aval((), int64, starts.device)]))
    return body
