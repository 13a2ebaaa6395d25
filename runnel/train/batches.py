"""Convert the user's data to batches, and join the outputs of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, StateError
from runnel.core.pytree import flatten, unflatten
from runnel.data.loader import DataLoader
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.random import Generator, get_rng_state, set_rng_state
from runnel.uneven.value import Ragged


class Batch(NamedTuple):
    """The arguments of a step."""

    inputs: tuple[Any, ...]
    target: Any
    size: int  # samples


Split = Callable[[Any], tuple[Any, Any]]


def pair(batch: Any) -> tuple[Any, Any]:
    """Return the inputs and the target of a batch that is a sequence: its last element is the target."""
    if isinstance(batch, list | tuple) and len(batch) >= 2:
        return tuple(batch[:-1]), batch[-1]
    if isinstance(batch, ArrayMethods | np.ndarray):
        raise ArgumentError(
            f"[Trainer] a batch must be (input, target), or (input, …, target); got an array of shape {batch.shape}. "
            "For arrays of all samples: DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)."
        )
    what = f"{type(batch).__name__} of {len(batch)}" if isinstance(batch, list | tuple) else type(batch).__name__
    raise ArgumentError(
        f"[Trainer] a batch must be (input, target), or (input, …, target); got a {what}. Pass split=, a function that "
        "returns the inputs and the target of a batch: split=lambda batch: (batch['x'], batch['y'])."
    )


def as_batch(split: Split, batch: Any, copies: bool = False) -> Batch:
    """Return a batch of a data loader with tensors instead of arrays.

    They share memory with the arrays unless ``copies``, which is needed if data write each batch into the same arrays.
    """
    parts = split(batch)
    if not (isinstance(parts, tuple) and len(parts) == 2):
        raise ArgumentError(f"[Trainer] split must return (inputs, target); got {short_repr(parts)}.")
    inputs, target = parts
    tensors = tuple(as_tensors(x, copies) for x in (inputs if type(inputs) is tuple else (inputs,)))
    return Batch(tensors, as_tensors(target, copies), _size(tensors))


def as_inputs(split: Split, batch: Any) -> Batch:
    """Return a batch for a prediction, from (input, target), whose target is dropped, or from inputs only."""
    if split is pair and not (isinstance(batch, list | tuple) and len(batch) >= 2):
        inputs = batch[0] if isinstance(batch, list | tuple) and batch else batch
        tensors = (as_tensors(inputs),)
        return Batch(tensors, None, _size(tensors))
    return as_batch(split, batch)._replace(target=None)


def as_tensors(value: Any, copies: bool = False) -> Any:
    """Return the same structure with tensors instead of arrays. Other mappings become dicts."""
    leaves, structure = flatten(value)
    return unflatten(structure, [_as_tensor(leaf, copies) for leaf in leaves])


def _as_tensor(leaf: Any, copies: bool) -> Any:
    if isinstance(leaf, np.ndarray):
        return asarray(leaf) if copies or not leaf.flags.c_contiguous else asarray(leaf, copy=False)
    if isinstance(leaf, Mapping):
        return {key: as_tensors(item, copies) for key, item in leaf.items()}
    return asarray(leaf) if isinstance(leaf, int | float | np.generic) else leaf


def _size(inputs: tuple[Any, ...]) -> int:
    leaves = flatten(inputs, lambda x: isinstance(x, Ragged))[0]
    sizes = (x.shape[0] for x in leaves if isinstance(x, ArrayMethods) and x.ndim)
    return next(sizes, 1)


def require_batches(name: str, data: Any) -> None:
    """Raise ArgumentError unless ``data`` can be iterated repeatedly."""
    if not isinstance(data, Iterable) or isinstance(data, np.ndarray | ArrayMethods | str | Mapping):
        raise ArgumentError(
            f"[{name}] takes batches, such as a DataLoader or a list of (input, target); got "
            f"{type(data).__name__}. For arrays: DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)."
        )
    if isinstance(data, Iterator):
        raise ArgumentError(
            f"[{name}] iterates over the batches once per epoch, and a {type(data).__name__} is used up then. "
            "Pass its source: a DataLoader, a list, or an object whose __iter__ starts again."
        )


def number_of(data: Any) -> int | None:
    """Return the number of batches; None if it is unknown."""
    try:
        return len(data)
    except TypeError:
        return None


class Pass:
    """One pass over the batches, which can continue an interrupted one, also in another process.

    The order of a pass depends on the states of the generators at its start, and of the default generator where it is
    drawn from. Both are remembered. A DataLoader whose order was drawn at its start continues at batch k by its own
    state, without reading earlier batches. Otherwise the first k batches are drawn again, with the states that the
    default generator had then, and dropped.

    Attributes:
        count: number of batches taken.
    """

    def __init__(self, data: Iterable[Any], state: Mapping[str, Any] | None = None) -> None:
        self._generators = generators_of(data)
        self.data = data
        self.count = 0
        self._begin = [generator.get_state() for generator in self._generators]
        self._draws: list[tuple[int, np.ndarray]] = []  # before which batches the default generator was drawn from
        self._loader_state: Mapping[str, Any] | None = None  # of a DataLoader in this pass
        self._iterator: Iterator[Any] | None = None
        if state is not None:
            self._go_on(state)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        before = get_rng_state().numpy()
        try:
            if self._iterator is None:
                self._iterator = iter(self.data)  # which may draw the order, now and not with the first batch
            batch = next(self._iterator)
        except StopIteration:
            raise
        except BaseException:
            set_rng_state(before)
            self._take_back_order()
            raise
        if get_rng_state().numpy().tobytes() != before.tobytes():
            self._draws.append((self.count, before))
        if not self.count and _has_place(self.data):  # which another pass over the same loader would overwrite
            self._loader_state = self.data.state_dict()
        self.count += 1
        return batch

    def give_back(self, count: int) -> None:
        """Repeat the last ``count`` batches when the pass is continued from its state."""
        self.count -= count
        while self._draws and self._draws[-1][0] >= self.count:
            set_rng_state(self._draws.pop()[1])
        self._take_back_order()

    def _take_back_order(self) -> None:
        """Reset the generators if no batch was taken, so that the next pass has this order."""
        if not self.count:
            for generator, begin in zip(self._generators, self._begin, strict=True):
                generator.set_state(begin)

    def state_dict(self) -> dict[str, Any]:
        """Return the position."""
        return {
            "count": self.count,
            "generators": self._begin,
            "drawn_before": [at for at, _ in self._draws],
            "default": [state for _, state in self._draws],
            "loader": self._place(),
        }

    def _place(self) -> dict[str, Any] | None:
        """Return the state of the DataLoader at this batch.

        None without a DataLoader, or if it draws from the default generator after its start, as training does.
        """
        if self._loader_state is None or not self.count or any(at for at, _ in self._draws):
            return None
        generators = [generator.get_state().tolist() for generator in self._generators]
        return {**self._loader_state, "position": self.count, "generators": generators}

    def _go_on(self, state: Mapping[str, Any]) -> None:
        if len(state["generators"]) != len(self._generators):
            raise StateError(
                f"[load_state_dict] the state is of batches with {len(state['generators'])} generators, "
                f"and these have {len(self._generators)}. Pass the DataLoader with the same generator= as before."
            )
        for generator, begin in zip(self._generators, state["generators"], strict=True):
            generator.set_state(begin)
        self._begin = [generator.get_state() for generator in self._generators]
        if state["loader"] is not None and _has_place(self.data):
            self.data.load_state_dict(state["loader"])
            self._iterator = iter(self.data)
            self._loader_state = state["loader"]
            self._draws = list(zip(state["drawn_before"], state["default"], strict=True))
            self.count = int(state["count"])
            return
        drawn = dict(zip(state["drawn_before"], state["default"], strict=True))
        after = get_rng_state()
        for at in range(int(state["count"])):
            if at in drawn:
                set_rng_state(drawn[at])
            try:
                next(self)
            except StopIteration:
                raise StateError(
                    f"[load_state_dict] the state is of a pass over more than {at} batches, and now there are {at}. "
                    "Go on with the same data."
                ) from None
        set_rng_state(after)


def _has_place(data: Any) -> TypeGuard[DataLoader]:
    """Return True if ``data`` is a DataLoader that iterates like its class."""
    return isinstance(data, DataLoader) and type(data).__iter__ is DataLoader.__iter__


def generators_of(data: Any) -> list[Generator]:
    """Return the generators that a DataLoader or its samplers hold, each once."""
    sampler = getattr(data, "sampler", None)
    batches = getattr(data, "batch_sampler", None)
    result: list[Generator] = []
    for holder in (data, sampler, batches, getattr(batches, "sampler", None)):
        generator = getattr(holder, "generator", None)
        if isinstance(generator, Generator) and not any(generator is other for other in result):
            result.append(generator)
    return result


def joined(outputs: Iterable[Any]) -> Any:
    """Join arrays of the batches along their first axis, in the structure of the outputs."""
    listed = list(outputs)
    if not listed:
        raise ArgumentError("[predict] the data have no batches.")
    flat = [flatten(output) for output in listed]
    structure = flat[0][1]
    for _, other in flat:
        if other != structure:
            raise ArgumentError(
                f"[predict] outputs of all batches must have the same structure; got {structure!r} and {other!r}."
            )
    return unflatten(structure, [_joined(parts) for parts in zip(*(leaves for leaves, _ in flat), strict=True)])


def _joined(parts: Sequence[Any]) -> Any:
    """Join one leaf of all outputs; None if each is None."""
    if all(part is None for part in parts):
        return None
    if any(not isinstance(part, ArrayMethods | int | float) for part in parts):
        kinds = ", ".join(sorted({type(part).__name__ for part in parts}))
        raise ArgumentError(f"[predict] outputs must be made of tensors, numbers and None; got {kinds}.")
    arrays = [part.numpy() if isinstance(part, ArrayMethods) else np.asarray(part) for part in parts]
    return np.concatenate(arrays) if arrays[0].ndim else np.stack(arrays)
