"""Module attributes that are computed from Parameters on each read: normalised, masked or parametrized weights."""

from __future__ import annotations

from typing import Any

from runnel.nn.derived import Part, with_part, without_part


class Recipe:
    """How an attribute is computed. Instances do not change."""

    def value(self, module: Any) -> Any:
        """The attribute's value now."""
        raise NotImplementedError

    def assign(self, module: Any, value: Any) -> None:
        """Change Parameters so that the attribute has ``value``."""
        raise AttributeError(
            f"[{type(module).__name__}] what is computed from other Parameters cannot be set; set these."
        )


class Computed(Part):
    """A module with such attributes."""

    recipes: dict[str, Recipe]

    def __getattr__(self, name: str) -> Any:
        recipe = self.__dict__.get("recipes", {}).get(name)
        if recipe is None:
            raise AttributeError(f"[{type(self).__name__}] there is no attribute '{name}'.")
        return recipe.value(self)

    def __setattr__(self, name: str, value: Any) -> None:
        recipe = self.__dict__.get("recipes", {}).get(name)
        if recipe is None:
            super().__setattr__(name, value)
        else:
            recipe.assign(self, value)


def recipe_of(module: Any, name: str) -> Recipe | None:
    """How attribute ``name`` is computed, if it is."""
    recipes: dict[str, Recipe] = module.__dict__.get("recipes", {})
    return recipes.get(name)


def compute(module: Any, name: str, recipe: Recipe) -> None:
    """From now on, ``recipe`` gives attribute ``name``, which holds nothing any more."""
    if name in module.__dict__:
        delattr(module, name)
    module.recipes = {**module.__dict__.get("recipes", {}), name: recipe}
    with_part(module, Computed)


def compute_no_more(module: Any, name: str) -> None:
    """Attribute ``name`` is free to hold something again."""
    module.recipes = {key: recipe for key, recipe in module.recipes.items() if key != name}
    if not module.recipes:
        del module.recipes
        without_part(module, Computed)
