"""Random number generators: Variables of (key, count), so that eager and compiled draws are the same.

The numbers are counter-based (``ops.random``): draw number ``count`` of a generator with seed ``s`` is a function of
(s, count) and position alone, whatever computes it.
"""

from __future__ import annotations

import functools
import operator
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import numpy as np

from runnel import ops
from runnel.backends.context import default_device
from runnel.core import dtypes, kinds
from runnel.core.composed import composed
from runnel.core.devices import Device, as_device, devices
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import Dtype
from runnel.core.recall import LESSON, Usual
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
        """Restart the stream, by default from a seed of the operating system; return the seed."""
        number = secrets.randbits(64) if seed is None else operator.index(seed)
        self.state.assign(_state(number))
        return number

    def manual_seed(self, seed: int) -> Self:
        """Restart the stream from ``seed``."""
        self.seed(seed)
        return self

    def initial_seed(self) -> int:
        """Return the seed that the present stream began with, from 0 to 2⁶⁴ - 1."""
        low, high, _ = self.get_state().tolist()
        return int(low) | int(high) << 32

    def get_state(self) -> Tensor:
        """Return the position of the stream: uint32 (key low, key high, count). Later draws do not change it."""
        return self.state.value

    def set_state(self, state: Any) -> None:
        """Go to where ``get_state`` was called."""
        self.load_state_dict({"state": state})

    def state_dict(self) -> dict[str, Tensor]:
        """Return ``{"state": self.get_state()}``."""
        return {"state": self.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave. StateError, ShapeError or DTypeError if it is something else."""
        load_variables("Generator", {"state": self.state}, state, strict=True)

    def next_key(self) -> Tensor:
        """Return a new key (uint32[2]) and increase the count by one.

        No two callers get the same key, on any thread. Under vmap each element gets a separate key: element i gets
        row i of ``split_key(key, size)``.
        """
        while True:
            state = self.state.read()
            bare = LESSON.alone(state.untaped, "read", self.state)  # its items do not follow the Variable
            key, following = _advanced(bare)
            replace = functools.partial(self.state.replace, following, state)
            if LESSON.alone(replace, "assign", self.state, bare, following):
                return key if ACTIVE.level is None else own_keys(key)


@composed
def _advanced(state: Tensor) -> tuple[Tensor, Tensor]:
    """Return the key of a state, and the next state."""
    return ops.fold_in(state[0:2], state[2]), state + state.lift(_ONE, dtypes.uint32)


_ONE = np.array([0, 0, 1], np.uint32)
_ONE.flags.writeable = False


def _state(seed: int) -> np.ndarray:
    number = operator.index(seed)  # NumPy's are of few bits
    return np.array([number & 0xFFFFFFFF, (number >> 32) & 0xFFFFFFFF, 0], np.uint32)


_DEFAULTS: Final = {device: Generator(0, device=device) for device in devices()}


class _StandIn(Usual):
    """The function that replaces the default generators on this thread, if any."""

    generator: Callable[[Device], Generator] | None = None


STAND_IN: Final = _StandIn()


def default_on(device: Device) -> Generator:
    """Return the default generator on ``device``. Each device has one, and equal seeds start equal streams."""
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
    """Return the seed of the default generator of ``runnel.device()``."""
    return default_on(default_device()).initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default generator of ``runnel.device()``: uint32 (key low, key high, count)."""
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
    """Draw uniform numbers in [0, 1).

    The shape is given by ints or one tuple; the dtype must be a float (else DTypeError). The numbers come from
    ``key`` if it is given, else from the generator's next key. They are on the device of the key or generator, by
    default of the default generator on ``device``.
    """
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
    """Return the key that a function draws with: ``key`` if it is given, else the next key of ``generator`` or of the
    default generator, on ``device`` if one is named."""
    place = None if device is None else as_device(device)
    if key is None:
        return next_key(generator, place)
    return key if place is None else key.to(place)


def next_key(generator: Generator | None, device: Device | None) -> Tensor:
    """Return a new key on ``device``, from ``generator`` or from the default generator there."""
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


def dropout(x: Array, p: float = 0.5, training: bool = True, *, generator: Generator | None = None) -> Tensor:
    """Set each element of ``x`` to zero with probability ``p`` and scale the rest by 1/(1-p); return ``x`` unless
    training."""
    value = x.read()
    return ops.dropout(value, next_key(generator, x.device), p) if training and p else value
