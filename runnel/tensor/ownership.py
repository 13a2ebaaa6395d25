"""Which handles may be written in place, and when: checked by ``x[i] = v`` and in-place methods."""

from __future__ import annotations

from typing import Any, Final

from runnel.core import tracebacks
from runnel.core.devices import Device
from runnel.core.errors import CaptureError, DeviceError, GradientError, SideEffectError
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import Handle, OutsideHandles
from runnel.tensor.trace import Trace
from runnel.tensor.traced_values import counted

CONSTANT_SERIAL: Final = 1 << 62  # later than any trace: such a tensor is a constant in every trace


def require_own(x: Handle[Any], name: str, trace: Trace | None) -> None:
    """Raise unless the handle ``x`` may be given another value now."""
    if x._leaf is not None or x._serial == CONSTANT_SERIAL:
        raise CaptureError(
            f"[{name}] this tensor is the value of a Variable or a constant; assign to the Variable, or change a copy "
            "(x.clone())."
        )
    if x._is_user_leaf and RECORDING.get():
        raise GradientError(
            f"[{name}] a leaf that requires a gradient cannot be changed in place while operations are recorded; "
            "change it under `with runnel.no_grad():`, or change a copy (x.clone())."
        )
    if trace is not None and x._is_outside(trace):
        require_no_body(name, trace)


def require_no_body(name: str, trace: Trace) -> None:
    """Raise where a trace cannot give a tensor from outside another value, or gradient: in a loop's or branch's body,
    or where nothing is compiled."""
    if trace.is_body or trace.facet(OutsideHandles).stand_ins is None:
        raise SideEffectError(
            f"[{name}] a tensor from outside is changed at {tracebacks.user_line()}; return the new value."
        )


def require_movable(x: Handle[Any], device: Device, trace: Trace | None) -> None:
    """Raise unless ``x`` can be moved to another device now: a program computes on one."""
    if trace is not None and (x._node is not None or x._is_outside(trace)):
        raise counted(
            DeviceError(
                f"[to] at {tracebacks.user_line()} a tensor moves from {x.device} to {device} in the middle of a "
                "compiled function, which computes on one device; move it before the call."
            )
        )


def require_inside(x: Handle[Any], name: str, level: Any) -> None:
    """Raise unless the handle ``x`` may become a tensor of ``level``: it was made while that was open."""
    if level is not None and level is not x._level and x._serial <= level.born:
        raise SideEffectError(
            f"[{name}] at {tracebacks.user_line()} a function under {level.name} gives a tensor from outside a value "
            f"that belongs to the {level.name}; return the value."
        )
