"""Refusals: what ends an observation because a program could not repeat it or a guard could not check it."""

from __future__ import annotations

from typing import Any


class NotCapturable(BaseException):
    """Why, in one sentence, and at which line of the user's. No Exception: a function's ``except`` must not stop it."""

    def __init__(
        self, reason: str, where: str, remedy: str = "", is_intended: bool = False, is_passing: bool = False
    ) -> None:
        super().__init__(reason, where, remedy)
        self.reason = reason
        self.where = where
        self.remedy = remedy
        self.is_intended = is_intended  # by the user, who need not be told
        self.is_passing = is_passing  # because of what goes on around this call, so that later ones are traced
        self.guard: Any = None  # what was read before: whenever it holds, the refusal is the same

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}{'; ' + self.remedy if self.remedy else ''}"
