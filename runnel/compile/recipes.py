"""Recipes for Runnel's and NumPy's values that leave an observed run: how later calls make them."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np

from runnel.compile.observe.observation import Recipes, Values
from runnel.core.dtypes import DType
from runnel.core.lifetime import Weak
from runnel.tensor.floats import TracedFloat
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable
from runnel.tensor.views import DETACHED, Steps, shown

OUTPUTS: Final = "outputs"  # what the program gave, among what is made


class Output:
    """A tensor that the program gives: a result by its number."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.steps: Steps | None = None  # of a view of the result at this place
        self.is_taped_apart = False  # a detached tensor that got a gradient, which no view has

    def __call__(self, values: Values, objects: dict[Any, Any]) -> Any:
        result = objects[OUTPUTS][self.place]
        if self.steps is None:
            return result
        if id(self) not in objects:  # one object a call, however often it leaves
            objects[id(self)] = shown(result, self.steps)
        return objects[id(self)]


class Reference:
    """A Variable, which the program does not keep alive."""

    def __init__(self, variable: Variable) -> None:
        self.variable = Weak(variable)

    def __call__(self, values: Values, objects: dict[Any, Any]) -> Any:
        return self.variable()


class Copied:
    """A NumPy array that the run made: a new one for each call."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array.copy()

    def __call__(self, values: Values, objects: dict[Any, Any]) -> Any:
        return self.array.copy()


class Shown:
    """A view of what another recipe makes."""

    def __init__(self, base: Any, steps: Steps) -> None:
        self.base = base
        self.steps = steps

    def __call__(self, values: Values, objects: dict[Any, Any]) -> Any:
        if id(self) not in objects:
            objects[id(self)] = shown(self.base(values, objects), self.steps)
        return objects[id(self)]


def _tensor(recipes: Recipes, value: Any) -> Any:
    if not all(hasattr(Tensor, name) or name.startswith("_") for name in vars(value)):
        recipes.rec.refuse("a tensor that leaves the function has attributes of yours", "return them beside it")
    memo = recipes.rec.memo
    if ("left", id(value)) not in memo:
        memo["left", id(value)] = _left(recipes, value)
    return memo["left", id(value)]


def _left(recipes: Recipes, value: Tensor) -> Any:
    session, view = recipes.rec.session, None if value._view is None else value._view.root
    is_apart = view is not None and value.requires_grad and DETACHED in view.steps and view.base.requires_grad
    if view is not None and recipes.rec.source_of(view.base) is not None and session.is_kept(view.base):
        if is_apart:
            session.refuse_view_taped_apart(recipes.rec)
        return Shown(recipes.of(view.base), session.steps_of(recipes.rec, view))
    output = Output(session.output(value))
    output.is_taped_apart = is_apart
    if view is not None:
        session.views.append((output, view))
    return output


def _number(recipes: Recipes, value: Any) -> NoReturn:
    recipes.rec.refuse("a float that the program computes leaves the function", "return a tensor")


def rule_for(kind: type) -> Any:
    """Return the recipe for values of a class, or None for Python's objects."""
    if kind is Tensor:
        return _tensor
    if kind is TracedFloat:
        return _number
    if issubclass(kind, Variable):
        return lambda recipes, value: Reference(value)
    if issubclass(kind, np.ndarray):
        return lambda recipes, value: Copied(value)
    if issubclass(kind, (np.generic, DType, np.dtype)):
        return lambda recipes, value: lambda values, objects: value
    return None
