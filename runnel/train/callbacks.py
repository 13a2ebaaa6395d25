"""Callbacks of a training run, the progress bar, and stopping at Ctrl-C between two steps."""

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

Logs = Mapping[str, Any]


class Run(Protocol):
    """What a callback sees of the Trainer.

    ``epochs`` and ``steps`` are how many have been completed, ``history`` has a dict of figures for each epoch.
    """

    model: Module
    optimizer: Optimizer
    epochs: int
    steps: int
    history: list[dict[str, Any]]

    def stop(self, reason: str) -> None:
        """End ``fit`` after the current step or epoch."""

    def state_dict(self) -> dict[str, Any]:
        """All that a training continues from."""


class Callback:
    """The base class: subclasses define what they need. ``trainer`` is the Trainer. The figures, ``logs``, are "loss",
    "lr" and the metrics by name; those of the validation begin with "val_".

    What an instance has to remember when a training is continued goes through ``state_dict`` and ``load_state_dict``:
    dicts of what :func:`runnel.save` takes.
    """

    is_last = False  # whether it is called behind the others, since it saves what they have become

    def on_fit_start(self, trainer: Any) -> None:
        """Training begins, or is continued."""

    def on_epoch_start(self, trainer: Any) -> None:
        """An epoch begins; not called again for one that is continued."""

    def on_step_end(self, trainer: Any, logs: Any) -> None:
        """A step has been made: "loss" is that of its samples."""

    def on_epoch_end(self, trainer: Any, logs: Any) -> None:
        """An epoch is complete, the validation included."""

    def on_interrupt(self, trainer: Any) -> str:
        """Ctrl-C was pressed, and the training stands between two steps. Gives a sentence on what was saved, or ''."""
        return ""

    def on_fit_end(self, trainer: Any) -> None:
        """Training is over, be it by an error: close what is open."""

    def state_dict(self) -> dict[str, Any]:
        """What the instance has to remember."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""


class Watched:
    """A figure of the logs whose best value counts.

    Args:
        owner: the class that watches, for messages.
        monitor: the name of the figure.
        mode: "min" or "max": which way is better; "auto" is "max" for names of accuracies and their kin.
        min_delta: how much better counts as better.
    """

    def __init__(self, owner: str, monitor: str, mode: str = "auto", min_delta: float = 0.0) -> None:
        if mode not in ("min", "max", "auto"):
            raise ArgumentError(f"[{owner}] mode is 'min', 'max' or 'auto'; received {mode!r}.")
        if mode == "auto":
            mode = "max" if monitor.removeprefix("val_").startswith(_BETTER_WHEN_GREATER) else "min"
        self.owner = owner
        self.monitor = monitor
        self.sign = 1.0 if mode == "max" else -1.0
        self.min_delta = abs(min_delta)
        self.best = -self.sign * math.inf

    def improves(self, logs: Logs) -> bool:
        """Whether the figure is better than the best so far, which it becomes. nan never is."""
        value = self.value(logs)
        if self.sign * (value - self.best) > self.min_delta or (math.isinf(self.best) and not math.isnan(value)):
            self.best = value
            return True
        return False

    def value(self, logs: Logs) -> float:
        """The figure. ArgumentError where there is none of this name."""
        value = logs.get(self.monitor)
        if not isinstance(value, int | float):
            numbers = ", ".join(name for name, figure in logs.items() if isinstance(figure, int | float))
            hint = " Pass validation= to fit()." if self.monitor.startswith("val_") and "val_loss" not in logs else ""
            raise ArgumentError(
                f"[{self.owner}] there is no figure '{self.monitor}' to watch; there are {numbers}.{hint}"
            )
        return float(value)


_BETTER_WHEN_GREATER = ("acc", "top_k", "precision", "recall", "f1", "auroc", "auc")


class EarlyStopping(Callback):
    """Stop when a figure has not got better for ``patience`` epochs.

    Args:
        monitor: the figure: "val_loss", "loss", "val_accuracy", ….
        patience: after how many epochs in a row without a better value.
        min_delta: how much better counts as better.
        mode: "min", "max" or "auto", by the name.
        restore_best: when it stops, give the model the Parameters and buffers of its best epoch.
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
            raise ArgumentError(f"[EarlyStopping] patience is 1 or more; received {patience}.")
        self.watched = Watched("EarlyStopping", monitor, mode, min_delta)
        self.patience = patience
        self.restore_best = restore_best
        self.waited = 0
        self._best_model: dict[str, Any] | None = None

    def on_epoch_end(self, trainer: Run, logs: Logs) -> None:
        if self.watched.improves(logs):
            self.waited = 0
            self._best_model = trainer.model.state_dict() if self.restore_best else None
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.stop(
                f"{self.watched.monitor} has not got better than {self.watched.best:.6g} for {self.waited} epochs"
            )
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
    """``with Interruption() as request: …`` asks for a stop by ``request.is_made`` at the first SIGINT. The second one
    goes to whoever would have got the first. In other threads than the main one it does nothing."""

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
    """``with Progress("Training", 100) as bar: bar.advance(note="loss 0.31")``. Writes to standard error. ``total`` is
    None where nobody knows it."""

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
        """``steps`` more are done."""
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
