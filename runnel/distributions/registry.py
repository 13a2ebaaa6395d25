"""``biject_to`` and ``transform_to``: extensible tables of transforms from all numbers to a constraint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from runnel.distributions import constraints
from runnel.distributions.constraints import Constraint
from runnel.distributions.joint_transforms import CatTransform, StackTransform, identity_transform
from runnel.distributions.matrix_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
)
from runnel.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    SigmoidTransform,
    SoftmaxTransform,
    StickBreakingTransform,
    Transform,
)

Factory = Callable[[Any], Transform]
F = TypeVar("F", bound=Factory)


class ConstraintRegistry:
    """A table that returns, for a constraint, the transform whose values satisfy it.

    Constraints are registered by class; instances such as ``simplex``, which share a class, by identity.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._by_class: dict[type, Factory] = {}
        self._by_itself: dict[int, tuple[Constraint, Factory]] = {}

    def register(self, constraint: Any, factory: F | None = None) -> Any:
        """Register a function from a constraint to its transform; without one, return a decorator."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        if isinstance(constraint, type) and issubclass(constraint, Constraint):
            self._by_class[constraint] = factory
        elif isinstance(constraint, Constraint):
            if type(constraint).__module__ == constraints.__name__:
                self._by_itself[id(constraint)] = constraint, factory
            else:
                self._by_class[type(constraint)] = factory
        else:
            raise TypeError(f"[{self._name}] registers constraints and their classes; got {constraint!r}.")
        return factory

    def __call__(self, constraint: Any) -> Transform:
        if not isinstance(constraint, Constraint):
            raise TypeError(f"[{self._name}] takes a constraint; got {constraint!r}.")
        if id(constraint) in self._by_itself:
            return self._by_itself[id(constraint)][1](constraint)
        for kind in type(constraint).__mro__:
            if kind in self._by_class:
                return self._by_class[kind](constraint)
        raise NotImplementedError(
            f"[{self._name}] no transform leads to {constraint!r}; add one with {self._name}.register()."
        )


biject_to = ConstraintRegistry("biject_to")
transform_to = ConstraintRegistry("transform_to")


def _both(*kinds: Any) -> Callable[[F], F]:
    def registered(factory: F) -> F:
        for table in (biject_to, transform_to):
            for kind in kinds:
                table.register(kind, factory)
        return factory

    return registered


@_both(constraints.real)
def _to_real(constraint: Any) -> Transform:
    return identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.lower_bound, 1)])


@_both(constraints.positive, constraints.nonnegative)
def _to_positive(constraint: Any) -> Transform:
    return ExpTransform()


@_both(constraints.less_than)
def _below(constraint: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)])


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


@_both(constraints.unit_interval)
def _to_unit(constraint: Any) -> Transform:
    return SigmoidTransform()


biject_to.register(constraints.simplex, lambda _: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: SoftmaxTransform())


@_both(constraints.lower_cholesky)
def _to_lower_cholesky(constraint: Any) -> Transform:
    return LowerCholeskyTransform()


@_both(constraints.positive_definite, constraints.positive_semidefinite)
def _to_positive_definite(constraint: Any) -> Transform:
    return PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> Transform:
    return CorrCholeskyTransform()


def _of_parts(table: ConstraintRegistry) -> None:
    """Register constraints that are made of other constraints."""

    def independent(c: Any) -> Transform:
        base = table(c.base_constraint)
        return IndependentTransform(base, c.reinterpreted_batch_ndims) if c.reinterpreted_batch_ndims else base

    table.register(constraints.independent, independent)
    table.register(constraints.cat, lambda c: CatTransform([table(part) for part in c.cseq], c.dim, c.lengths))
    table.register(constraints.stack, lambda c: StackTransform([table(part) for part in c.cseq], c.dim))


_of_parts(biject_to)
_of_parts(transform_to)
