"""The base of all optimizers: parameter groups, state, ``step`` and ``zero_grad``, saving and loading.

An optimizer says which state it keeps for each Parameter and how one group is updated, in ops on tensors. In eager mode
all updates of a step run as one program; in a compiled function they become part of its program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from runnel import ops
from runnel.core import kinds, switches
from runnel.core.dtypes import float64
from runnel.core.errors import DTypeError, GradientError
from runnel.core.tracebacks import ending_at_user
from runnel.optim.group import ParamGroup
from runnel.optim.hooks import StepHooks, hooked
from runnel.optim.settings import checked
from runnel.optim.state import LeafVariable, State, checked_state, filled, state_of
from runnel.optim.step_program import StepPrograms
from runnel.tensor import tracing
from runnel.tensor.creation import asarray
from runnel.tensor.snapshot import snapshot
from runnel.tensor.state import clear_gradients
from runnel.tensor.stateful import Stateful, TickingDict
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import TracedVariables, Variable, assign_together

Parameters: TypeAlias = Any  # Parameters, or dicts with them
Active: TypeAlias = list[tuple[int, Variable, Tensor]]  # the index in its group, the Parameter, and its gradient


@kinds.declare
class Optimizer(StepHooks, Stateful):
    """The base class of optimizers. A subclass defines ``init_state`` and ``update``, or its own ``step``.

    Args:
        params: Parameters, pairs of ``named_parameters()``, or dicts with "params" and hyper-parameters for these. A
            tensor with ``requires_grad`` that was not computed is also accepted; a Variable represents it in
            ``param_groups``.
        defaults: the hyper-parameters of groups that do not set them.

    Attributes:
        param_groups: the groups; ``optimizer.param_groups[0]["lr"] = 0.1`` takes effect at the next step.
        state: the Variables kept for each Parameter, by name. A subclass with its own ``step`` keeps any values here;
            an entry that is missing is an empty dict.
    """

    # The hyper-parameters that must be 0 for sparse gradients, since they change rows whose gradient is 0. None: such
    # gradients are refused.
    sparse_without: tuple[str, ...] | None = None
    saves_steps = True  # whether the saved state has the number of steps, as PyTorch's has
    _is_custom = False  # whether update() is the user's: eagerly its ops run one by one, for they may read anything

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._is_custom = cls.__module__.partition(".")[0] != __name__.partition(".")[0]
        if "step" in cls.__dict__:
            cls.step = hooked(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: dict[Any, dict[str, Any]] = State()
        self.param_groups: tuple[ParamGroup, ...] = ()
        self._steps: list[Variable] = []  # for each group, how many steps each of its Parameters has made
        self._leaves: tuple[LeafVariable, ...] = ()
        self._programs = StepPrograms()
        self._structure: tuple[Any, ...] = ()
        groups: list[Any] = [params] if isinstance(params, Variable | Mapping) else list(self._iterated(params))
        if not groups:
            raise ValueError(
                f"[{type(self).__name__}] params must not be empty. model.parameters() can be iterated over only once: "
                "call it again, or keep list(model.parameters()). Layers in a plain list are not found: put them into "
                "nn.ModuleList."
            )
        for group in groups if isinstance(groups[0], Mapping) else [{"params": groups}]:
            self.add_param_group(group)

    # What a subclass defines ------------------------------------------------------------------------------------------

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        """Return the state of ``p`` by name before its first step.

        A number fills an array of the Parameter's shape and dtype; an array is used as it is. The names may depend on
        hyper-parameters. By default there is no state.
        """
        return {}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        """Assign new values to the Parameters of ``group`` that have a gradient.

        Args:
            group: the hyper-parameters by name.
            active: for each of these Parameters, its index in the group, the Parameter, and its gradient.
            steps: how many steps each Parameter of the group has made, with this one: a float64 vector.
        """
        raise NotImplementedError(
            f"[{type(self).__name__}] must define update(self, group, active, steps), which assigns new values to "
            "Parameters (p.assign(p - group['lr'] * g) for (i, p, g) in active), or its own step()."
        )

    def check(self, group: Mapping[str, Any], params: Iterable[Variable]) -> None:
        """Raise TypeError or ValueError for hyper-parameters that do not fit together, or do not fit ``params``.

        A subclass that overrides this also calls it, since it checks Parameters with sparse gradients.
        """
        changing = [key for key in self.sparse_without or () if group[key]]
        for p in params if changing or self.sparse_without is None else ():
            if getattr(p, "is_sparse", False):
                raise ValueError(
                    f"[{type(self).__name__}] cannot update {p.described}, whose gradients are sparse: "
                    f"{'its ' if changing else 'it'}{' and '.join(changing)} changes every row. Use SparseAdam, or SGD "
                    "or Adagrad without momentum and weight_decay."
                )

    # Groups and state -------------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Optimize more Parameters, with the hyper-parameters in ``param_group`` and else the defaults.

        After an error the optimizer is unchanged.
        """
        name = type(self).__name__
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise TypeError(f'[{name}] a group must be a dict with "params" and hyper-parameters; got {param_group!r}.')
        theirs = param_group["params"]
        params: list[Any] = []
        known = {id(p) for own in self.param_groups for p in own.params}
        known |= {id(leaf.source) for leaf in self._leaves}
        for entry in [theirs] if isinstance(theirs, Variable) else self._iterated(theirs):
            given = entry[1] if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str) else entry
            params.append(self._checked_parameter(given))
            if id(given) in known:
                raise ValueError(f"[{name}] {params[-1].described} is already in a group.")
            known.add(id(given))
        values = {**self.defaults, **{key: value for key, value in param_group.items() if key != "params"}}
        values = checked(name, values, self.defaults)
        self.check(values, params)
        place = params[0].device if params else None
        self._steps.append(Variable(np.zeros(len(params)), name=f"optimizer.step{len(self._steps)}", device=place))
        self._leaves += tuple(p for p in params if isinstance(p, LeafVariable))
        self.param_groups = (*self.param_groups, ParamGroup(self, params, values))
        self.make_state()

    def _iterated(self, params: Any) -> Iterable[Any]:
        if isinstance(params, Iterable) and not isinstance(params, Tensor) and not hasattr(params, "parameters"):
            return params
        raise TypeError(
            f"[{type(self).__name__}] params must be a list of Parameters or model.parameters(); got "
            f"{type(params).__name__}."
        )

    def _checked_parameter(self, p: Any) -> Variable:
        """Return the Variable that is optimized as ``p``; raise an error if there is none."""
        name = type(self).__name__
        if isinstance(p, Tensor):
            if self.has_own_step and self._is_custom:
                raise TypeError(f"[{name}] params must be Parameters, since it has its own step(); got a Tensor.")
            p = LeafVariable(name, p)
        if not isinstance(p, Variable):
            raise TypeError(f"[{name}] params must be Parameters; got {type(p).__name__}.")
        if not p.dtype.is_float and (p.requires_grad or p.dtype.is_inexact):  # others never have a gradient
            raise TypeError(f"[{name}] params must be floating-point; {p.described} holds {p.dtype.name}.")
        return p

    def make_state(self) -> None:
        """Make the state that the hyper-parameters ask for and that is missing. Other state is kept.

        A Parameter without any state starts again with its first step.
        """
        if type(self.state) is not State:
            self.state = State(self.state)
        for group, steps in zip(self.param_groups, self._steps, strict=True):
            begun = np.ones(len(group.params))
            for i, p in enumerate(group.params):
                if self.has_own_step:
                    self.state.setdefault(p, {})
                    continue
                initial, slots = self.init_state(p, group.plain), self.state.get(p)
                begun[i] = bool(slots) or not initial
                if type(slots) is not TickingDict:
                    slots = self.state[p] = TickingDict(slots or {})
                for name, value in initial.items():
                    if name not in slots:
                        slots[name] = Variable(filled(p, value), name=f"{p.name}.{name}", device=p.device)
            if not begun.all():
                steps.assign(steps.value * begun)
        groups = tuple((tuple(map(id, group.params)), group.shapes()) for group in self.param_groups)
        if self._structure != (groups, self._state_ids()):  # the same object while it is equal, which is fast to test
            self._structure = groups, self._state_ids()

    def _state_ids(self) -> tuple[int, ...]:
        """Return which Variables the state consists of. Whatever a custom ``step`` keeps is data."""
        return () if self.has_own_step else tuple([id(x) for slots in self.state.values() for x in slots.values()])

    def structure(self) -> Any:
        """Return what a step depends on besides gradients, after restoring state that was removed from outside."""
        if type(self.state) is not State or self._structure[1] != self._state_ids():
            self.make_state()
        return self._structure

    def shaping_parts(self) -> list[Any]:
        """Return the Parameters, their state, and how the hyper-parameters shape a step."""
        slots = [] if self.has_own_step else list(self.state.values())
        return [self._structure, list(self._steps), [variable for by_name in slots for variable in by_name.values()]]

    # Stepping ---------------------------------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all Parameters, or fill them with zeros."""
        for group in self.param_groups:
            clear_gradients(group.params, set_to_none)
        for leaf in self._leaves:
            leaf.clear(set_to_none)

    @ending_at_user
    @hooked
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all Parameters that have a gradient.

        Args:
            closure: a function that computes the loss and its gradients; it is called first.

        Returns:
            What ``closure`` returned.
        """
        result = None if closure is None else closure()
        for leaf in self._leaves:
            leaf.copy_in()
        if self._is_custom or tracing.ACTIVE.trace is not None or switches.eager.value or switches.check_nans.value:
            self.update_all()
        else:
            self._programs.run(self)
        for leaf in self._leaves:
            leaf.copy_out()
        return result

    @property
    def has_own_step(self) -> bool:
        """True if a subclass defines ``step``, and keeps any values in ``state``."""
        return type(self).step is not Optimizer.step

    def update_all(self) -> None:
        """Update all groups in ops. The program of a step is traced from this."""
        trace = tracing.ACTIVE.trace
        self.structure()
        for group, steps in zip(self.param_groups, self._steps, strict=True):
            active: Active = []
            for i, p in enumerate(group.params):
                if (g := p.grad) is None:
                    continue
                self._require_fitting(p, g, group)
                if trace is not None:
                    trace.facet(TracedVariables).consumed.add(p)
                g = ops.cast(g.without_tape(), p.dtype)
                active.append((i, p, -g if group.has("maximize") else g))
            if active:
                tracing.method(self, "update")(group, active, self._counted(group, active, steps))

    def _counted(self, group: ParamGroup, active: Active, steps: Variable) -> Tensor:
        """Count this step for each active Parameter of a group; return all counts."""
        now: Tensor = steps.read().without_tape()
        if self.saves_steps or group.has("dampening"):
            mask = np.zeros(steps.shape)
            mask[[i for i, _, _ in active]] = 1
            now = now + (1.0 if mask.all() else steps.lift(mask, float64))
            steps.assign(now)
        return now

    def _require_fitting(self, p: Variable, g: Tensor, group: ParamGroup) -> None:
        """Raise an error for a gradient of another shape, or state that was made for another dtype."""
        if g.shape != p.shape:
            raise GradientError(f"[step] the gradient of {p.described} must have shape {p.shape}; got {g.shape}.")
        others = {name: s.dtype for name, s in self.state[p].items() if isinstance(s, Variable) and s.dtype != p.dtype}
        initial = self.init_state(p, group.plain) if others else {}
        for name, dtype in others.items():
            if isinstance(initial.get(name), float):  # an array has its own dtype
                raise DTypeError(
                    f"[{type(self).__name__}] {p.described} is {p.dtype.name}, but was {dtype.name} when the optimizer "
                    "was made: make the optimizer after model.double(), .half() or .to(dtype)."
                )

    # Saving, loading, copies ------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return ``{"state": {index of Parameter: {name: tensor}}, "param_groups": [hyper-parameters and indices]}``.

        All tensors are read at one point in time.
        """
        return snapshot(lambda: state_of(self))

    @ending_at_user
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a state that ``state_dict`` returned for Parameters of the same shapes, here or in PyTorch.

        Raises:
            StateError, ShapeError, DTypeError: the state does not fit. Nothing has changed then.
        """
        settings, slots = checked_state(self, state_dict)
        values: list[tuple[Variable, Any]] = []
        for group, steps, hyperparameters in zip(self.param_groups, self._steps, settings, strict=True):
            group.plain.update(hyperparameters)
            values.append((steps, asarray([slots[p][0] for p in group.params], float64, device=steps.device)))
        for p, (_, loaded) in slots.items():
            if self.has_own_step:
                self.state[p] = loaded
                continue
            state = {name: x for name, x in self.state[p].items() if name in loaded}
            for name, value in loaded.items():
                if name not in state:
                    state[name] = Variable(value.numpy(), name=f"{p.name}.{name}", device=p.device)
                values.append((state[name], value))
            self.state[p] = TickingDict(state)
        self.make_state()
        assign_together(values)

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in self.__dict__.items() if name not in ("_programs", "_structure")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state. A copy shares Parameters and their state, but has separate groups."""
        self.__dict__.update(state)
        self.state = State({p: dict(slots) for p, slots in self.state.items()})
        self._programs, self._structure, self._steps = StepPrograms(), (), list(self._steps)
        groups = [dict(group) for group in self.param_groups]
        self.param_groups = tuple(ParamGroup(self, group.pop("params"), group) for group in groups)
        self.make_state()

    def __repr__(self) -> str:
        lines = [
            f"  group {i}: {len(group.params)} Parameters, " + ", ".join(f"{k}={v}" for k, v in group.plain.items())
            for i, group in enumerate(self.param_groups)
        ]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])
