"""The momentum that schedules change beside the rate: "momentum" of a group, or the first of its "betas"."""

from __future__ import annotations

from typing import Any

from runnel.optim.group import ParamGroup
from runnel.optim.optimizer import Optimizer


def uses_betas(owner: str, optimizer: Optimizer) -> bool:
    """Whether the optimizer's momentum is the first of its betas. ValueError if it has none."""
    if "betas" in optimizer.defaults:
        return True
    if "momentum" in optimizer.defaults:
        return False
    raise ValueError(
        f"[{owner}] cycle_momentum=True changes momentum or betas, and {type(optimizer).__name__} has neither; "
        "pass cycle_momentum=False."
    )


def set_momentum(group: ParamGroup, value: float, **more: Any) -> None:
    """Set the momentum of a group, and ``more`` of its values."""
    if "betas" in group.plain:
        group.update(more, betas=(value, *group.plain["betas"][1:]))
    else:
        group.update(more, momentum=value)
