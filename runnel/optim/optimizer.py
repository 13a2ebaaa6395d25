"""What all optimizers share: groups, state, ``zero_grad``, ``step``, saving and loading.

An optimizer's own file says which state it keeps for each Parameter and how one group is updated, in ops on tensors.
Run eagerly, all updates of a step are one program (``fused.py``); in a compiled function they are part of its program.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from typing import Any, Self

import numpy as np

from runnel import ops
from runnel.compile.owned import is_own
from runnel.core import kinds, switches
from runnel.core.dtypes import float64
from runnel.core.errors import DTypeError, GradientError
from runnel.core.tracebacks import ending_at_user
from runnel.optim import hyperparameters, leaves
from runnel.optim.fused import StepPrograms
from runnel.optim.group import ParamGroup, filled
from runnel.optim.state import checked_state, state_of
from runnel.tensor import tracing
from runnel.tensor.snapshot import snapshot
from runnel.tensor.state import clear_gradients
from runnel.tensor.stateful import Stateful, TickingDict
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import TracedVariables, Variable, assign_together


@kinds.declare
class Optimizer(Stateful):
    """The base class. ``params`` are Parameters, or dicts with "params" and hyper-parameters of their own. They may be
    tensors that require a gradient and were not computed: a Variable stands for each in ``param_groups`` and ``state``.

    Attributes:
        param_groups: the groups; ``optimizer.param_groups[0]["lr"] = 0.1`` takes effect at the next step.
        state: for each Parameter its Variables by name; in a subclass with a ``step`` of its own, what that keeps.
    """

    accepts_sparse = False  # whether rows with the gradient 0 stay as they are
    saves_steps = True  # whether the state that is saved has the number of steps, as PyTorch's has

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: dict[Variable, dict[str, Any]] = TickingDict()
        self._steps: list[Variable] = []  # for each group, how many steps each of its Parameters has made
        self._programs = StepPrograms()
        self._leaves: tuple[leaves.LeafVariable, ...] = ()  # what stands for tensors
        self.param_groups: tuple[ParamGroup, ...] = ()
        self._structure: Hashable = ()
        for group in self._groups_of(params):
            self.add_param_group(group)

    def _groups_of(self, params: Any) -> list[Any]:
        name = type(self).__name__
        groups: list[Any] = [params] if isinstance(params, Variable | Mapping) else list(self._iterated(params))
        if not groups:
            raise ValueError(
                f"[{name}] got no Parameters to optimize. model.parameters() can be gone through once: call it again, "
                "or keep list(model.parameters()). Layers in a plain list are not seen: put them into nn.ModuleList."
            )
        return groups if isinstance(groups[0], Mapping) else [{"params": groups}]

    def _iterated(self, params: Any) -> Iterable[Any]:
        if isinstance(params, Iterable) and not isinstance(params, Tensor) and not hasattr(params, "parameters"):
            return params
        raise TypeError(
            f"[{type(self).__name__}] optimizes Parameters; received {type(params).__name__}. Pass a list of them, or "
            "model.parameters()."
        )

    # What a subclass defines ------------------------------------------------------------------------------------------

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        """The state kept for ``p`` by name, as it is before the first step: an array, or a number that fills an array
        of the Parameter's shape and dtype. By default there is none. It may depend on hyper-parameters."""
        return {}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        """Assign new values to the Parameters that have a gradient: (place in the group, Parameter, gradient)."""
        name = type(self).__name__
        raise NotImplementedError(
            f"[{name}] defines neither update() nor step(): write update(self, group, active, steps), which assigns "
            "new values to Parameters (p.assign(p - group['lr'] * g) for (i, p, g) in active), or a step() of its own."
        )

    def changes_all_rows(self, group: Mapping[str, Any]) -> str:
        """The hyper-parameter because of which rows with the gradient 0 change too; empty if there is none."""
        return ""

    def check_parameter(self, p: Variable) -> None:
        """Raise ValueError for a Parameter that cannot be optimized so."""

    def check(self, group: Mapping[str, Any]) -> None:
        """Raise ValueError for hyper-parameters that make no sense together. Each alone has been looked at."""

    # Groups and state -------------------------------------------------------------------------------------------------

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Optimize further Parameters, with hyper-parameters of their own where ``group`` has them. On an error the
        optimizer is as it was."""
        if not isinstance(group, Mapping) or "params" not in group:
            raise TypeError(
                f'[{type(self).__name__}] a group is a dict with "params" and hyper-parameters; received {group!r}.'
            )
        theirs = group["params"]
        params = [_unnamed(p) for p in ([theirs] if isinstance(theirs, Variable) else self._iterated(theirs))]
        params = self._standing_for(params)
        known: set[Any] = set(self.state)
        for p in params:
            self._check_parameter(p, known)
            known.add(p)
        values = {name: value for name, value in group.items() if name != "params"}
        new = ParamGroup(params, self.checked_group({**self.defaults, **values}, params), self)
        place = params[0].device if params else None
        steps = Variable(np.zeros(len(params)), name=f"optimizer.step{len(self._steps)}", device=place)
        self.state.update({p: self._slots({}) for p in params})
        self._steps.append(steps)
        self.param_groups = (*self.param_groups, new)
        self._leaves += tuple(p for p in params if isinstance(p, leaves.LeafVariable))
        self.group_changed(new)

    def _standing_for(self, params: list[Any]) -> list[Any]:
        """``params`` with Variables in the places of tensors."""
        name = type(self).__name__
        tensors = [p for p in params if isinstance(p, Tensor)]
        if tensors and self.has_own_step and not is_own(type(self)):
            raise TypeError(f"[{name}] has a step of its own, which updates Parameters; received a Tensor.")
        known = {id(v.leaf) for v in self._leaves}
        for p in tensors:
            if id(p) in known:
                raise ValueError(f"[{name}] a tensor of shape {p.shape} is in a group already.")
            known.add(id(p))
        return [leaves.standing_for(name, p) for p in params]

    def _check_parameter(self, p: Any, known: set[Any]) -> None:
        name = type(self).__name__
        if not isinstance(p, Variable):
            raise TypeError(f"[{name}] optimizes Parameters; received {type(p).__name__}.")
        if not p.dtype.is_float:
            raise TypeError(f"[{name}] optimizes floating Parameters; {p.described} holds {p.dtype.name}.")
        if p in known:
            raise ValueError(f"[{name}] {p.described} is in a group already.")
        self.check_parameter(p)

    def checked_group(self, values: Mapping[str, Any], params: Iterable[Variable]) -> dict[str, Any]:
        """The hyper-parameters of a group of ``params`` as they are kept; TypeError or ValueError if they are wrong."""
        name = type(self).__name__
        hyperparameters.require_no_slips(name, values, self.defaults)
        plain = hyperparameters.checked(name, values)
        self.check(plain)
        reason = self.changes_all_rows(plain)
        for p in params:
            if getattr(p, "is_sparse", False) and (reason or not self.accepts_sparse):
                means = f"its {reason} changes" if reason else "it changes"
                raise ValueError(
                    f"[{name}] does not take {p.described}, whose gradients are sparse: {means} every row. "
                    "Use SparseAdam, or SGD or Adagrad without momentum and weight_decay."
                )
        return plain

    def group_changed(self, group: ParamGroup) -> None:
        """Make the state that the hyper-parameters ask for: a compiled step finds it made. What they ask for no longer
        stays, as in PyTorch, for they may again."""
        for p in () if self.has_own_step else group.params:
            if p not in self.state:
                self.state[p] = self._slots({})
            state = self.state[p]
            for name, initial in self.init_state(p, group.plain).items():
                if name not in state:
                    state[name] = Variable(filled(p, initial), name=f"{p.name}.{name}", device=p.device)
        now = self._structure_now()
        if now != self._structure:  # the same object as long as it is equal, which is quick to see
            self._structure = now

    def _structure_now(self) -> Hashable:
        self._known_ids = self._state_ids()
        return tuple(group.structure() for group in self.param_groups), self._known_ids

    def _state_ids(self) -> tuple[int, ...]:
        """Which Variables the state is made of: somebody may have emptied or replaced it."""
        return () if self.has_own_step else tuple([id(x) for slots in self.state.values() for x in slots.values()])

    def _slots(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The state of one Parameter."""
        return dict(values) if self.has_own_step else TickingDict(values)

    def _completed(self) -> None:
        """Make state anew that somebody has removed. A Parameter without any begins with its first step again."""
        if self._state_ids() == self._known_ids:
            return
        for group, steps in zip(self.param_groups, self._steps, strict=True):
            begun = [bool(self.state.get(p)) or not self.init_state(p, group.plain) for p in group.params]
            self.group_changed(group)
            if not all(begun):
                steps.assign(steps.value * np.array(begun, np.float64))

    def program_structure(self) -> list[Any]:
        """What shapes a step: which Parameters, their state, and of hyper-parameters what :class:`ParamGroup` says."""
        slots = [] if self.has_own_step else list(self.state.values())  # what a step of its own keeps is data
        return [self._structure, list(self._steps), [variable for by_name in slots for variable in by_name.values()]]

    # Stepping ---------------------------------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all Parameters (or fill them with zeros)."""
        for group in self.param_groups:
            clear_gradients(group.params, set_to_none)
        leaves.clear(self._leaves, set_to_none)

    @ending_at_user
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all Parameters that have a gradient; returns what ``closure``, called first, returned."""
        result = None if closure is None else closure()
        if self._leaves:
            leaves.take(self._leaves)
        if tracing.ACTIVE.trace is not None or switches.eager.value or switches.check_nans.value:
            self.update_all()
        else:
            self._run_update()
        if self._leaves:
            leaves.give(self._leaves)
        return result

    def _run_update(self) -> None:
        """The update as one program."""
        self._completed()
        if is_own(type(self)):
            self._programs.run(self._structure, self._parameters, self.update_all, type(self).__name__)
        else:  # what its update reads is the user's
            self._programs.run_observed(_step, self)

    @property
    def has_own_step(self) -> bool:
        """Whether a subclass has a ``step`` of its own, and keeps in ``state`` what it likes."""
        return type(self).step is not Optimizer.step

    def _parameters(self) -> list[Variable]:
        return [p for group in self.param_groups for p in group.params]

    def update_all(self) -> None:
        """The update in ops: what the program of a step is traced from."""
        trace = tracing.ACTIVE.trace
        self._completed()
        for group, steps in zip(self.param_groups, self._steps, strict=True):
            active: list[tuple[int, Variable, Tensor]] = []
            for i, p in enumerate(group.params):
                g = p.grad
                if g is None:
                    continue
                if g.shape != p.shape:
                    raise GradientError(f"[step] the gradient of {p.described} has shape {g.shape}, it has {p.shape}.")
                self._require_state_of(p, group)
                if trace is not None:
                    trace.facet(TracedVariables).consumed.add(p)
                g = ops.cast(g.detach(), p.dtype)
                active.append((i, p, -g if group.plain.get("maximize") else g))
            if active:
                tracing.method(self, "update")(group, active, steps)

    def _require_state_of(self, p: Variable, group: ParamGroup) -> None:
        """DTypeError for a Parameter that has got another dtype than its state, which was made with the optimizer."""
        others = {name: s.dtype for name, s in self.state[p].items() if isinstance(s, Variable) and s.dtype != p.dtype}
        initial = self.init_state(p, group.plain) if others else {}
        for name, dtype in others.items():
            if isinstance(initial.get(name), float):  # and no array, whose dtype is its own
                raise DTypeError(
                    f"[{type(self).__name__}] {p.described} is {p.dtype.name}, and was {dtype.name} when the optimizer "
                    "was made: make the optimizer after model.double(), .half() or .to(dtype)."
                )

    # Saving and loading -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """{"state": {number of Parameter: {name: tensor}}, "param_groups": [hyper-parameters and numbers]}, the tensors
        as of one point in time."""
        return snapshot(lambda: state_of(self))

    @ending_at_user
    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave, for Parameters of the same shapes.

        Raises StateError, ShapeError or DTypeError where it does not fit: unknown or missing keys, other groups,
        hyper-parameters that the constructor would refuse, other shapes. Then nothing has changed.
        """
        loaded = checked_state(self, saved)
        values = [(steps, theirs.steps) for steps, theirs in zip(self._steps, loaded, strict=True)]
        for group, theirs in zip(self.param_groups, loaded, strict=True):
            group.update(theirs.values)  # which decides what state there is
            for p, slots in zip(group.params, theirs.slots, strict=True):
                if self.has_own_step:
                    self.state[p] = slots
                    continue
                state = self.state[p]
                for name in [name for name in state if name not in slots]:
                    del state[name]
                for name, value in slots.items():
                    if name not in state:
                        state[name] = Variable(value.numpy(), name=f"{p.name}.{name}", device=p.device)
                    values.append((state[name], value))
        self._structure = self._structure_now()
        assign_together(values)

    # Copies -----------------------------------------------------------------------------------------------------------

    def __copy__(self) -> Self:
        """Another optimizer of the same Parameters with the same state, and groups of its own."""
        twin = type(self).__new__(type(self))
        own = {"state": {p: self._slots(slots) for p, slots in self.state.items()}, "_steps": list(self._steps)}
        groups = tuple(copy(group) for group in self.param_groups)
        twin.__setstate__({**self.__getstate__(), **own, "param_groups": groups})
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("_programs", "_structure", "_known_ids")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.state = TickingDict({p: self._slots(slots) for p, slots in self.state.items()})
        for group in self.param_groups:
            group.join(self)
        self._programs = StepPrograms()
        self._structure = self._structure_now()

    def __repr__(self) -> str:
        lines = [
            f"  group {i}: {len(group.params)} Parameters, " + ", ".join(f"{k}={v}" for k, v in group.plain.items())
            for i, group in enumerate(self.param_groups)
        ]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


def _step(optimizer: Optimizer) -> None:
    Optimizer.step(optimizer)  # not the one that called this


def _unnamed(entry: Any) -> Any:
    """A Parameter, also of a pair of ``named_parameters()``."""
    return entry[1] if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str) else entry


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
    return g + p.value * group["weight_decay"]


def shrunk(group: ParamGroup, p: Variable) -> Tensor:
    """The Parameter after decoupled weight decay: times 1 - lr·weight_decay."""
    if not group.has("weight_decay"):
        return p.value
    return p.value * group.number(lambda h: 1 - h["lr"] * h["weight_decay"], "1 - lr * weight_decay")


def penalized(group: ParamGroup, p: Variable, g: Tensor) -> tuple[Tensor, Tensor]:
    """Parameter and gradient after weight decay, which is decoupled or not."""
    if group.has("decoupled_weight_decay"):
        return shrunk(group, p), g
    return p.value, decayed(group, p, g)


def one_of(values: Tensor, i: int, p: Variable) -> Tensor:
    """Of numbers for each Parameter of a group that of ``p``, in its dtype."""
    return ops.cast(values, p.dtype)[i]
