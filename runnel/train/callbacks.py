"""Callbacks of a training run, the progress bar, and stopping between two steps on Ctrl-C."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from runnel.core.errors import ArgumentError, StateError
from runnel.nn.module import Module
from runnel.optim.optimizer import Optimizer
from runnel.tensor.snapshot import snapshot

Logs = Mapping[str, Any]


class Run(Protocol):
    """The Trainer as callbacks see it.

    ``epochs`` and ``steps`` are the completed numbers; ``history`` has a dict of results for each epoch.
    """

    model: Module
    optimizer: Optimizer
    epochs: int
    steps: int
    history: list[dict[str, Any]]

    def stop(self, reason: str) -> None:
        """End ``fit`` after the current step or epoch."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to continue the training run."""


class Callback:
    """The base class; subclasses define what they need. ``trainer`` is the Trainer.

    ``logs`` are results by name: "loss", "lr" and the metrics; names from the validation begin with "val_". State to
    keep when a training run is continued goes through ``state_dict`` and ``load_state_dict``: dicts that
    :func:`runnel.save` accepts.
    """

    is_last = False  # whether it is called behind the others, since it saves what they have become

    def on_fit_start(self, trainer: Any) -> None:
        """Run when training begins or continues."""

    def on_epoch_start(self, trainer: Any) -> None:
        """Run when an epoch begins, but not when it continues."""

    def on_step_end(self, trainer: Any, logs: Any) -> None:
        """Run after a step; "loss" is the loss of its samples."""

    def on_epoch_end(self, trainer: Any, logs: Any) -> None:
        """Run after an epoch and its validation."""

    def on_interrupt(self, trainer: Any) -> str:
        """Run between two steps after Ctrl-C; return a sentence on what was saved, or ''."""
        return ""

    def on_fit_end(self, trainer: Any) -> None:
        """Run when training ends, also by an error: close files here."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state to keep."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the result of ``state_dict``."""


class Watched:
    """The best value of a result.

    Args:
        owner: the class that watches, for messages.
        monitor: the name of the result.
        mode: "min" or "max": which values are better; "auto" is "max" for names such as accuracies.
        min_delta: the smallest change that counts as an improvement.
    """

    def __init__(self, owner: str, monitor: str, mode: str = "auto", min_delta: float = 0.0) -> None:
        if mode not in ("min", "max", "auto"):
            raise ArgumentError(f"[{owner}] mode must be 'min', 'max' or 'auto'; got {mode!r}.")
        if mode == "auto":
            mode = "max" if monitor.removeprefix("val_").startswith(_BETTER_WHEN_GREATER) else "min"
        self.owner = owner
        self.monitor = monitor
        self.sign = 1.0 if mode == "max" else -1.0
        self.min_delta = abs(min_delta)
        self.best = -self.sign * math.inf

    def improves(self, logs: Logs) -> bool:
        """Return True, and update the best value, if the result is better. NaN never is."""
        value = self.value(logs)
        if self.sign * (value - self.best) > self.min_delta or (math.isinf(self.best) and not math.isnan(value)):
            self.best = value
            return True
        return False

    def value(self, logs: Logs) -> float:
        """Return the result; ArgumentError if it does not exist."""
        value = logs.get(self.monitor)
        if not isinstance(value, int | float):
            numbers = ", ".join(name for name, figure in logs.items() if isinstance(figure, int | float))
            hint = " Pass validation= to fit()." if self.monitor.startswith("val_") and "val_loss" not in logs else ""
            raise ArgumentError(f"[{self.owner}] monitor must be one of {numbers}; got '{self.monitor}'.{hint}")
        return float(value)


_BETTER_WHEN_GREATER = ("acc", "top_k", "precision", "recall", "f1", "auroc", "auc")


class EarlyStopping(Callback):
    """Stop when a result has not improved for ``patience`` epochs.

    Args:
        monitor: the result: "val_loss", "loss", "val_accuracy", ….
        patience: number of epochs in a row without an improvement.
        min_delta: the smallest change that counts as an improvement.
        mode: "min", "max" or "auto", by the name.
        restore_best: when it stops, restore the Parameters and buffers of the best epoch.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        patience: int = 5,
        min_delta: float = 0.0,
        mode: str = "auto",
        restore_best: bool = False,
    ) -> None:
        if patience < 1:
            raise ArgumentError(f"[EarlyStopping] patience must be 1 or more; got {patience}.")
        self.watched = Watched("EarlyStopping", monitor, mode, min_delta)
        self.patience = patience
        self.restore_best = restore_best
        self.waited = 0
        self._best_model: dict[str, Any] | None = None

    def on_epoch_end(self, trainer: Run, logs: Logs) -> None:
        if self.watched.improves(logs):
            self.waited = 0
            self._best_model = snapshot(trainer.model.state_dict) if self.restore_best else None
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.stop(f"{self.watched.monitor} has not improved on {self.watched.best:.6g} for {self.waited} epochs")
            if self._best_model is not None:
                trainer.model.load_state_dict(self._best_model)

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.watched.best, "waited": self.waited, "best_model": self._best_model}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if not isinstance(state, Mapping) or state.keys() != self.state_dict().keys():
            raise StateError("[load_state_dict] the state of EarlyStopping has best, waited and best_model.")
        self.watched.best, self.waited = float(state["best"]), int(state["waited"])
        self._best_model = state["best_model"]


class Interruption:
    """A context that turns the first SIGINT into a request: ``with Interruption() as request: … request.is_made``.

    The second SIGINT goes to the previous handler. In threads other than the main one it does nothing.
    """

    def __init__(self) -> None:
        self.is_made = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._requested)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _requested(self, number: int, frame: FrameType | None) -> None:
        self.is_made = True
        self._give_back()

    def _give_back(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None


_EVERY = 5.0  # seconds between two plain lines
_NARROW = 60  # columns of a terminal in which the numbers take the place of the bar


class Progress:
    """A progress bar: ``with Progress("Training", 100) as bar: bar.advance(note="loss 0.31")``.

    It writes to standard error. ``total`` is None if it is unknown.
    """

    def __init__(self, title: str, total: int | None) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self._bar: Any = None
        self._task: Any = None
        self._last_report = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = _rich_bar()
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=self.total, note="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Count ``steps`` more."""
        self.done += steps
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, note=note)
            return
        now = time.monotonic()
        if now - self._last_report >= _EVERY:
            self._last_report = now
            of = "" if self.total is None else f" of {self.total}"
            print(f"{self.title}: {self.done}{of}  {note}", file=sys.stderr, flush=True)


def _rich_bar() -> Any:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeElapsedColumn
    except ImportError:
        return None
    console = Console(stderr=True)
    if console.is_dumb_terminal:  # rich would show nothing before the end
        return None
    place = [] if console.width < _NARROW else [BarColumn()]
    columns = (
        TextColumn("{task.description}"),
        *place,
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    return Bar(*columns, console=console, transient=False)
