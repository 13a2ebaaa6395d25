"""Functions that the run makes and that leave it: made anew at each call, with variables of their own."""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any


def recipe_of(recipes: Any, function: FunctionType) -> Any:
    """How later calls make a function that the run made; the code is the user's own."""
    rec, key = recipes.rec, id(function)
    code = rec.originals.get(id(function.__code__))
    names = rec.source_of(function.__globals__)
    if code is None or names is None:
        rec.refuse("a function made in the function leaves it", "define it outside")
    space = recipes.of(function.__globals__)
    cells = [_cell(recipes, cell) for cell in function.__closure__ or ()]
    parts = {
        name: recipes.part(getattr(function, name))
        for name in ("__defaults__", "__kwdefaults__", "__dict__", "__annotations__", "__doc__", "__module__")
    }
    name, qualified = function.__name__, function.__qualname__

    def make(values: Any, objects: dict[Any, Any]) -> FunctionType:
        closure = tuple([cell(values, objects) for cell in cells])
        return FunctionType(code, space(values, objects), name, None, closure)

    def fill(made: FunctionType, values: Any, objects: dict[Any, Any]) -> None:
        for part, recipe in parts.items():
            setattr(made, part, recipe(values, objects))
        made.__qualname__ = qualified

    return recipes.once(key, make, fill)


def _cell(recipes: Any, cell: CellType) -> Any:
    """A variable of a function: of one that the run made, it is new at each call, and shared as it was shared."""
    rec = recipes.rec
    if id(cell) in rec.cells:
        return recipes.cell(cell)
    known = rec.memo.get(("cell", id(cell)))
    if known is None:
        known = rec.memo["cell", id(cell)] = _new_cell(recipes, cell)
    return known


def _new_cell(recipes: Any, cell: CellType) -> Any:
    rec = recipes.rec
    content: list[Any] = []
    rec.keep(cell)

    def fill(made: CellType, values: Any, objects: dict[Any, Any]) -> None:
        for recipe in content:
            made.cell_contents = recipe(values, objects)

    recipe = rec.memo["cell", id(cell)] = recipes.once(id(cell), lambda values, objects: CellType(), fill)
    try:
        value = cell.cell_contents
    except ValueError:  # it is empty
        return recipe
    content.append(recipes.part(value))
    return recipe
