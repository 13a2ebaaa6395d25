"""``torch.multiprocessing``: Python's module, which refuses to start processes while a model is shared.

Each process has separate weights. ``model.share_memory()`` returns the model, so that programs run with one process; a
process that would train the shared weights raises UnsupportedError when it is started.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import context
from typing import Any, Final

from runnel.core.errors import UnsupportedError
from runnel.tensor.storages import is_anything_shared


def _refuse(name: str) -> None:
    if is_anything_shared():
        raise UnsupportedError(
            f"[{name}] share_memory() was called, and processes cannot write the same weights. Call the function "
            "of one process directly."
        )


class _Starting:
    """A process that is not started while something is shared."""

    def start(self) -> None:
        """Start the process; UnsupportedError while a shared model or tensor is in use."""
        _refuse("Process.start")
        super().start()  # type: ignore[misc]


class Process(_Starting, multiprocessing.Process):
    """A process of Python."""


class ForkProcess(_Starting, context.ForkProcess):
    """A process that begins as a copy of this one."""


class SpawnProcess(_Starting, context.SpawnProcess):
    """A process that begins as a new interpreter."""


class ForkServerProcess(_Starting, context.ForkServerProcess):
    """A process that begins as a copy of a small one."""


_PROCESSES: Final = {"fork": ForkProcess, "spawn": SpawnProcess, "forkserver": ForkServerProcess}


class Context:
    """A context of Python's multiprocessing, by one method of starting."""

    def __init__(self, method: str | None) -> None:
        self._context: Any = multiprocessing.get_context(method)
        self.Process = _PROCESSES[method] if method else Process

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Pool(self, *args: Any, **options: Any) -> Any:
        """Return a pool of processes."""
        _refuse("Pool")
        return self._context.Pool(*args, **options)


def get_context(method: str | None = None) -> Any:
    """Return the context of one method of starting processes: "fork", "spawn" or "forkserver"."""
    return Context(method)


def Pool(*args: Any, **options: Any) -> Any:
    """Return a pool of processes."""
    return get_context().Pool(*args, **options)
