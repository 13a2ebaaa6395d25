"""``Trainer``: fit a model to batches with a compiled step, and continue a training run bitwise identically."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, NonFiniteError, StateError
from runnel.core.tracebacks import ending_at_user
from runnel.nn.module import Module
from runnel.optim.lr_scheduler.combined import ReduceLROnPlateau
from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.optim.optimizer import Optimizer
from runnel.tensor.random import get_rng_state, set_rng_state
from runnel.tensor.snapshot import snapshot
from runnel.train.batches import Batch, Pass, Split, as_batch, as_inputs, joined, number_of, pair, require_batches
from runnel.train.callbacks import Callback, Interruption, Progress
from runnel.train.checkpoints import state_at
from runnel.train.metrics.metric import Mean, Metric
from runnel.train.metrics.scores import named_metrics
from runnel.train.steps import Loss, Steps, parameters_that_are_not, traced_back

_FORMAT = 2


class Trainer:
    """Trains ``model``: each step, with forward, backward and the optimizer's update, is one compiled program.

    Args:
        model: a Module.
        loss: a function of (output, target) that returns a scalar: one of ``nn``'s losses, or your own. It should be
            the mean over the samples, so that ``accumulate`` and uneven batches are exact.
        optimizer: one of ``optim``, made with the model's Parameters.
        metrics: names ("accuracy", "f1", "auroc", …) or Metrics, or a dict with a name for each.
        scheduler: a learning-rate schedule; ReduceLROnPlateau gets "val_loss", or "loss" without a validation.
        schedule_every: "epoch" or "step": when the schedule is stepped.
        clip_norm: the largest norm of all gradients together; larger ones are scaled.
        clip_value: the largest absolute value of an element of a gradient.
        accumulate: number of batches per step. Gradients are weighted by numbers of samples, so the step equals a step
            on one large batch, except for rounding and for batch normalization, which sees each batch separately.
        callbacks: Checkpoint, EarlyStopping, JSONLines, …; called in this order, Checkpoint last.
        split: returns the inputs (a tuple of several) and the target of a batch; (input, …, target) by default.
        nan: the reaction to a loss that is not finite. "stop" raises NonFiniteError. "explain" also repeats the step op
            by op and names the op and the module that made the first NaN; it copies the state at each step, and the
            model is as it was before the step. "ignore" continues.
        compile: False runs the model op by op, for a debugger. The results are bitwise identical.
        progress: show a progress bar.

    Attributes:
        epochs, steps: completed numbers.
        history: for each epoch, its results by name.
    """

    def __init__(
        self,
        model: Module,
        loss: Loss,
        optimizer: Optimizer,
        *,
        metrics: Mapping[str, Any] | Iterable[Any] | None = None,
        scheduler: LRScheduler | None = None,
        schedule_every: str = "epoch",
        clip_norm: float | None = None,
        clip_value: float | None = None,
        accumulate: int = 1,
        callbacks: Sequence[Callback] = (),
        split: Split = pair,
        nan: str = "stop",
        compile: bool = True,
        progress: bool = True,
    ) -> None:
        _require("model", model, Module)
        _require("optimizer", optimizer, Optimizer)
        _require("scheduler", scheduler, LRScheduler, optional=True)
        _require_one_of("schedule_every", schedule_every, ("epoch", "step"))
        _require_one_of("nan", nan, ("stop", "explain", "ignore"))
        for name, limit in (("clip_norm", clip_norm), ("clip_value", clip_value)):
            if limit is not None and not limit > 0:
                raise ArgumentError(f"[Trainer] {name} must be more than 0; got {limit!r}.")
        if not callable(loss):
            raise ArgumentError(f"[Trainer] loss must be a function of (output, target); got {type(loss).__name__}.")
        if isinstance(accumulate, bool) or not isinstance(accumulate, int) or accumulate < 1:
            raise ArgumentError(f"[Trainer] accumulate must be 1 or more; got {accumulate!r}.")
        if schedule_every == "step" and isinstance(scheduler, ReduceLROnPlateau):
            raise ArgumentError("[Trainer] ReduceLROnPlateau needs schedule_every='epoch'.")
        if not isinstance(callbacks, Sequence):
            raise ArgumentError(f"[Trainer] callbacks must be a list of Callbacks; got {type(callbacks).__name__}.")
        for callback in callbacks:
            _require("each of callbacks", callback, Callback)
        _require_own_parameters(optimizer, [part for part in (model, loss) if isinstance(part, Module)])
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.schedule_every = schedule_every
        self.metrics = named_metrics(metrics)
        self.accumulate = accumulate
        self.callbacks = sorted(callbacks, key=lambda callback: callback.is_last)
        self.split = split
        self.nan = nan
        self.shows_progress = progress
        self.epochs = 0
        self.steps = 0
        self.history: list[dict[str, Any]] = []
        self.stopped = ""  # why training is over
        self._loss = Mean()
        self._functions = Steps(model, loss, optimizer, clip_norm, clip_value, bool(self.metrics), compile)
        self._pass: Pass | None = None  # current pass
        self._pass_state: Mapping[str, Any] | None = None  # position at which the next one continues another
        self._step_loss = math.nan
        self._is_fitting = False

    def __getstate__(self) -> dict[str, Any]:
        """Return a state whose copy iterates over the data by itself, from the current position."""
        return {**self.__dict__, "_pass": None, "_pass_state": self._position(), "_is_fitting": False}

    # Training ---------------------------------------------------------------------------------------------------------

    @ending_at_user
    def fit(
        self,
        data: Iterable[Any],
        epochs: int = 1,
        validation: Iterable[Any] | None = None,
        resume: str | os.PathLike[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Train until ``epochs`` epochs are complete, including earlier calls and a resumed state.

        Args:
            data: batches, iterated once per epoch: a DataLoader, a list, ….
            epochs: total number of epochs.
            validation: batches for ``evaluate`` after each epoch; names of its results begin with "val_".
            resume: a file or a folder of :class:`Checkpoint` to continue from, at its last state. If the folder has
                none, training starts, so a script need not know whether it was interrupted.

        Returns:
            ``history``: for each epoch, its results by name.

        Raises:
            NonFiniteError: the loss is not finite, unless ``nan="ignore"``.
            KeyboardInterrupt: after Ctrl-C, between two steps; a Checkpoint has written the state. A second one stops
                at once.
            StateError, FileError: ``resume`` does not fit or cannot be read. The Trainer is unchanged.
        """
        if self._is_fitting:
            raise StateError("[fit] this Trainer is already fitting; a callback or another thread called fit() again.")
        if isinstance(epochs, bool) or not isinstance(epochs, int | np.integer) or epochs < 0:
            raise ArgumentError(f"[fit] epochs must be an int of 0 or more; got {short_repr(epochs)}.")
        require_batches("fit", data)
        if validation is not None:
            require_batches("fit", validation)
        if resume is not None:
            state = state_at(resume)
            if state is not None:
                self.load_state_dict(state)
        self._go_on_in(data)
        self._is_fitting = True
        try:
            with Interruption() as interruption:
                for callback in self.callbacks:
                    callback.on_fit_start(self)
                while self.epochs < epochs and not self.stopped:
                    self._epoch(data, epochs, validation, interruption)
                    self._answer(interruption)
        except BaseException:
            self._go_on_in(None)  # an iterator that has raised is finished
            raise
        finally:
            self._is_fitting = False
            for callback in self.callbacks:
                callback.on_fit_end(self)
        return self.history

    def _go_on_in(self, data: Iterable[Any] | None) -> None:
        """Leave a pass over other data, and remember its position."""
        if self._pass is not None and self._pass.data is not data:
            self._pass_state = self._position()
            self._pass = None

    def _position(self) -> Mapping[str, Any] | None:
        """Return the position of the current pass, if it has begun."""
        if self._pass is None:
            return self._pass_state
        return self._pass.state_dict() if self._pass.count else None

    def begin_epoch_anew(self) -> None:
        """Forget the position in the data and the results of an incomplete epoch."""
        self._pass = self._pass_state = None
        for metric in (self._loss, *self.metrics.values()):
            metric.reset()

    def stop(self, reason: str) -> None:
        """End ``fit`` after the current step or epoch; ``reason`` is kept in ``stopped``."""
        self.stopped = reason

    def _epoch(
        self, data: Iterable[Any], epochs: int, validation: Iterable[Any] | None, interruption: Interruption
    ) -> None:
        if self._pass is None:
            self._pass = Pass(data, self._pass_state)
            self._pass_state = None
        self.model.train()
        if not self._pass.count:
            for callback in self.callbacks:
                callback.on_epoch_start(self)
        with self._progress(f"epoch {self.epochs + 1}/{epochs}", data) as bar:
            bar.done = self._pass.count
            while count := self._next_step(self._pass):
                bar.advance(count, self._note())
                self._answer(interruption)
                if self.stopped:
                    return
        if not self._pass.count:
            raise ArgumentError(f"[fit] the data have no batches: {type(data).__name__} is empty.")
        logs = self._figures(self._loss, self.metrics)
        if validation is not None:
            figures = self._evaluated(validation, interruption)
            logs |= {f"val_{name}": value for name, value in figures.items()}
        logs["lr"] = float(self.optimizer.param_groups[0]["lr"])
        if self.scheduler is not None and self.schedule_every == "epoch":
            if isinstance(self.scheduler, ReduceLROnPlateau):
                self.scheduler.step(logs.get("val_loss", logs["loss"]))
            else:
                self.scheduler.step()
        self.history.append(logs)
        self.epochs += 1
        self.begin_epoch_anew()
        self._pass = Pass(data)
        for callback in self.callbacks:
            callback.on_epoch_end(self, logs)

    def _next_step(self, batches: Pass) -> int:
        """Take the batches of a step, run it and return their number. If it fails, they come again."""
        count, steps = batches.count, self.steps
        try:
            several = self.accumulate > 1
            taken = [as_batch(self.split, batch, several) for batch in itertools.islice(batches, self.accumulate)]
            if taken:
                self._step(taken)
        except Exception:
            if self.steps == steps:
                batches.give_back(batches.count - count)
            raise
        return len(taken)

    def _step(self, batches: list[Batch]) -> None:
        before = self._values() if self.nan == "explain" else None
        results = self._computed(batches)
        losses = [loss.item() for loss, _ in results]
        self.steps += 1
        if self.nan != "ignore":
            self._require_finite(losses, batches, before)
        for batch, value, (_, output) in zip(batches, losses, results, strict=True):
            self._loss.update(value, weight=batch.size)
            for metric in self.metrics.values():
                metric.update(output, batch.target)
        samples = sum(batch.size for batch in batches)
        self._step_loss = sum(loss * b.size for loss, b in zip(losses, batches, strict=True)) / max(samples, 1)
        rate = float(self.optimizer.param_groups[0]["lr"])
        if self.scheduler is not None and self.schedule_every == "step":
            self.scheduler.step()
        if self.callbacks:
            logs = {"loss": self._step_loss, "lr": rate}
            for callback in self.callbacks:
                callback.on_step_end(self, logs)

    def _computed(self, batches: list[Batch]) -> list[tuple[Any, Any]]:
        """Run the programs of a step, and return the loss and output of each batch."""
        functions = self._functions
        if self.accumulate == 1:
            return [functions.train(batches[0].inputs, batches[0].target)]
        samples = sum(batch.size for batch in batches)
        self.optimizer.zero_grad()
        results = [functions.backward(b.inputs, b.target, b.size / samples) for b in batches]
        functions.update()
        return results

    def _answer(self, interruption: Interruption) -> None:
        """Stop here if Ctrl-C was pressed."""
        if not interruption.is_made:
            return
        saved = [sentence for callback in self.callbacks if (sentence := callback.on_interrupt(self))]
        hint = (
            " ".join(saved)
            or "Nothing was saved, because no Checkpoint is among the callbacks; fit() continues in this process."
        )
        raise KeyboardInterrupt(f"[Trainer] stopped after step {self.steps}, in epoch {self.epochs + 1}. {hint}")

    # Figures ----------------------------------------------------------------------------------------------------------

    @ending_at_user
    def evaluate(self, data: Iterable[Any]) -> dict[str, Any]:
        """Return the loss and the metrics over all batches, in evaluation mode.

        Nothing changes, including the random numbers of the training run.
        """
        require_batches("evaluate", data)
        return self._evaluated(data, None)

    def _evaluated(self, data: Iterable[Any], interruption: Interruption | None) -> dict[str, Any]:
        mean, metrics = Mean(), {name: metric.fresh() for name, metric in self.metrics.items()}
        results = self._each(
            data, lambda batch: as_batch(self.split, batch), lambda b: self._functions.evaluate(b.inputs, b.target)
        )
        batch: Batch | None = None
        with contextlib.closing(results):
            for batch, (loss, output) in results:
                mean.update(loss, weight=batch.size)
                for metric in metrics.values():
                    metric.update(output, batch.target)
                if interruption is not None and interruption.is_made:
                    break
            if batch is None:
                raise ArgumentError(f"[evaluate] the data have no batches: {type(data).__name__} is empty.")
        if interruption is not None:
            self._answer(interruption)  # now that modes and random numbers are back
        return self._figures(mean, metrics)

    @ending_at_user
    def predict(self, data: Iterable[Any]) -> Any:
        """Return the model's outputs for all batches in evaluation mode, joined along the first axis.

        They are NumPy arrays in the structure of the output. Targets are dropped; batches can be only inputs.
        """
        require_batches("predict", data)
        return joined(
            output
            for _, output in self._each(
                data, lambda batch: as_inputs(self.split, batch), lambda b: self._functions.predict(b.inputs)
            )
        )

    def _each(
        self, data: Iterable[Any], split: Callable[[Any], Batch], compute: Callable[[Batch], Any]
    ) -> Generator[tuple[Batch, Any], None, None]:
        """Yield each batch with the result of ``compute`` in evaluation mode; restore modes and random numbers."""
        modes = [(module, module.training) for module in self.model.modules()]
        random = get_rng_state()
        self.model.eval()
        try:
            for batch in map(split, data):
                yield batch, compute(batch)
        finally:
            for module, mode in modes:
                module.training = mode
            set_rng_state(random)

    def _figures(self, loss: Metric, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        return {"loss": loss.compute(), **{name: metric.compute() for name, metric in metrics.items()}}

    def _progress(self, title: str, data: Any) -> Progress | _NoProgress:
        return Progress(title, number_of(data)) if self.shows_progress else _NoProgress()

    def _note(self) -> str:
        return f"loss {self._step_loss:.4g}" if self.shows_progress else ""

    # NaN --------------------------------------------------------------------------------------------------------------

    def _require_finite(self, losses: list[float], batches: list[Batch], before: Any) -> None:
        is_fine = all(map(math.isfinite, losses))
        if is_fine and (before is None or not parameters_that_are_not(self.model)):
            return
        at = self._pass.count if self._pass is not None else 0
        where = f"step {self.steps} (epoch {self.epochs + 1}, batch {at})"
        self.steps -= 1
        if before is None:
            wrong = parameters_that_are_not(self.model)
            named = f" Since then not finite: {', '.join(wrong[:5])}{', …' if len(wrong) > 5 else ''}." if wrong else ""
            raise NonFiniteError(
                f"[Trainer] the loss is {next(x for x in losses if not math.isfinite(x))} in {where}.{named} Continue "
                "from a checkpoint with Trainer(nan='explain'), which names the op and the module that made it."
            )
        self._set_values(before)
        error = traced_back(batches, lambda: self._computed(batches), where)
        self._set_values(before)
        raise error

    def _values(self) -> dict[str, Any]:
        """Return the state that a step changes."""
        return snapshot(
            lambda: {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "random": get_rng_state(),
            }
        )

    def _set_values(self, values: Mapping[str, Any]) -> None:
        self.model.load_state_dict(values["model"])
        self.optimizer.load_state_dict(values["optimizer"])
        set_rng_state(values["random"])

    # Saving and loading -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return everything that determines the rest of the training run, for :func:`runnel.save`.

        It has the model, optimizer, schedule, random numbers, position in the data, metrics, history and callbacks.
        """
        return {
            "format": _FORMAT,
            **self._values(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "accumulate": self.accumulate,
            "epochs": self.epochs,
            "steps": self.steps,
            "stopped": self.stopped,
            "pass": self._pass.state_dict() if self._pass is not None else self._pass_state,
            "history": self.history,
            "loss": self._loss.state_dict(),
            "metrics": {name: metric.state_dict() for name, metric in self.metrics.items()},
            "callbacks": [[type(callback).__name__, callback.state_dict()] for callback in self.callbacks],
        }

    @ending_at_user
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a result of ``state_dict``, in a Trainer that was made the same way.

        Callbacks are matched by class and order; new ones start. StateError if the state does not fit; then the Trainer
        is unchanged.
        """
        self._require_fitting(state)
        before = self.state_dict()
        try:
            self._load(state)
        except Exception:
            self._load(before)
            raise

    def _load(self, state: Mapping[str, Any]) -> None:
        self._set_values(state)
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        self._loss.load_state_dict(state["loss"])
        for name, metric in self.metrics.items():
            metric.load_state_dict(state["metrics"][name])
        theirs = list(state["callbacks"])
        for callback in self.callbacks:
            entry = next((entry for entry in theirs if entry[0] == type(callback).__name__), None)
            if entry is not None:  # else it is new, and begins
                theirs.remove(entry)
                callback.load_state_dict(entry[1])
        self.epochs, self.steps, self.stopped = state["epochs"], state["steps"], state["stopped"]
        self.history = [dict(figures) for figures in state["history"]]
        self._pass, self._pass_state = None, state["pass"]

    def _require_fitting(self, state: Any) -> None:
        if not isinstance(state, Mapping) or state.keys() != self.state_dict().keys() or state["format"] != _FORMAT:
            raise _state_error("it is not a state of a Trainer of this version")
        ours = {
            "accumulate": self.accumulate,
            "scheduler": self.scheduler is not None,
            "metrics": list(self.metrics),
        }
        theirs = {
            "accumulate": state["accumulate"],
            "scheduler": state["scheduler"] is not None,
            "metrics": list(state["metrics"]),
        }
        for name, value in ours.items():
            if theirs[name] != value:
                raise _state_error(f"it has {name}={theirs[name]!r}, and this Trainer {value!r}")


class _NoProgress:
    """A progress bar that shows nothing."""

    done = 0

    def __enter__(self) -> _NoProgress:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def advance(self, steps: int = 1, note: str = "") -> None:
        pass


def _state_error(sentence: str) -> StateError:
    return StateError(f"[Trainer] the state does not fit: {sentence}. Nothing was loaded.")


def _require(name: str, value: Any, kind: type, optional: bool = False) -> None:
    if not isinstance(value, kind) and not (optional and value is None):
        raise ArgumentError(f"[Trainer] {name} must be an instance of {kind.__name__}; got {type(value).__name__}.")


def _require_own_parameters(optimizer: Optimizer, modules: list[Module]) -> None:
    own = {id(p) for module in modules for p in module.parameters()}
    if own and not any(id(p) in own for group in optimizer.param_groups for p in group["params"]):
        raise ArgumentError(
            "[Trainer] the optimizer has no Parameter of the model; make it with the parameters() of this model."
        )


def _require_one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError(f"[Trainer] {name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
