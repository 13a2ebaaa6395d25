"""``custom_jvp``: define the derivative of a function by its tangents."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from runnel.core import pytree
from runnel.core.errors import GradientError
from runnel.ops import add, zeros_like
from runnel.tensor.batching import Batching
from runnel.tensor.creation import asarray
from runnel.tensor.forward import Forward
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.levels import Level, highest
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.transforms.custom_levels import Batch, tensors_in, with_tensors
from runnel.transforms.custom_vjp import CustomDerivative, custom_vjp
from runnel.transforms.gradients import vjp

Rule = Callable[..., tuple[Any, Any]]


class custom_jvp(CustomDerivative):
    """Define the derivative of a function by the rule that you pass to :meth:`defjvp`.

    ``rule(primals, tangents)`` gets the arguments and their tangents as two tuples, with zeros for arguments without a
    tangent. It returns the result and its tangent, which has the structure, shapes and dtypes of the result. The rule
    must be linear in the tangents: reverse mode transposes it. Derivatives of higher order differentiate it.

    Args:
        fn: the function.
        nondiff_argnums: the positions of arguments without a derivative. ``rule(*static, primals, tangents)`` gets
            these first, and the tuples contain only the others.

    Example:
        >>> @rn.custom_jvp
        ... def log1pexp(x):
        ...     return rn.log(1 + rn.exp(x))
        >>> @log1pexp.defjvp
        ... def log1pexp_jvp(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return log1pexp(x), rn.sigmoid(x) * t
        >>> rn.grad(log1pexp)(rn.asarray(0.0)).item()
        0.5
    """

    users_functions = ("fn", "_rule")

    def __init__(self, fn: Callable[..., Any], nondiff_argnums: int | Iterable[int] = ()) -> None:
        super().__init__(fn, nondiff_argnums)
        self._rule: Rule | None = None

    def defjvp(self, jvp: Rule) -> Rule:
        """Set the derivative. Return it, so that this can be a decorator."""
        self._rule = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set the derivative by each argument.

        ``rule(tangent, result, *arguments)`` returns the term that an argument's tangent adds to the tangent of the
        result. None is for an argument that adds nothing.
        """
        if self.nondiff_argnums:
            raise GradientError("[custom_jvp] defjvps must be used without nondiff_argnums; use defjvp with them.")
        self._rule = functools.partial(_by_argument, self, jvps)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = self.positional(args, kwargs)
        inputs = tensors_in(args)
        if RECORDING.get() and any(x.requires_grad for x in inputs):
            self._required_rule()
            return _Transposed(self)(*args)
        level = highest(self.__name__, inputs)
        return self.fn(*args) if level is None else self.at_level(level, args)

    def at_level(self, level: Level, args: tuple[Any, ...]) -> Any:
        """Return the results on ``level``, the highest level of the arguments, without a tape of their handles."""
        if isinstance(level, Batching):
            return _Batch(self, level, args).run()
        return self._duals(level, args) if isinstance(level, Forward) else self.fn(*args)

    def pushed(self, args: tuple[Any, ...], tangents: Sequence[Tensor | None]) -> tuple[Any, list[Tensor | None]]:
        """Return the result and the tangents of the tensors in it, from the tangents of the tensors in ``args``."""
        rest = iter(tangents)
        leaves, structure = pytree.flatten(args)
        filled = [_tangent(x, next(rest) if isinstance(x, ArrayMethods) else None) for x in leaves]
        static, primals = self.divided(args)
        directions = self.divided(pytree.unflatten(structure, filled))[1]
        pair = self._required_rule()(*static, tuple(primals), tuple(directions))
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise GradientError(
                f"[custom_jvp] the rule of {self.__name__} must return the pair (result, tangent); got "
                f"{type(pair).__name__}."
            )
        result, tangent = pair
        outs, form = pytree.flatten(result)
        theirs, other = pytree.flatten(tangent)
        if form != other:
            raise GradientError(
                f"[custom_jvp] the rule of {self.__name__} must return a tangent of the structure {form!r} of its "
                f"result; got {other!r}."
            )
        pairs = zip(outs, theirs, strict=True)
        return result, [self._checked(x.read(), t) for x, t in pairs if isinstance(x, ArrayMethods)]

    def _required_rule(self) -> Rule:
        if self._rule is None:
            raise GradientError(f"[custom_jvp] {self.__name__} must have a derivative; set it with defjvp().")
        return self._rule

    def _checked(self, out: Tensor, tangent: Any) -> Tensor | None:
        """Return the tangent of one tensor of the result, if it has one."""
        if tangent is None or not out.dtype.is_inexact:
            return None
        t = tangent.read() if isinstance(tangent, ArrayMethods) else asarray(tangent, out.dtype, device=out.device)
        if t.shape != out.shape or t.dtype is not out.dtype:
            raise GradientError(
                f"[custom_jvp] the rule of {self.__name__} must return a tangent of the shape and dtype of its result "
                f"{out.aval}; got {t.aval}."
            )
        return t

    def _duals(self, level: Forward, args: tuple[Any, ...]) -> Any:
        pairs = [level.split(x) for x in tensors_in(args)]
        arguments, tangents = with_tensors(args, [x for x, _ in pairs]), [t for _, t in pairs]
        if all(t is None for t in tangents):
            result = self(*arguments)
            return with_tensors(result, [level.lifted(x) for x in tensors_in(result)])
        result, out_tangents = self.pushed(arguments, tangents)
        outs = zip(tensors_in(result), out_tangents, strict=True)
        return with_tensors(result, [level.dual(x, t) for x, t in outs])


class _Transposed(custom_vjp):
    """A ``custom_jvp`` function in reverse mode, which transposes its rule."""

    def __init__(self, function: custom_jvp) -> None:
        super().__init__(function.fn)
        self.function = function
        self.defvjp(lambda *args: (function.fn(*args), args), lambda saved, g: saved)

    def at_level(self, level: Level, args: tuple[Any, ...]) -> Any:
        return self.function.at_level(level, args)

    def pull(self, args: tuple[Any, ...], saved: Any, g: Any) -> list[Any]:
        inputs = tensors_in(saved)
        zeros = [zeros_like(x.without_tape()) for x in inputs if x.dtype.is_inexact]
        form: pytree.Structure | None = None

        def tangents(*directions: Tensor) -> list[Tensor]:
            nonlocal form
            rest = iter(directions)
            result, theirs = self.function.pushed(saved, [next(rest) if x.dtype.is_inexact else None for x in inputs])
            form = pytree.flatten(result)[1]
            outs = zip(tensors_in(result), theirs, strict=True)
            return [zeros_like(x.without_tape()) if t is None else t for x, t in outs]

        _, pullback = vjp(tangents, *zeros)
        seeds, structure = pytree.flatten(g)
        if structure != form:
            raise GradientError(
                f"[custom_jvp] the rule of {self.__name__} must return a result of the structure {structure!r}; got "
                f"{form!r}."
            )
        cotangents = iter(pullback([x for x in seeds if x is not None]))
        return [next(cotangents) if x.dtype.is_inexact else None for x in inputs]


class _Batch(Batch):
    """The call for all elements of a batch."""

    def __init__(self, function: custom_jvp, level: Batching, args: tuple[Any, ...]) -> None:
        super().__init__(level, args)
        self.function = function

    def run(self) -> Any:
        if not self.needs_derivative():
            return self.function.fn(*self.args)
        of_components = custom_jvp(functools.wraps(self.function.fn)(lambda *components: self._compute(*components)))
        of_components.defjvp(self._rule)
        return self.stacked(of_components(*self.components))

    def _compute(self, *components: Tensor) -> list[Tensor]:
        with self.level:
            self.result = self.function.fn(*self.wrapped(self.level, components))
            return [self.level.all_elements(x) for x in tensors_in(self.result)]

    def _rule(self, primals: tuple[Tensor, ...], tangents: tuple[Tensor, ...]) -> tuple[list[Tensor], list[Tensor]]:
        level = self.open_level()
        with level:
            args = self.wrapped(level, primals)
            directions = tensors_in(self.wrapped(level, tangents))
            self.result, theirs = self.function.pushed(args, directions)
            outs = [level.all_elements(x) for x in tensors_in(self.result)]
            ends = [zeros_like(x) if t is None else level.all_elements(t) for x, t in zip(outs, theirs, strict=True)]
            return outs, ends


def _tangent(leaf: Any, tangent: Tensor | None) -> Any:
    """Return a tangent of a leaf for the rule: zeros if there is none, None if the leaf is not a number."""
    if tangent is not None:
        return tangent
    if isinstance(leaf, ArrayMethods):
        return zeros_like(leaf.read().without_tape())
    return type(leaf)(0) if isinstance(leaf, int | float | complex) else None


def _by_argument(
    function: custom_jvp, jvps: Sequence[Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Return the result and its tangent by the rules of :meth:`custom_jvp.defjvps`."""
    result = function(*primals)
    if len(jvps) != len(primals):
        raise GradientError(
            f"[custom_jvp] defjvps of {function.__name__} must get a rule for each of {len(primals)} arguments; got "
            f"{len(jvps)}."
        )
    terms = [jvp(t, result, *primals) for jvp, t in zip(jvps, tangents, strict=True) if jvp is not None]
    if not terms:
        return result, with_tensors(result, [zeros_like(x) for x in tensors_in(result)])
    return result, functools.reduce(_sum_of_trees, terms)


def _sum_of_trees(first: Any, second: Any) -> Any:
    leaves, structure = pytree.flatten(first)
    return pytree.unflatten(structure, map(add, leaves, pytree.flatten(second)[0]))
