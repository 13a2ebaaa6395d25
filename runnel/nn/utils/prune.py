"""Prune weights by masks, with PyTorch's names: ``weight`` is ``weight_orig`` (a Parameter) · ``weight_mask``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from runnel import ops
from runnel.core import public
from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, ShapeError
from runnel.nn.derived import Recipe, compute, compute_no_more, recipe_of
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter
from runnel.tensor import random
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class _Masked(Recipe):
    def __init__(self, name: str) -> None:
        self.name = name

    def value(self, module: Any) -> Any:
        return getattr(module, f"{self.name}_orig") * getattr(module, f"{self.name}_mask")


def _values(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.numpy() if isinstance(x, ArrayMethods) else x)


class BasePruningMethod(ABC):
    """The base of pruning methods. Subclasses define ``compute_mask``."""

    PRUNING_TYPE: ClassVar[str] = "unstructured"

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return 0 for the elements of ``t`` to prune, including those where ``default_mask`` is 0, and else 1."""

    def apply_mask(self, module: Module) -> Any:
        """Return the module's masked tensor."""
        return getattr(module, self._name)

    _name: str = ""

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune ``module.name`` by ``cls(*args, **kwargs)``. Masks of repeated calls multiply."""
        method = cls(*args, **kwargs)
        method._name = name
        _prune(module, name, method.compute_mask, importance_scores)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Return ``t`` with its pruned elements set to 0."""
        mask = np.ones(t.shape) if default_mask is None else _values(default_mask)
        chosen = self.compute_mask(_values(t if importance_scores is None else importance_scores), mask)
        return t * asarray(_values(chosen)).astype(t.dtype)

    def remove(self, module: Module) -> None:
        """Make the module's tensor a Parameter again, with the value it has."""
        remove(module, self._name)


def _prune(module: Module, name: str, compute_mask: Any, importance_scores: Any = None) -> None:
    is_masked = isinstance(recipe_of(module, name), _Masked)
    weight = getattr(module, f"{name}_orig") if is_masked else module.__dict__.get(name)
    if not isinstance(weight, Parameter):
        raise ArgumentError(f"[prune] {type(module).__name__} has no Parameter '{name}'.")
    before = _values(getattr(module, f"{name}_mask")) if is_masked else np.ones(weight.shape, weight.dtype.numpy)
    scores = _values(weight if importance_scores is None else importance_scores)
    if scores.shape != weight.shape:
        raise ShapeError(
            f"[prune] importance_scores must have the shape of '{name}', {weight.shape}; got {scores.shape}."
        )
    mask = _values(compute_mask(scores, before))
    if mask.shape != weight.shape:
        raise ShapeError(f"[prune] a mask must have the shape of '{name}', {weight.shape}; got {mask.shape}.")
    if is_masked:
        getattr(module, f"{name}_mask").assign(mask.astype(weight.dtype.numpy))
        return
    compute(module, name, _Masked(name))
    setattr(module, f"{name}_orig", weight)
    module.register_buffer(f"{name}_mask", mask.astype(weight.dtype.numpy))


def _count(amount: float, size: int, what: str) -> int:
    """Return how many of ``size`` elements to prune; ``amount`` is a number or a share."""
    if isinstance(amount, bool) or amount < 0 or (isinstance(amount, float) and amount > 1):
        raise ValueError(f"[prune] amount must be a number of {what}, or a share in [0, 1]; got {amount}.")
    count = round(amount * size) if isinstance(amount, float) else int(amount)
    if count > size:
        raise ValueError(f"[prune] amount must be at most {size} {what}; got {count}.")
    return count


def _without(mask: np.ndarray[Any, Any], order: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """Return ``mask`` with 0 at the first ``count`` of ``order``, flat indices."""
    flat = mask.reshape(-1).copy()
    flat[order[:count]] = 0
    return flat.reshape(mask.shape)


def _random_order(size: int) -> np.ndarray[Any, Any]:
    drawn: np.ndarray[Any, Any] = random.rand(size, dtype="float64").numpy()
    return np.argsort(drawn, kind="stable")


class Identity(BasePruningMethod):
    """Prune nothing."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return _values(default_mask)


class RandomUnstructured(BasePruningMethod):
    """Prune random elements."""

    def __init__(self, amount: float) -> None:
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        mask = _values(default_mask)
        left = np.flatnonzero(mask)
        return _without(mask, left[_random_order(left.size)], _count(self.amount, left.size, "elements"))


class L1Unstructured(BasePruningMethod):
    """Prune the elements nearest to 0."""

    def __init__(self, amount: float) -> None:
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        mask = _values(default_mask)
        left = np.flatnonzero(mask)
        order = left[np.argsort(np.abs(_values(t).reshape(-1)[left]), kind="stable")]
        return _without(mask, order, _count(self.amount, left.size, "elements"))


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        self.amount = amount
        self.dim = dim

    def scores(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return a score for each row; the rows with the smallest scores are pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        values, mask = _values(t), _values(default_mask).copy()
        if not -values.ndim <= self.dim < values.ndim:
            raise ShapeError(f"[prune] dim must be an axis of shape {values.shape}; got {self.dim}.")
        rows = np.moveaxis(values * mask, self.dim, 0).reshape(values.shape[self.dim], -1)
        left = np.flatnonzero(np.moveaxis(mask, self.dim, 0).reshape(rows.shape).any(1))
        order = left[np.argsort(self.scores(rows[left]), kind="stable")]
        np.moveaxis(mask, self.dim, 0)[order[: _count(self.amount, left.size, "rows")]] = 0
        return mask


class RandomStructured(_Structured):
    """Prune random rows along ``dim``."""

    def scores(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.argsort(_random_order(len(rows)))


class LnStructured(_Structured):
    """Prune the rows along ``dim`` with the smallest n-norms."""

    def __init__(self, amount: float, n: float, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def scores(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(np.linalg.norm(rows, ord=float(self.n), axis=1))


class CustomFromMask(BasePruningMethod):
    """Prune the elements where a given mask is 0."""

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return _values(default_mask) * _values(self.mask)


class PruningContainer(BasePruningMethod):
    """Apply several methods, each to the elements that the previous ones left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self.methods: list[BasePruningMethod] = []
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Append a method."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"[PruningContainer] methods must be BasePruningMethods; got {type(method).__name__}.")
        self.methods.append(method)

    def __len__(self) -> int:
        return len(self.methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self.methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        for method in self.methods:
            default_mask = method.compute_mask(t, default_mask)
        return default_mask


def identity(module: Module, name: str) -> Module:
    """Give ``module.name`` a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune random elements: ``amount`` of them, or this share."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Any = None) -> Module:
    """Prune the elements nearest to 0, or with the smallest ``importance_scores``."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune random rows along ``dim``."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: float, dim: int, importance_scores: Any = None
) -> Module:
    """Prune the rows along ``dim`` with the smallest n-norms."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Any) -> Module:
    """Prune the elements where ``mask`` is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]], pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several tensors as if they were one.

    ``parameters`` are pairs of a module and a name, and ``importance_scores`` a dict by such pairs.
    """
    if not isinstance(parameters, Iterable):
        raise ArgumentError(f"[global_unstructured] parameters must be pairs; got {short_repr(parameters)}.")
    pairs = list(parameters)
    if not isinstance(pruning_method, type) or not issubclass(pruning_method, BasePruningMethod):
        raise ArgumentError(
            f"[global_unstructured] pruning_method must be a class of methods; got {short_repr(pruning_method)}."
        )
    if not all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], Module) for p in pairs):
        raise ArgumentError("[global_unstructured] parameters must be pairs (module, name of a Parameter).")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise ValueError("[global_unstructured] pruning_method must choose single elements.")
    scores_by_pair = importance_scores or {}
    scores = [_values(scores_by_pair.get(pair, getattr(pair[0], pair[1]))).reshape(-1) for pair in pairs]
    masks = [_values(getattr(m, f"{n}_mask", np.ones(getattr(m, n).shape))).reshape(-1) for m, n in pairs]
    mask = _values(method.compute_mask(np.concatenate(scores), np.concatenate(masks)))
    at = 0
    for (module, name), part in zip(pairs, scores, strict=True):
        custom_from_mask(module, name, mask[at : at + part.size].reshape(getattr(module, name).shape))
        at += part.size


def remove(module: Module, name: str) -> Module:
    """Make ``module.name`` a Parameter again, with the value it has."""
    if not isinstance(recipe_of(module, name), _Masked):
        raise ArgumentError(f"[prune.remove] '{name}' of {type(module).__name__} is not pruned.")
    original, value = getattr(module, f"{name}_orig"), ops.stop_gradient(getattr(module, name))
    compute_no_more(module, name)
    delattr(module, f"{name}_orig")
    delattr(module, f"{name}_mask")
    original.assign(value)
    setattr(module, name, original)
    return module


def is_pruned(module: Module) -> bool:
    """Return whether ``module``, or a module below it, has a mask."""
    return any(isinstance(r, _Masked) for m in module.modules() for r in m.__dict__.get("recipes", {}).values())


public.offer(globals(), __all__)
