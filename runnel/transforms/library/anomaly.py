"""Blocks of code in which the first NaN or infinity is an error, under PyTorch's names."""

from __future__ import annotations

from typing import Any

from runnel.core import switches


class detect_anomaly:
    """Inside the block the first op that makes a NaN or infinity of finite numbers raises an error with its line,
    forwards and backwards, eagerly and compiled (the switch ``check_nans``). Runs take longer.

    ``check_nan=False``: nothing is checked; errors name the user's line anyway.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._value = bool(check_nan)
        self._before = switches.check_nans.value

    def __enter__(self) -> None:
        self._before = switches.check_nans.value
        switches.check_nans.set(self._value)

    def __exit__(self, *_: Any) -> None:
        switches.check_nans.set(self._before)


class set_detect_anomaly(detect_anomaly):
    """Checks from here on, or no longer, for NaNs and infinities as :class:`detect_anomaly` does; as the object of a
    ``with`` statement until its block ends."""

    def __init__(self, mode: bool = True, check_nan: bool = True) -> None:
        super().__init__(check_nan and mode)
        switches.check_nans.set(self._value)

    def __enter__(self) -> None:
        switches.check_nans.set(self._value)
