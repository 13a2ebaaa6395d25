"""Weights that are functions of other Parameters, with PyTorch's names.

The Parameter ``parametrizations.weight.original`` is trained; the modules ``parametrizations.weight.0``, … compute the
weight from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from runnel.core import public
from runnel.core.errors import ArgumentError, ShapeError
from runnel.nn.containers import ModuleDict, ModuleList
from runnel.nn.derived import Recipe, compute, compute_no_more, recipe_of
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.variable import Variable

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_CACHE: dict[tuple[int, str], Any] = {}
_DEPTH = [0]  # of ``cached`` blocks


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once inside the block, when it is first read."""
    _DEPTH[0] += 1
    try:
        yield
    finally:
        _DEPTH[0] -= 1
        if not _DEPTH[0]:
            _CACHE.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and its Parameters: ``original``, or ``original0``, … for several.

    The ``right_inverse`` of the first parametrization decides how many they are.
    """

    def __init__(self, modules: list[Module], original: Any, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        self.is_tensor = True
        self.ntensors = 1
        is_trained = isinstance(original, Parameter)
        trains = original.requires_grad if is_trained else False
        value = original.read().without_tape()
        for module in reversed(modules):
            if hasattr(module, "right_inverse"):
                value = module.right_inverse(value)
        if isinstance(value, ArrayMethods):
            self._keep("original", value, is_trained, trains)
        else:
            self.is_tensor = False
            self.ntensors = len(value)
            for i, part in enumerate(value):
                self._keep(f"original{i}", part, is_trained, trains)

    def _keep(self, name: str, value: Any, is_trained: bool, trains: bool) -> None:
        plain = value.read().without_tape()
        if is_trained:
            setattr(self, name, Parameter(plain, trains))
        else:
            self.register_buffer(name, plain)

    def right_inverse(self, value: Any) -> None:
        """Set the Parameters so that the tensor becomes ``value``."""
        for module in reversed(self._items()):
            if not hasattr(module, "right_inverse"):
                raise NotImplementedError(
                    f"[parametrize] {type(module).__name__} must define right_inverse() to set the tensor."
                )
            value = module.right_inverse(value)
        for name, part in zip(self._names(), (value,) if self.is_tensor else tuple(value), strict=True):
            getattr(self, name).assign(part.read().without_tape())

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    def forward(self) -> Any:
        first, *others = self._items()
        value = first(*[getattr(self, name) for name in self._names()])
        for module in others:
            value = module(value)
        return value


class _Parametrized(Recipe):
    def __init__(self, name: str) -> None:
        self.name = name

    def value(self, module: Any) -> Any:
        parametrizations = module.parametrizations[self.name]
        if not _DEPTH[0]:
            return parametrizations()
        key = id(module), self.name
        if key not in _CACHE:
            _CACHE[key] = parametrizations()
        return _CACHE[key]

    def assign(self, module: Any, value: Any) -> None:
        module.parametrizations[self.name].right_inverse(value)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute ``module.tensor_name`` by ``parametrization`` from a Parameter that replaces it.

    If the parametrization defines ``right_inverse(value)``, it returns the Parameter's value, or several, such that the
    tensor becomes about ``value``. A second parametrization is applied after the first.

    Args:
        module: a module.
        tensor_name: the name of a Parameter or buffer.
        parametrization: a module that computes the tensor.
        unsafe: allow another shape or dtype of the tensor, which is otherwise a ShapeError.

    Returns:
        ``module``.
    """
    parametrization.train(module.training)
    if isinstance(recipe_of(module, tensor_name), _Parametrized):
        there: ParametrizationList = module.parametrizations[tensor_name]
        value = there().without_tape()
        there.append(parametrization)
        try:
            if hasattr(parametrization, "right_inverse"):
                there.right_inverse(value)
            _require_same(value, there(), unsafe)
        except Exception:
            del there[-1]
            raise
        return module
    current = module.__dict__.get(tensor_name)
    if not isinstance(current, Variable):
        raise ArgumentError(f"[register_parametrization] {type(module).__name__} has no Parameter '{tensor_name}'.")
    parametrizations = ParametrizationList([parametrization], current, unsafe)
    _require_same(current, parametrizations(), unsafe)
    if "parametrizations" not in module.__dict__:
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = parametrizations
    compute(module, tensor_name, _Parametrized(tensor_name))
    return module


def _require_same(before: Any, after: Any, unsafe: bool) -> None:
    if not unsafe and (before.shape != after.shape or before.dtype is not after.dtype):
        raise ShapeError(
            f"[register_parametrization] a parametrization must return {before.dtype.name}{list(before.shape)} like "
            f"the tensor; got {after.dtype.name}{list(after.shape)}. Pass unsafe=True if this is intended."
        )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has parametrized tensors, or the tensor ``tensor_name``."""
    names = getattr(module, "parametrizations", {})
    return len(names) > 0 if tensor_name is None else tensor_name in names


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make ``tensor_name`` a Parameter again.

    It keeps its value, or without ``leave_parametrized`` takes the value of the original Parameter.
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(f"[remove_parametrizations] {type(module).__name__} has no parametrized '{tensor_name}'.")
    parametrizations: ParametrizationList = module.parametrizations[tensor_name]
    if not leave_parametrized and not parametrizations.is_tensor:
        raise ArgumentError(
            f"[remove_parametrizations] '{tensor_name}' must have one original for leave_parametrized=False; got "
            f"{parametrizations.ntensors}."
        )
    original = getattr(parametrizations, parametrizations._names()[0])
    value = parametrizations() if leave_parametrized else original
    compute_no_more(module, tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
    plain = value.read().without_tape()
    if isinstance(original, Parameter):
        setattr(module, tensor_name, Parameter(plain, original.requires_grad))
    else:
        module.register_buffer(tensor_name, plain)
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class of the module without parametrizations."""
    return getattr(type(module), "own_class", type(module))


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give ``to_module`` the parametrizations of ``from_module``, of one tensor or of all, with their Parameters."""
    names = [tensor_name] if tensor_name is not None else list(getattr(from_module, "parametrizations", {}))
    for name in names:
        there: ParametrizationList = from_module.parametrizations[name]
        if name not in to_module.__dict__:
            setattr(to_module, name, Parameter(there().without_tape()))
        for parametrization in there:
            register_parametrization(to_module, name, parametrization, unsafe=there.unsafe)
        ours: ParametrizationList = to_module.parametrizations[name]
        for part in there._names():
            getattr(ours, part).assign(getattr(there, part).value)
    return to_module


public.offer(globals(), __all__)
