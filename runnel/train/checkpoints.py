"""Checkpoints: the whole state of a training run in files, the last few and the best."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from runnel.core.errors import ArgumentError, FileError
from runnel.io.saving import load, save
from runnel.train.callbacks import Callback, Logs, Run, Watched

_NAME: Final = re.compile(r"step-(\d{10})\.state")
_BEST: Final = "best.state"


class Checkpoint(Callback):
    """Write the state of the training run into a folder; ``fit(..., resume=folder)`` continues from the last one.

    The continued run is bitwise identical. A file gets its name when it is complete and on the disk; older ones are
    deleted after that.

    Args:
        folder: the folder, created if need be.
        every_epochs: number of epochs between states; 0 for never.
        every_steps: number of steps between states; 0 for never.
        keep: number of the last states to keep.
        best: a result, such as "val_loss": when it improves, the state is also written to ``best.state``.
        mode: which values are better: "min", "max" or "auto", by the name.

    FileError if a state cannot be written, for instance because the disk is full. Earlier files are unchanged.
    """

    is_last = True

    def __init__(
        self,
        folder: str | os.PathLike[str],
        every_epochs: int = 1,
        every_steps: int = 0,
        keep: int = 3,
        best: str | None = None,
        mode: str = "auto",
    ) -> None:
        if keep < 1 or every_epochs < 0 or every_steps < 0:
            raise ArgumentError(
                "[Checkpoint] keep must be 1 or more, every_epochs and every_steps 0 or more; got "
                f"{keep}, {every_epochs} and {every_steps}."
            )
        self.folder = Path(folder)
        self.every_epochs = every_epochs
        self.every_steps = every_steps
        self.keep = keep
        self.watched = None if best is None else Watched("Checkpoint", best, mode)

    def on_fit_start(self, trainer: Run) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"[Checkpoint] the folder '{self.folder}' cannot be made: {error.strerror}.") from error

    def on_step_end(self, trainer: Run, logs: Logs) -> None:
        if self.every_steps and trainer.steps % self.every_steps == 0:
            self.write(trainer)

    def on_epoch_end(self, trainer: Run, logs: Logs) -> None:
        is_better = self.watched is not None and self.watched.improves(logs)
        if is_better:
            self._save(trainer, self.folder / _BEST)
        if self.every_epochs and trainer.epochs % self.every_epochs == 0:
            self.write(trainer)

    def on_interrupt(self, trainer: Run) -> str:
        path = self.write(trainer)
        return f"The state is in '{path}': fit(..., resume='{self.folder}') continues from there."

    def write(self, trainer: Run) -> Path:
        """Write the state now, delete the oldest ones, and return the path."""
        path = self.folder / f"step-{trainer.steps:010d}.state"
        self._save(trainer, path)
        for old in saved_states(self.folder)[: -self.keep]:
            with contextlib.suppress(OSError):
                old.unlink()
        return path

    def _save(self, trainer: Run, path: Path) -> None:
        try:
            save(trainer.state_dict(), path)
        except FileError as error:
            states = saved_states(self.folder)
            whole = f"The last whole state is '{states[-1]}'." if states else "There is no whole state yet."
            reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else None
            answer = FileError(
                f"[Checkpoint] the state after step {trainer.steps} could not be written to '{path}': "
                f"{reason or error}. {whole} Free some space there, and continue with fit(..., resume='{self.folder}')."
            )
            answer.errno = error.errno
            raise answer from error

    def state_dict(self) -> dict[str, Any]:
        return {"best": None if self.watched is None else self.watched.best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if self.watched is not None and state.get("best") is not None:
            self.watched.best = float(state["best"])


def saved_states(folder: Path) -> list[Path]:
    """Return the states of a folder by number of steps."""
    try:
        names = sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FileError(f"[resume] the folder '{folder}' cannot be read: {error.strerror}.") from error
    return [folder / name for name in names]


def last_checkpoint(folder: str | os.PathLike[str]) -> str | None:
    """Return the path of the state in ``folder`` with the most steps; None if it has none."""
    states = saved_states(Path(folder))
    return str(states[-1]) if states else None


def state_at(place: str | os.PathLike[str]) -> Any:
    """Return the state in a file, or the last one in a folder; None if that has none or does not exist."""
    path = Path(place)
    if path.is_dir() or not path.exists():
        if path.suffix == ".state":
            raise FileError(f"[resume] there is no file '{path}'.")
        last = last_checkpoint(path)
        if last is None:
            return None
        path = Path(last)
    try:
        return load(path)
    except FileError as error:
        raise FileError(f"[resume] {str(error).removeprefix('[load] ')} {_older(path)}") from error


def _older(path: Path) -> str:
    """Describe the state to continue from instead of a damaged one."""
    for state in reversed([state for state in saved_states(path.parent) if state.name < path.name]):
        with contextlib.suppress(FileError):
            load(state)
            return f"The state before it, '{state}', is whole: delete '{path.name}', and continue from that one."
    return "There is no older state that is whole."
