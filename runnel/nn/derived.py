"""Subclasses for single modules that call hooks or compute attributes, such as masked or parametrized weights.

A module gets such a class, with the same name, when it needs one, and its own class back afterwards. So a feature that
few modules need costs the others nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar

_DERIVED: dict[tuple[type, tuple[type, ...]], type] = {}


class Part:
    """A base of such a class, besides the module's own class."""

    own_class: ClassVar[type]
    parts: ClassVar[tuple[type, ...]] = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        reduced: Any = super().__reduce_ex__(protocol)
        return _remade, (self.own_class, self.parts), *reduced[2:]


def own_class(module: Any) -> type:
    """Return the class that a module was made of."""
    kind = type(module)
    own: type = kind.own_class if issubclass(kind, Part) else kind
    return own


def with_part(module: Any, part: type[Part]) -> None:
    """Add ``part`` to the class of ``module``."""
    parts = getattr(type(module), "parts", ())
    if part not in parts:
        module.__class__ = derived(own_class(module), (part, *parts))


def without_part(module: Any, part: type[Part]) -> None:
    """Remove ``part`` from the class of ``module``."""
    parts = tuple(p for p in getattr(type(module), "parts", ()) if p is not part)
    module.__class__ = derived(own_class(module), parts)


def with_own_class(module: Any, kind: type) -> None:
    """Change the class of ``module`` to ``kind``, keeping its parts."""
    module.__class__ = derived(kind, getattr(type(module), "parts", ()))


def derived(own: type, parts: tuple[type, ...]) -> type:
    """Return the class with these parts and the class ``own`` as bases."""
    if not parts:
        return own
    kind = _DERIVED.get((own, parts))
    if kind is None:
        space = {"__module__": own.__module__, "__qualname__": own.__qualname__, "own_class": own, "parts": parts}
        kind = _DERIVED[own, parts] = type(own)(own.__name__, (*parts, own), space)
    return kind


def _remade(own: type, parts: tuple[type, ...]) -> Any:
    kind: Any = derived(own, parts)
    return kind.__new__(kind)


class Recipe:
    """A rule that computes an attribute. Instances do not change."""

    def value(self, module: Any) -> Any:
        """Return the attribute's present value."""
        raise NotImplementedError

    def assign(self, module: Any, value: Any) -> None:
        """Change Parameters so that the attribute becomes ``value``."""
        raise AttributeError(
            f"[{type(module).__name__}] an attribute that is computed from Parameters cannot be set; set these."
        )


class Computed(Part):
    """A module with computed attributes."""

    recipes: dict[str, Recipe]

    def __getattr__(self, name: str) -> Any:
        recipe = self.__dict__.get("recipes", {}).get(name)
        if recipe is None:
            raise AttributeError(f"[{type(self).__name__}] has no attribute '{name}'.")
        return recipe.value(self)

    def __setattr__(self, name: str, value: Any) -> None:
        recipe = self.__dict__.get("recipes", {}).get(name)
        if recipe is None:
            super().__setattr__(name, value)
        else:
            recipe.assign(self, value)


def recipe_of(module: Any, name: str) -> Recipe | None:
    """Return the recipe of attribute ``name``, or None."""
    recipes: dict[str, Recipe] = module.__dict__.get("recipes", {})
    return recipes.get(name)


def compute(module: Any, name: str, recipe: Recipe) -> None:
    """Compute attribute ``name`` by ``recipe`` from now on; its value is dropped."""
    if name in module.__dict__:
        delattr(module, name)
    module.recipes = {**module.__dict__.get("recipes", {}), name: recipe}
    with_part(module, Computed)


def compute_no_more(module: Any, name: str) -> None:
    """Stop computing attribute ``name``."""
    module.recipes = {key: recipe for key, recipe in module.recipes.items() if key != name}
    if not module.recipes:
        del module.recipes
        without_part(module, Computed)
