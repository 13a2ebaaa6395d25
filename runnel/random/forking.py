"""``fork_rng``: random numbers drawn in a block leave the default generator where it was."""

from __future__ import annotations

from typing import Any, Self

from runnel.backends.context import default_device
from runnel.core.devices import as_device
from runnel.tensor.random import default_on
from runnel.tensor.tensor import Tensor


class fork_rng:
    """``with rn.random.fork_rng():`` the default generator goes on behind the block as if nothing had been drawn in it.

    Args:
        devices: those whose default generators do, that of ``runnel.device()`` if left out.
        enabled: False does nothing.
    """

    def __init__(self, devices: Any = None, enabled: bool = True) -> None:
        places = (default_device(),) if devices is None else tuple(map(as_device, devices))
        self._generators = [default_on(place) for place in places] if enabled else []
        self._states: list[list[Tensor]] = []

    def __enter__(self) -> Self:
        self._states.append([generator.get_state() for generator in self._generators])
        return self

    def __exit__(self, *error: object) -> None:
        for generator, state in zip(self._generators, self._states.pop(), strict=True):
            generator.set_state(state)
