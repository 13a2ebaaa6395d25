"""Arguments of schedules: plain Python numbers, checked."""

from __future__ import annotations

from typing import Any

from runnel.optim.hyperparameters import number


def real(owner: str, name: str, value: Any, least: float) -> int | float:
    """``value`` as a finite number of at least ``least``, or TypeError or ValueError."""
    try:
        plain = number(value)
    except (TypeError, ValueError) as wrong:
        raise type(wrong)(f"[{owner}] {name} {wrong}; received {value!r}.") from None
    if plain < least:
        raise ValueError(f"[{owner}] {name} is at least {least}; received {value!r}.")
    return plain


def whole(owner: str, name: str, value: Any, least: int) -> int:
    """``value`` as an int of at least ``least``, or TypeError or ValueError."""
    plain = real(owner, name, value, least)
    if plain != int(plain):
        raise ValueError(f"[{owner}] {name} is a whole number; received {value!r}.")
    return int(plain)


def rate(owner: str, value: Any) -> float:
    """``value`` as a learning rate."""
    return float(real(owner, "a learning rate", value, 0.0))


def per_group(owner: str, name: str, value: Any, groups: int) -> list[float]:
    """A number for each group, from one for all or from a list."""
    values = list(value) if isinstance(value, list | tuple) else [value] * groups
    if len(values) != groups:
        raise ValueError(f"[{owner}] {name} is a number, or one for each of {groups} groups; received {value!r}.")
    return [float(real(owner, name, one, 0.0)) for one in values]


def choice(owner: str, name: str, value: Any, words: tuple[str, ...]) -> str:
    """``value``, one of these words."""
    if value not in words:
        raise ValueError(f"[{owner}] {name} is {' or '.join(map(repr, words))}; received {value!r}.")
    return str(value)
