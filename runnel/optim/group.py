"""Parameter groups: Parameters with the hyper-parameters they share."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from runnel.core import tracebacks
from runnel.core.errors import SideEffectError
from runnel.optim.settings import SHAPING, checked
from runnel.tensor import tracing
from runnel.tensor.floats import RunTimeNumbers
from runnel.tensor.variable import Variable


class ParamGroup(RunTimeNumbers, MutableMapping[str, Any]):
    """The dict of one group: "params" and hyper-parameters, which you may change between steps. Copies are plain dicts.

    In a trace, numbers are inputs of the program, read at each run; so a learning-rate schedule does not retrace.

    Attributes:
        params: the Parameters.
        plain: the hyper-parameters. Programs keep alive nothing else of the group.
    """

    __slots__ = ("_optimizer", "params", "plain")
    shaping = SHAPING

    def __init__(self, optimizer: Any, params: Sequence[Variable], values: Mapping[str, Any]) -> None:
        self.params = tuple(params)
        self.plain = dict(values)
        self._optimizer = weakref.ref(optimizer)

    @property
    def optimizer(self) -> Any:
        """The optimizer of the group; None after it is gone, since the group does not keep it alive."""
        return self._optimizer()

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __getitem__(self, key: str) -> Any:
        return self.params if key == "params" else self.read(key)

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        raise ValueError(f"[param_groups] '{key}' cannot be removed; set it to another value.")

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several hyper-parameters at once. All are checked first: after an error, none has changed."""
        values = dict(*args, **kwargs)
        if "params" in values:
            raise ValueError("[param_groups] the Parameters of a group cannot change; call add_param_group().")
        trace = tracing.ACTIVE.trace
        if trace is not None:
            names = ", ".join(map(repr, values))
            if trace.refuse is not None:
                trace.refuse(f"{names} of a group is set", "set it between calls, or step a schedule")
            raise SideEffectError(
                f"[param_groups] {names} was set in a loop at {tracebacks.user_line()}; set it outside."
            )
        before, optimizer = dict(self.plain), self.optimizer
        if optimizer is not None:
            values = checked(type(optimizer).__name__, values, optimizer.defaults)
            optimizer.check({**before, **values}, self.params)
        self.plain.update(values)
        if optimizer is not None and any(self._is_shaping(key, before) for key in values):
            optimizer.make_state()

    def _is_shaping(self, key: str, before: Mapping[str, Any]) -> bool:
        """Return whether a changed value shapes programs in another way. A learning rate rarely does."""
        return key not in before or self.shape_of(key, before[key]) != self.shape_of(key, self.plain[key])

    def __iter__(self) -> Iterator[str]:
        return iter(("params", *self.plain))

    def __len__(self) -> int:
        return 1 + len(self.plain)

    def __repr__(self) -> str:
        return f"ParamGroup({dict(self)!r})"

    def has(self, key: str) -> bool:
        """Return whether a hyper-parameter is set and not 0 or False. This is part of the program's structure."""
        return bool(self.plain.get(key))
