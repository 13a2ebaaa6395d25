"""Classes of the user's that extend Runnel's: what their methods read and change is known when ours call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn
from runnel import distributions as dist, nn
from runnel.autograd import Function
from runnel.core.errors import CaptureWarning
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

pytestmark = pytest.mark.suite

CASES = Cases()
case = CASES.case


class World:
    def __init__(self) -> None:
        self.scale, self.slope, self.log = 2.0, 3.0, []

    def set(self, **values: float) -> Callable[[], None]:
        return lambda: self.__dict__.update(values)

    def story(self, function: Callable[[Any], Any]) -> Any:
        """Calls between which what the methods read changes."""
        x = tensor(0.5, 1.0, 2.0).requires_grad_()

        def differentiated(x: Any) -> Any:
            y = function(x)
            return y.detach(), rn.autograd.grad(y.sum(), [x], allow_unused=True) if y.requires_grad else None

        again = [call(x), call(x)]
        return (
            differentiated,
            [*again, self.set(scale=4.0), *again, self.set(slope=7.0), *again],
            lambda: list(self.log),
        )

    def function(self, is_logged: bool = False) -> type[Function]:
        world = self

        class Scaled(Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.slope = world.slope
                return x * world.scale

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                if is_logged:
                    world.log.append("backward")
                return g * ctx.slope * world.scale

        return Scaled

    def distribution(self, at: Any) -> Any:
        world = self

        class Scaled(dist.Distribution):
            arg_constraints: dict[str, Any] = {}  # noqa: RUF012

            def __init__(self, at: Any) -> None:
                super().__init__(tuple(at.shape), validate_args=False)
                self.at = at

            def rsample(self, sample_shape: Any = ()) -> Any:
                world.log.append("drawn")
                return self.at * world.scale

            def log_prob(self, value: Any) -> Any:
                return value * world.scale * self.at

            @property
            def mean(self) -> Any:
                return self.at * world.scale

            @property
            def variance(self) -> Any:
                return (self.at * world.scale) ** 2

        return Scaled(at)

    def transform(self) -> Any:
        world = self

        class Scaling(dist.Transform):
            bijective = True
            domain = codomain = dist.constraints.real
            sign = 1

            def _call(self, x: Any) -> Any:
                return x * world.scale

            def _inverse(self, y: Any) -> Any:
                return y / world.scale

            def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
                return x * 0 + world.slope

        return Scaling()


@case()
def a_function_with_its_own_derivative() -> Any:
    w = World()
    scaled = w.function()
    return w.story(lambda x: scaled.apply(x))


@case()
def its_apply_alone() -> Any:
    w = World()
    apply = w.function().apply
    return w.story(lambda x: apply(apply(x)))


@case()
def a_derivative_that_logs() -> Any:
    w = World()
    scaled = w.function(is_logged=True)
    return w.story(lambda x: scaled.apply(x))


@case()
def inherited_methods_of_a_distribution() -> Any:
    w = World()
    return w.story(lambda x: w.distribution(x).sample() + w.distribution(x).stddev)


@case()
def a_distribution_in_one_of_ours() -> Any:
    w = World()
    return w.story(
        lambda x: dist.Independent(w.distribution(x), 1).log_prob(x) + dist.Independent(w.distribution(x), 1).mean
    )


@case()
def a_distribution_from_outside() -> Any:
    w = World()
    one = dist.Independent(w.distribution(tensor(1.0, 2.0, 3.0)), 1)
    return w.story(lambda x: one.log_prob(x) + one.rsample())


@case()
def a_mixture() -> Any:
    w = World()
    return w.story(
        lambda x: dist.MixtureSameFamily(dist.Categorical(logits=x), w.distribution(x)).log_prob(rn.ones(()))
    )


@case()
def a_transform() -> Any:
    w = World()
    scaling = w.transform()
    return w.story(lambda x: scaling(x) + scaling.inv(x) + dist.ComposeTransform([scaling, scaling])(x))


@case()
def a_transform_in_a_distribution() -> Any:
    w = World()
    scaling = w.transform()
    outside = dist.TransformedDistribution(dist.Normal(0.0, 1.0), [scaling])
    return w.story(
        lambda x: dist.TransformedDistribution(dist.Normal(x, 1.0), [scaling]).log_prob(x) + outside.log_prob(x)
    )


def hooked(w: World, hook: Callable[..., Any], kind: str = "register_full_backward_hook") -> Any:
    layer = nn.Linear(3, 3)
    getattr(layer, kind)(hook)
    return w.story(lambda x: layer(x[None]))


@case()
def a_backward_hook_of_a_module_that_logs() -> Any:
    w = World()
    return hooked(w, lambda module, at_arguments, at_results: w.log.append("backward"))


@case()
def a_backward_hook_of_a_module_that_reads() -> Any:
    w = World()
    return hooked(w, lambda module, at_arguments, at_results: (at_arguments[0] * w.slope,))


@case()
def a_hook_before_backward() -> Any:
    w = World()
    return hooked(w, lambda module, at_results: (at_results[0] * w.slope,), "register_full_backward_pre_hook")


@pytest.mark.parametrize("one", CASES)
def test_case(one: Case) -> None:
    one.run()


@pytest.mark.parametrize("is_hook", [True, False], ids=["hook", "function"])
def test_what_a_derivative_changes_outside(is_hook: bool) -> None:
    """It does so at each backward, for the function runs eagerly then."""
    w, x, layer = World(), tensor(0.5, 1.0, 2.0).requires_grad_(), nn.Linear(3, 3)
    scaled = w.function(is_logged=True)
    layer.register_full_backward_hook(lambda module, at_arguments, at_results: w.log.append("backward"))
    function = rn.compile((lambda x: layer(x[None])) if is_hook else (lambda x: scaled.apply(x)))
    with pytest.warns(CaptureWarning, match="a derivative changes something outside"):
        out = function(x)
    for number in range(1, 4):
        out.sum().backward()
        assert w.log == ["backward"] * number
        out = function(x)


@pytest.mark.parametrize("is_hook", [True, False], ids=["hook", "function"])
def test_a_derivative_that_looks_at_values(is_hook: bool) -> None:
    """Eager mode has them, so the function runs eagerly."""
    seen: list[float] = []
    x, layer = tensor(0.5, 1.0, 2.0).requires_grad_(), nn.Linear(3, 3)

    class Clipped(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(g.sum().item())
            return g * 2 if g.sum() > 0 else g

    layer.register_full_backward_hook(lambda module, at_arguments, at_results: seen.append(at_results[0].sum().item()))
    function = rn.compile((lambda x: layer(x[None])) if is_hook else (lambda x: Clipped.apply(x)))
    with pytest.warns(CaptureWarning, match="the value of a traced tensor"):
        out = function(x)
    for number in range(1, 4):
        out.sum().backward()
        assert seen == [3.0] * number
        out = function(x)
    with rn.no_grad():
        function(x)
