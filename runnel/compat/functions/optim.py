"""PyTorch's optimizers: Runnel's optimizers that also accept the flags of PyTorch's implementations.

Each step is one program whatever the flags say. Groups and saved states keep them.
"""

from __future__ import annotations

import inspect
from typing import Any

from runnel import optim

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop"
]  # fmt: skip


def _with_flags(kind: type[optim.Optimizer], flags: str, positional: str = "") -> type[optim.Optimizer]:
    """Return a subclass of ``kind`` that accepts ``flags``.

    ``positional`` are the arguments that PyTorch's optimizer accepts in this order after the arguments of ``kind``.
    """
    parameters = list(inspect.signature(kind.__init__).parameters.values())[2:]
    order = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD] + positional.split()
    none = {name: None if name in ("foreach", "fused") else False for name in flags.split()}

    class WithFlags(kind):  # type: ignore[misc, valid-type]
        def __init__(self, params: Any, *args: Any, **options: Any) -> None:
            if len(args) > len(order):
                raise TypeError(f"[{kind.__name__}] takes {len(order) + 1} arguments by position; got {len(args) + 1}.")
            options |= dict(zip(order, args, strict=False))
            given = {name: options.pop(name, default) for name, default in none.items()}
            for name, value in given.items():
                if not isinstance(value, bool | None):
                    raise TypeError(f"[{kind.__name__}] {name} must be True, False or None; got {value!r}.")
            if given.get("differentiable"):
                raise ValueError(
                    f"[{kind.__name__}] differentiable must be False: a step is not recorded. Write updates in ops "
                    "and use runnel.grad to differentiate them."
                )
            super().__init__(params, **options)
            self.defaults |= given
            for group in self.param_groups:
                group.update({name: value for name, value in given.items() if name not in group})

    WithFlags.__name__ = WithFlags.__qualname__ = kind.__name__
    WithFlags.__doc__ = kind.__doc__
    return WithFlags


_ALL = "foreach capturable differentiable"

ASGD = _with_flags(optim.ASGD, _ALL, "foreach maximize differentiable capturable")
SGD = _with_flags(optim.SGD, "foreach differentiable fused")
Adadelta = _with_flags(optim.Adadelta, _ALL, "foreach")
Adafactor = _with_flags(optim.Adafactor, "foreach")
Adagrad = _with_flags(optim.Adagrad, "foreach differentiable fused", "foreach")
Adam = _with_flags(optim.Adam, f"{_ALL} fused")
AdamW = _with_flags(optim.AdamW, f"{_ALL} fused")
Adamax = _with_flags(optim.Adamax, _ALL, "foreach")
NAdam = _with_flags(optim.NAdam, _ALL)
RAdam = _with_flags(optim.RAdam, _ALL)
RMSprop = _with_flags(optim.RMSprop, _ALL, "capturable foreach maximize differentiable")
Rprop = _with_flags(optim.Rprop, _ALL)
