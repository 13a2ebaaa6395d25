"""What all optimizers share: groups, state, ``zero_grad``, ``step``, saving and loading.

An optimizer's own file says which state it keeps for each Parameter and how one group is updated, in ops on tensors.
Run eagerly, all updates of a step are one program (``fused.py``); in a compiled function they are part of its program.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from runnel import ops
from runnel.core import switches
from runnel.core.dtypes import float64
from runnel.core.errors import GradientError, RunnelError
from runnel.optim.fused import StepPrograms
from runnel.optim.group import ParamGroup
from runnel.tensor import tracing
from runnel.tensor.creation import asarray
from runnel.tensor.state import clear_gradient, fitting
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import CLOCK, Variable


class Optimizer:
    """The base class. ``params`` are Parameters, or dicts with "params" and hyper-parameters of their own.

    Attributes:
        param_groups: the groups; ``optimizer.param_groups[0]["lr"] = 0.1`` takes effect at the next step.
        state: for each Parameter its Variables by name.
    """

    accepts_sparse = False  # whether rows with the gradient 0 stay as they are

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: dict[Variable, dict[str, Variable]] = {}
        self._steps: list[Variable] = []  # for each group, how many steps each of its Parameters has made
        self._programs = StepPrograms()
        self.param_groups: tuple[ParamGroup, ...] = ()
        self._structure: Hashable = ()
        given: list[Any] = [params] if isinstance(params, Variable) else list(params)
        if not given:
            raise ValueError(f"[{type(self).__name__}] got no Parameters to optimize.")
        for group in given if isinstance(given[0], Mapping) else [{"params": given}]:
            self.add_param_group(group)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        CLOCK.now += 1

    # What a subclass defines ------------------------------------------------------------------------------------------

    def slots(self, group: Mapping[str, Any]) -> Mapping[str, float]:
        """The names of the state kept for each Parameter, with its initial value."""
        raise NotImplementedError

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        """Assign new values to the Parameters that have a gradient: (place in the group, Parameter, gradient)."""
        raise NotImplementedError

    def changes_all_rows(self, group: Mapping[str, Any]) -> str:
        """The hyper-parameter because of which rows with the gradient 0 change too; empty if there is none."""
        return ""

    def check(self, group: Mapping[str, Any]) -> None:
        """Raise ValueError for hyper-parameters that make no sense."""
        for name in ("lr", "eps", "weight_decay", "momentum"):
            if group.get(name, 0) < 0:
                raise ValueError(f"[{type(self).__name__}] {name} must not be negative; received {group[name]}.")
        for beta in group.get("betas", ()):
            if not 0 <= beta < 1:
                raise ValueError(f"[{type(self).__name__}] betas lie in [0, 1); received {group['betas']}.")

    # Groups and state -------------------------------------------------------------------------------------------------

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Optimize further Parameters, with hyper-parameters of their own where ``group`` has them."""
        values = {**self.defaults, **group}
        unknown = sorted(values.keys() - self.defaults.keys() - {"params"})
        if unknown:
            raise ValueError(
                f"[{type(self).__name__}] knows no {', '.join(unknown)}; it has {', '.join(self.defaults)}."
            )
        params = values["params"]
        values["params"] = params = [params] if isinstance(params, Variable) else list(params)
        for p in params:
            if not isinstance(p, Variable):
                raise TypeError(f"[{type(self).__name__}] optimizes Parameters; received {type(p).__name__}.")
            if p in self.state:
                raise ValueError(f"[{type(self).__name__}] Parameter '{p.name}' is in a group already.")
            self.state[p] = {}
        self.check(values)
        made = ParamGroup(values, self._group_changed)
        self._steps.append(Variable(np.zeros(len(params)), name=f"optimizer.step{len(self._steps)}"))
        self.param_groups = (*self.param_groups, made)
        self._group_changed(made)

    def _group_changed(self, group: ParamGroup) -> None:
        """State must exist before a compiled step needs it: made as soon as the hyper-parameters ask for it."""
        reason = self.changes_all_rows(group.plain)
        for p in group.params:
            if getattr(p, "is_sparse", False) and (reason or not self.accepts_sparse):
                means = f"its {reason} changes" if reason else "it changes"
                raise ValueError(
                    f"[{type(self).__name__}] does not take '{p.name}', whose gradients are sparse: {means} every row. "
                    "Use SparseAdam, or SGD or Adagrad without momentum and weight_decay."
                )
            kept = self.state[p]
            for name, initial in self.slots(group.plain).items():
                if name not in kept:
                    kept[name] = Variable(np.full(p.shape, initial, p.dtype.numpy), name=f"{p.name}.{name}")
        self._structure = tuple(group.structure() for group in self.param_groups)

    # Stepping ---------------------------------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all Parameters (or fill them with zeros)."""
        for group in self.param_groups:
            for p in group.params:
                clear_gradient(p, set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all Parameters that have a gradient; returns what ``closure``, called first, returned."""
        result = None if closure is None else closure()
        if tracing.ACTIVE.trace is not None or switches.eager.value or switches.check_nans.value:
            self.update_all()
            return result
        gradients = {p: g for group in self.param_groups for p in group.params if (g := p.grad) is not None}
        if gradients:
            key = (self._structure, tuple((id(p), g.aval) for p, g in gradients.items()))
            self._programs.get(key, self.update_all, gradients, type(self).__name__).run(gradients)
        return result

    def update_all(self) -> None:
        """The update in ops: what the program of a step is traced from."""
        trace = tracing.ACTIVE.trace
        for group, steps in zip(self.param_groups, self._steps, strict=True):
            active: list[tuple[int, Variable, Tensor]] = []
            for i, p in enumerate(group.params):
                g = p.grad
                if g is None:
                    continue
                if g.shape != p.shape:
                    raise GradientError(f"[step] the gradient of '{p.name}' has shape {g.shape}, it has {p.shape}.")
                if trace is not None:
                    trace.consumed.add(p)
                g = ops.cast(g.detach(), p.dtype)
                active.append((i, p, -g if group.plain.get("maximize") else g))
            if active:
                self.update(group, active, steps)

    # Saving and loading -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """{"state": {number of Parameter: {name: tensor}}, "param_groups": [hyper-parameters and numbers]}."""
        state: dict[int, dict[str, Tensor]] = {}
        groups: list[dict[str, Any]] = []
        for group, steps in zip(self.param_groups, self._steps, strict=True):
            first = len(state)
            for i, p in enumerate(group.params):
                state[first + i] = {"step": steps.value[i], **{name: v.value for name, v in self.state[p].items()}}
            numbers = list(range(first, len(state)))
            groups.append({**{k: v for k, v in group.plain.items() if k != "params"}, "params": numbers})
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave, for Parameters of the same shapes. On an error nothing changes."""
        sizes = [len(group.params) for group in self.param_groups]
        received = [len(group["params"]) for group in saved["param_groups"]]
        if sizes != received:
            raise RunnelError(f"[load_state_dict] the groups have {sizes} Parameters; received {received}.")
        updates: list[tuple[Variable, Tensor]] = []
        for group, steps, theirs in zip(self.param_groups, self._steps, saved["param_groups"], strict=True):
            wanted = {name: value for name, value in theirs.items() if name != "params"}
            slots = self.slots({**group.plain, **wanted})
            counts: list[float] = []
            for p, number in zip(group.params, theirs["params"], strict=True):
                values = saved["state"].get(number, {})
                counts.append(float(values.get("step", 0)))
                for name, initial in slots.items():
                    variable = self.state[p].setdefault(
                        name, Variable(np.full(p.shape, initial, p.dtype.numpy), name=f"{p.name}.{name}")
                    )
                    value = values.get(name, np.full(p.shape, initial, p.dtype.numpy))
                    updates.append((variable, fitting(type(self).__name__, f"{p.name}.{name}", variable, value)))
            updates.append((steps, asarray(counts, float64)))
        for variable, value in updates:
            variable.assign(value)
        for group, theirs in zip(self.param_groups, saved["param_groups"], strict=True):
            for name, value in theirs.items():
                if name != "params":
                    group[name] = value

    def __repr__(self) -> str:
        lines = [
            f"  group {i}: {len(group.params)} Parameters, "
            + ", ".join(f"{k}={v}" for k, v in group.plain.items() if k != "params")
            for i, group in enumerate(self.param_groups)
        ]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


def counted(steps: Variable, active: Iterable[tuple[int, Variable, Tensor]]) -> Tensor:
    """The step counts with one more for each active Parameter; float64, one for each Parameter of the group."""
    mask = np.zeros(steps.shape)
    mask[[i for i, _, _ in active]] = 1
    after: Tensor = steps.read().detach() + (1.0 if mask.all() else steps.lift(mask, float64))
    steps.assign(after)
    return after


def decayed(group: ParamGroup, p: Variable, g: Tensor) -> Tensor:
    """The gradient of the loss with the penalty weight_decay/2 · |p|²."""
    if not group.has("weight_decay"):
        return g
    return g + p.value * group.number(lambda h: h["weight_decay"], "weight_decay")
