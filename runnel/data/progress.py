"""The position of a loader: the state needed to continue, in another process, with the next batch."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from runnel.backends.context import default_device
from runnel.core.arrays import short_repr
from runnel.core.errors import StateError
from runnel.tensor.random import Generator, default_on

_KEYS = ("epoch", "position", "default_generator", "generators", "generators_at_start", "samplers", "fits")


class Order:
    """The sources of a loader's order: generators, and the user's samplers that have states."""

    def __init__(self, generator: Generator | None, *samplers: Any) -> None:
        self._samplers = [s for s in samplers if hasattr(s, "state_dict") and hasattr(s, "load_state_dict")]
        self._generators: list[Generator] = []
        for each in (generator, *(getattr(sampler, "generator", None) for sampler in samplers)):
            if isinstance(each, Generator) and not any(each is g for g in self._generators):
                self._generators.append(each)

    def generators(self) -> list[list[int]]:
        """Return the states of the loader's generators."""
        return [g.get_state().tolist() for g in self._generators]

    def samplers(self) -> list[Any]:
        """Return the states of the samplers."""
        return [s.state_dict() for s in self._samplers]

    def set_generators(self, states: list[list[int]]) -> None:
        for generator, state in zip(self._generators, states, strict=True):
            generator.set_state(np.asarray(state, np.uint32))

    def set_samplers(self, states: list[Any]) -> None:
        for sampler, state in zip(self._samplers, states, strict=True):
            sampler.load_state_dict(state)

    def fits(self, state: Mapping[str, Any]) -> bool:
        """Return True if a saved state has the same number of generators and samplers."""
        counts = len(state["generators"]), len(state["generators_at_start"]), len(state["samplers"])
        return counts == (len(self._generators), len(self._generators), len(self._samplers))


class Progress:
    """An epoch's number, the states that determine its order, and the number of batches taken."""

    def __init__(self, epoch: int, order: Order) -> None:
        self.epoch = epoch
        self.position = 0
        self.is_done = False
        self.default_at_start = self.default_state()
        self.at_start = order.generators()
        self.samplers = order.samplers()

    @staticmethod
    def default_state() -> list[int]:
        state: list[int] = default_on(default_device()).get_state().tolist()
        return state

    @staticmethod
    def set_default_state(state: list[int]) -> None:
        default_on(default_device()).set_state(np.asarray(state, np.uint32))

    def load(self, state: dict[str, Any]) -> None:
        """Restore an interrupted epoch."""
        self.position = state["position"]
        self.default_at_start = state["default_generator"]
        self.at_start, self.samplers = state["generators_at_start"], state["samplers"]

    def state(self, order: Order, fits: dict[str, Any]) -> dict[str, Any]:
        """Return the state that :func:`checked` accepts."""
        return {
            "epoch": self.epoch,
            "position": self.position,
            "default_generator": self.default_at_start,
            "generators": order.generators(),
            "generators_at_start": self.at_start,
            "samplers": self.samplers,
            "fits": fits,
        }


def checked(state: Mapping[str, Any], order: Order, fits: dict[str, Any]) -> dict[str, Any]:
    """Return a saved state if it fits this loader; StateError if not."""
    if not isinstance(state, Mapping) or set(state) != set(_KEYS):
        received = sorted(state) if isinstance(state, Mapping) else short_repr(state)
        raise StateError(f"[DataLoader] a state must have {', '.join(_KEYS)}; got {received}. Nothing was loaded.")
    plain = {key: _plain(value) for key, value in state.items()}
    different = {key: value for key, value in fits.items() if plain["fits"].get(key) != value}
    if different or not order.fits(plain):
        there = ", ".join(f"{key} {plain['fits'].get(key)!r}" for key in different) or "other generators or samplers"
        here = ", ".join(f"{key} {value!r}" for key, value in different.items()) or "not"
        raise StateError(
            f"[DataLoader] the state is of a loader with {there}; this one has {here}. Nothing was loaded."
        )
    if plain["position"] < 0 or plain["epoch"] < 0:
        raise StateError(f"[DataLoader] there is no batch {plain['position']} of epoch {plain['epoch']}.")
    return plain


def _plain(value: Any) -> Any:
    """Convert a saved state to numbers, lists and dicts; files may return tensors and arrays."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, bool | str) or value is None:
        return value
    return operator.index(value)
