"""Random numbers of samples: functions of the epoch's key, the sample's number and the number of earlier draws.

They do not depend on the worker that reads a sample, nor on when. The generator is splitmix64 (G. Steele, D. Lea, C.
Flood, "Fast splittable pseudorandom number generators", 2014), with the sample's key as its seed.
"""

from __future__ import annotations

import operator
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from runnel.core.devices import Device
from runnel.core.errors import RunnelError
from runnel.tensor.random import STAND_IN, Generator, next_key

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


class Draws:
    """The random numbers of one or more samples.

    Each draw is an array with a number for each sample, the number that the sample draws when it is read by itself.
    """

    def __init__(self, keys: np.ndarray) -> None:
        self._state = keys

    def word(self) -> np.ndarray:
        """Draw 64 random bits for each sample: uint64."""
        self._state = self._state + np.uint64(_STEP)
        return _mixed_array(self._state)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """Draw numbers from [low, high): float64."""
        return low + (self.word() >> np.uint64(11)) * 2.0**-53 * (high - low)

    def integer(self, low: Any, high: Any) -> np.ndarray:
        """Draw integers from low to high - 1: int64. The bounds may be arrays."""
        return low + (self.uniform() * (high - low)).astype(np.int64)


def sample_key(epoch_key: int, number: Any) -> int:
    """Return the 64-bit key of sample ``number``. For samplers' keys that are not numbers, their repr counts."""
    try:
        number = operator.index(number)
    except TypeError:
        number = zlib.crc32(repr(number).encode())
    return _mixed((epoch_key + _STEP * (number + 1)) & _MASK)


def sample_keys(epoch_key: int, numbers: Sequence[Any]) -> np.ndarray:
    """Return the uint64 keys of several samples, which must be numbers."""
    steps = np.asarray(numbers, np.int64).astype(np.uint64) + np.uint64(1)
    return _mixed_array(np.uint64(epoch_key) + np.uint64(_STEP) * steps)


def new_key(generator: Generator | None) -> int:
    """Draw a key for an epoch from the generator, the default one for None."""
    low, high = next_key(generator, None).tolist()
    return int(low) | int(high) << 32


class _Current(threading.local):
    """The samples ``numbers`` of an epoch that this thread reads, currently ``number``."""

    epoch_key: int | None = None
    number: Any = 0
    numbers: Sequence[Any] = ()
    draws: Draws | None = None
    generators: dict[Device, Generator] | None = None  # replace the default ones; kept for later samples
    seeded: frozenset[Device] = frozenset()


_CURRENT = _Current()


@contextmanager
def reading(epoch_key: int, numbers: Sequence[Any]) -> Iterator[None]:
    """Mark samples ``numbers`` as read by this thread inside the block; :func:`start_sample` chooses one."""
    before = _CURRENT.epoch_key, _CURRENT.numbers, _CURRENT.number, _CURRENT.draws, STAND_IN.generator
    _CURRENT.epoch_key, _CURRENT.numbers, STAND_IN.generator = epoch_key, numbers, _stand_in
    start_sample(numbers[0] if len(numbers) else 0)
    try:
        yield
    finally:
        _CURRENT.epoch_key, _CURRENT.numbers, _CURRENT.number, _CURRENT.draws, STAND_IN.generator = before


def start_sample(number: Any) -> None:
    """Make sample ``number`` current and restart its random numbers."""
    _CURRENT.number = number
    _CURRENT.draws = None
    _CURRENT.seeded = frozenset()


def sample_draws() -> Draws:
    """Return the next random numbers of the current sample; outside a DataLoader, of the default generator."""
    if _CURRENT.epoch_key is None:
        return Draws(sample_keys(new_key(None), [0]))
    if _CURRENT.draws is None:
        _CURRENT.draws = Draws(np.array([sample_key(_CURRENT.epoch_key, _CURRENT.number)], np.uint64))
    return _CURRENT.draws


def batch_draws(count: int) -> Draws:
    """Return the random numbers of ``count`` samples that are read at once."""
    if _CURRENT.epoch_key is None:
        return Draws(sample_keys(new_key(None), range(count)))
    if len(_CURRENT.numbers) != count:
        raise RunnelError(
            f"[collated] the loader asks for {len(_CURRENT.numbers)} samples and {count} are read; a data set's "
            "collated(indices) reads one for each index."
        )
    return Draws(sample_keys(_CURRENT.epoch_key, _CURRENT.numbers))


def collate_rng() -> np.random.Generator:
    """Return a NumPy generator for a whole batch, determined by its first sample."""
    if _CURRENT.epoch_key is None:
        return np.random.Generator(np.random.Philox(key=new_key(None)))
    first = _CURRENT.numbers[0] if len(_CURRENT.numbers) else 0
    return np.random.Generator(np.random.Philox(key=_mixed(sample_key(_CURRENT.epoch_key, first) ^ _STEP)))


def sample_rng() -> np.random.Generator:
    """Return a NumPy generator for the sample that is being read.

    Its numbers depend on the seed of the epoch and the number of the sample, not on the worker. Call it in
    ``__getitem__`` or in a transform; each call continues where the last one ended. Outside a DataLoader it depends on
    the default generator (:func:`runnel.manual_seed`).
    """
    draws = sample_draws()
    return np.random.Generator(np.random.Philox(key=int(draws.word()[0])))


def _stand_in(device: Device) -> Generator:
    """Return the default generator while a sample is read."""
    if _CURRENT.generators is None:
        _CURRENT.generators = {}
    generator = _CURRENT.generators.get(device)
    if generator is None:
        generator = _CURRENT.generators[device] = Generator(0, device=device)
    if device not in _CURRENT.seeded:
        _CURRENT.seeded |= {device}
        generator.seed(_mixed(sample_key(_CURRENT.epoch_key or 0, _CURRENT.number)))
    return generator


def _mixed(x: int) -> int:
    x = (x ^ (x >> 30)) * _FIRST & _MASK
    x = (x ^ (x >> 27)) * _SECOND & _MASK
    return x ^ (x >> 31)


def _mixed_array(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_SECOND)
    return x ^ (x >> np.uint64(31))
