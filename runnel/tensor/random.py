"""Random numbers with a state: a generator is a Variable of (key, count), so draws are the same eager and compiled.

The numbers are counter-based (``ops.random``): draw number ``count`` of a generator with seed ``s`` is a function of
(s, count) and position alone, whatever computes it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.backends.context import default_device
from runnel.core import dtypes, kinds
from runnel.core.devices import Device, as_device, devices
from runnel.core.dispatch import TensorLike
from runnel.core.errors import DTypeError
from runnel.core.surface import offered
from runnel.ops.arguments import Array, as_sizes
from runnel.tensor.active import ACTIVE
from runnel.tensor.batching import own_keys
from runnel.tensor.creation import Shape
from runnel.tensor.inplace import in_place
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.state import load_variables
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


@offered("rn")
@kinds.declare
class Generator:
    """A stream of random numbers on a device. ``state`` is a Variable: uint32 (key low, key high, count)."""

    def __init__(self, seed: int = 0, *, device: Any = None) -> None:
        self.state = Variable(_state(seed), name="random.state", device=device)

    def seed(self, seed: int) -> None:
        """Start the stream anew."""
        self.state.assign(_state(seed))

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream anew; returns the generator."""
        self.seed(seed)
        return self

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


def default_on(device: Device) -> Generator:
    """The generator of those who name none, on ``device``: each has its own, and equal seeds give equal streams."""
    return _DEFAULTS[device]


@offered("rn")
def manual_seed(seed: int) -> None:
    """Seed the default generator of every device: equal seeds give equal numbers, on any number of threads, eager and
    compiled, on whatever device."""
    for generator in _DEFAULTS.values():
        generator.seed(seed)


@offered("rn")
def get_rng_state() -> Tensor:
    """The state of the default generator of ``runnel.device()``: uint32 (key low, key high, count)."""
    return default_on(default_device()).get_state()


@offered("rn")
def set_rng_state(state: Any) -> None:
    """Let the default generator of ``runnel.device()`` go on from a state that :func:`get_rng_state` gave."""
    default_on(default_device()).set_state(state)


@offered("rn")
def rand(
    *shape: Shape,
    dtype: Any = dtypes.float32,
    generator: Generator | None = None,
    key: TensorLike | None = None,
    device: Any = None,
) -> Tensor:
    """Uniform numbers in [0, 1), of the shape given by ints or one tuple, and a float dtype (else DTypeError). They are
    those of ``key`` where there is one, else the generator's next; on their device, or that of the default generator
    on ``device``."""
    return ops.uniform(_key(generator, key, device), _shape("rand", shape), dtypes.as_dtype(dtype))


@offered("rn")
def randn(
    *shape: Shape,
    dtype: Any = dtypes.float32,
    generator: Generator | None = None,
    key: TensorLike | None = None,
    device: Any = None,
) -> Tensor:
    """Normal numbers of mean 0 and deviation 1 (Box–Muller), of the shape given by ints or one tuple; by ``key``, where
    there is one. ``device`` as in :func:`rand`."""
    return ops.normal(_key(generator, key, device), _shape("randn", shape), dtypes.as_dtype(dtype))


def _key(generator: Generator | None, key: Any, device: Any) -> Any:
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


def _shape(name: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    return as_sizes(name, given[0] if len(given) == 1 else given)


@offered("rn")
def randint(
    low: int,
    high: int,
    shape: Any,
    dtype: Any = dtypes.int64,
    generator: Generator | None = None,
    key: TensorLike | None = None,
    device: Any = None,
) -> Tensor:
    """Integers in [low, high), at most 2³² of them (else ShapeError), of ``shape``; by ``key``, where there is one.
    ``device`` as in :func:`rand`."""
    return ops.randint(_key(generator, key, device), low, high, shape, dtypes.as_dtype(dtype))


@offered("rn")
def dropout(x: Array, p: float = 0.5, training: bool = True, generator: Generator | None = None) -> Tensor:
    """``x`` with elements zeroed with probability ``p``, the rest scaled by 1/(1-p); ``x`` itself unless training."""
    if not training or p == 0:
        return x.read()
    return ops.dropout(x, next_key(generator, x.device), p)


# --- filling in place ---------------------------------------------------------------------------------------------


def _normal(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    return ops.normal(next_key(generator, x.device), x.shape, _float("normal_", x), mean, std)


def _uniform(x: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    return ops.uniform(next_key(generator, x.device), x.shape, _float("uniform_", x), low, high)


def _bernoulli(x: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    return ops.cast(ops.bernoulli(next_key(generator, x.device), p, x.shape), x.dtype)


def _float(name: str, x: Tensor) -> dtypes.DType:
    if not x.dtype.is_float:
        raise DTypeError(f"[{name}] draws floats; received a tensor of dtype {x.dtype.name}.")
    return x.dtype


_DRAWS: Final[dict[str, Callable[..., Tensor]]] = {"normal": _normal, "uniform": _uniform, "bernoulli": _bernoulli}
for _name, _draw in _DRAWS.items():
    setattr(ArrayMethods, f"{_name}_", in_place(_name, _draw))
