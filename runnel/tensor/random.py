"""Random number generators: Variables of (key, count), so that eager and compiled draws are the same.

The numbers are counter-based (``ops.random``): draw number ``count`` of a generator with seed ``s`` is a function of
(s, count) and position alone, whatever computes it.
"""

from __future__ import annotations

import operator
import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import numpy as np

from runnel import ops
from runnel.backends.context import default_device
from runnel.core import dtypes, kinds
from runnel.core.devices import Device, as_device, devices
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import Dtype
from runnel.ops.arguments import Array, as_sizes, is_single
from runnel.tensor.batching import own_keys
from runnel.tensor.creation import Shape, leaf
from runnel.tensor.state import load_variables
from runnel.tensor.tensor import Tensor
from runnel.tensor.trace import ACTIVE
from runnel.tensor.variable import Variable


@kinds.declare
class Generator:
    """A stream of random numbers on a device. ``state`` is a Variable: uint32 (key low, key high, count)."""

    def __init__(self, seed: int = 0, *, device: Any = None) -> None:
        self.state = Variable(_state(seed), name="random.state", device=device)

    def seed(self, seed: int | None = None) -> int:
        """Start the stream anew, from a seed of the operating system's unless one is given; the seed."""
        number = secrets.randbits(64) if seed is None else operator.index(seed)
        self.state.assign(_state(number))
        return number

    def manual_seed(self, seed: int) -> Self:
        """Start the stream anew from ``seed``."""
        self.seed(seed)
        return self

    def initial_seed(self) -> int:
        """The seed from which the present stream began, from 0 to 2⁶⁴ - 1."""
        low, high, _ = self.get_state().tolist()
        return int(low) | int(high) << 32

    def get_state(self) -> Tensor:
        """Where the stream is: uint32 (key low, key high, count). Later draws leave it as it is."""
        return self.state.value

    def set_state(self, state: Any) -> None:
        """Go to where ``get_state`` was called."""
        self.load_state_dict({"state": state})

    def state_dict(self) -> dict[str, Tensor]:
        """{"state": what ``get_state`` gives}."""
        return {"state": self.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave. StateError, ShapeError or DTypeError if it is something else."""
        load_variables("Generator", {"state": self.state}, state, strict=True)

    def next_key(self) -> Tensor:
        """A fresh key (uint32[2]); the count goes up by one. No two callers get the same, in whatever threads. Under
        vmap each element gets its own: element i row i of ``split_key(key, size)``."""
        while True:
            state = self.state.read()
            key: Tensor = ops.fold_in(state[0:2], state[2])
            following = state + state.lift(_ONE, dtypes.uint32)
            if self.state.replace(following, state):
                return key if ACTIVE.level is None else own_keys(key)


_ONE = np.array([0, 0, 1], np.uint32)
_ONE.flags.writeable = False


def _state(seed: int) -> np.ndarray:
    number = operator.index(seed)  # NumPy's are of few bits
    return np.array([number & 0xFFFFFFFF, (number >> 32) & 0xFFFFFFFF, 0], np.uint32)


_DEFAULTS: Final = {device: Generator(0, device=device) for device in devices()}


class _StandIn(threading.local):
    """What gives this thread its default generators, in place of the usual ones."""

    generator: Callable[[Device], Generator] | None = None


STAND_IN: Final = _StandIn()


def default_on(device: Device) -> Generator:
    """The generator of those who name none, on ``device``: each has its own, and equal seeds give equal streams."""
    return _DEFAULTS[device] if STAND_IN.generator is None else STAND_IN.generator(device)


def manual_seed(seed: int) -> None:
    """Seed the default generator of every device: equal seeds give equal numbers, on any number of threads, eager and
    compiled, on whatever device."""
    for device in _DEFAULTS:
        default_on(device).seed(seed)


def seed() -> int:
    """Seed the default generator of every device with one number of the operating system's, and give it."""
    number = secrets.randbits(64)
    manual_seed(number)
    return number


def initial_seed() -> int:
    """The seed of the default generator of ``runnel.device()``."""
    return default_on(default_device()).initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator of ``runnel.device()``: uint32 (key low, key high, count)."""
    return default_on(default_device()).get_state()


def set_rng_state(state: Any) -> None:
    """Let the default generator of ``runnel.device()`` go on from a state that :func:`get_rng_state` gave."""
    default_on(default_device()).set_state(state)


def rand(
    *shape: Shape,
    dtype: Dtype = dtypes.float32,
    generator: Generator | None = None,
    key: TensorLike | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform numbers in [0, 1), of the shape given by ints or one tuple, and a float dtype (else DTypeError). They are
    those of ``key`` where there is one, else the generator's next; on their device, or that of the default generator
    on ``device``."""
    drawn = ops.uniform(key_of(generator, key, device), _shape("rand", shape), dtypes.as_dtype(dtype))
    return leaf(drawn, requires_grad)


def randn(
    *shape: Shape,
    dtype: Dtype = dtypes.float32,
    generator: Generator | None = None,
    key: TensorLike | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers of mean 0 and deviation 1 (Box–Muller), of the shape given by ints or one tuple; by ``key``, where
    there is one. ``device`` as in :func:`rand`."""
    drawn = ops.normal(key_of(generator, key, device), _shape("randn", shape), dtypes.as_dtype(dtype))
    return leaf(drawn, requires_grad)


def key_of(generator: Generator | None, key: Any, device: Any) -> Any:
    """The key that a function draws with: ``key``, if there is one, else the next of ``generator``, or of the default
    one; on ``device``, if one is named."""
    place = None if device is None else as_device(device)
    if key is None:
        return next_key(generator, place)
    return key if place is None else key.to(place)


def next_key(generator: Generator | None, device: Device | None) -> Tensor:
    """A fresh key on ``device``, from ``generator`` or from the default one there."""
    if generator is None:
        return default_on(device or default_device()).next_key()
    key = generator.next_key()
    return key if device is None else key.on(device)


def _shape(name: str, sizes: tuple[Any, ...]) -> tuple[int, ...]:
    return as_sizes(name, sizes[0] if len(sizes) == 1 else sizes)


def randint(
    low: int,
    high: Any = None,
    shape: Any = None,
    dtype: Dtype = dtypes.int64,
    generator: Generator | None = None,
    key: TensorLike | None = None,
    device: Any = None,
) -> Tensor:
    """Integers in [low, high), at most 2³² of them (else ShapeError), of ``shape``, one unless it is given; by ``key``,
    where there is one. ``device`` as in :func:`rand`. Without ``high`` in [0, low): ``randint(10, (2, 3))``,
    ``randint(10, size=5)``."""
    if shape is None and high is not None and not is_single(high):
        low, high, shape = 0, low, high
    elif high is None:
        low, high = 0, low
    sizes = () if shape is None else shape
    return ops.randint(key_of(generator, key, device), low, high, sizes, dtypes.as_dtype(dtype))


def dropout(x: Array, p: float = 0.5, training: bool = True, generator: Generator | None = None) -> Tensor:
    """``x`` with elements zeroed with probability ``p``, the rest scaled by 1/(1-p); ``x`` itself unless training."""
    if not training or p == 0:
        return x.read()
    return ops.dropout(x, next_key(generator, x.device), p)
