"""Losses and Parameters that are not finite: where the first NaN or infinity comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from runnel.core import switches
from runnel.core.errors import NonFiniteError
from runnel.nn.module import Module
from runnel.tensor.methods import ArrayMethods
from runnel.train.batches import Batch


def is_finite(value: Any) -> bool:
    """Whether all numbers of an array are finite; those of integers are."""
    array = value.numpy()
    if array.dtype.kind in "biu":
        return True
    return bool(np.isfinite(array if array.dtype.kind in "fc" else array.astype(np.float64)).all())


def parameters_that_are_not(model: Module) -> list[str]:
    """The paths of the Parameters that hold a NaN or an infinity."""
    return [path for path, parameter in model.named_parameters() if not is_finite(parameter)]


def traced_back(batches: Iterable[Batch], again: Callable[[], Any], where: str) -> NonFiniteError:
    """The error for a step that made a NaN or an infinity: ``again`` repeats it from the same state, op by op."""
    for batch in batches:
        for what, value in (("input", batch.inputs), ("target", batch.target)):
            place = _not_finite_in(value, what)
            if place:
                return NonFiniteError(f"[Trainer] {place} of {where} holds a NaN or an infinity.")
    try:
        with switches.override(check_nans=True):
            again()
    except NonFiniteError as error:
        error.args = (f"{error} That was in {where}, repeated op by op; the state is that before it.",)
        return error
    return NonFiniteError(
        f"[Trainer] {where} made a NaN or an infinity, and did not when it was repeated op by op; the state is that "
        "before it. The loss reads something that changes from call to call."
    )


def _not_finite_in(value: Any, path: str) -> str:
    """Where in nested inputs the first NaN or infinity is; '' if there is none."""
    if isinstance(value, ArrayMethods):
        return "" if is_finite(value) else path
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    return next((place for key, item in items if (place := _not_finite_in(item, f"{path}[{key!r}]"))), "")
