"""Trainings: their numbers beside a loop by hand, accumulation, clipping, evaluation, and what is refused."""

from __future__ import annotations

import collections
import copy
import pickle
import re
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim, train
from runnel.core.errors import ArgumentError, AxisError, NonFiniteError, StateError
from runnel.core.pytree import flatten
from tests.train.trainings import SAMPLES, arrays, described, loader, model, trainer


def test_a_training_is_the_loop_by_hand() -> None:
    ours = trainer(metrics=["accuracy"])
    history = ours.fit(loader(), epochs=3)

    rn.manual_seed(1)
    network = model()
    optimizer = optim.Adam(network.parameters(), lr=0.02)
    schedule = optim.StepLR(optimizer, step_size=2, gamma=0.7)
    for epoch in range(3):
        right, total = 0, 0.0
        for x, y in loader():
            optimizer.zero_grad()
            output = network(x)
            loss = nn.functional.cross_entropy(output, y)
            loss.backward()
            optimizer.step()
            right += int((output.numpy().argmax(1) == y.numpy()).sum())
            total += len(y) * loss.item()
        assert history[epoch]["accuracy"] == right / SAMPLES
        assert history[epoch]["loss"] == pytest.approx(total / SAMPLES, rel=1e-12)
        schedule.step()
    assert described(ours.model.state_dict()) == described(network.state_dict())
    assert [figures["lr"] for figures in history] == [0.02, 0.02, pytest.approx(0.014)]
    assert (ours.epochs, ours.steps) == (3, 15)


def test_a_step_is_one_program() -> None:
    ours = trainer(clip_norm=1.0)
    others = ours._functions.train.executables()  # of trainers that other tests made: all run the same code
    ours.fit([arrays(count=16)], epochs=3)
    assert len([e for e in ours._functions.train.executables() if not any(e is other for other in others)]) == 1


def test_the_bits_do_not_depend_on_compilation() -> None:
    compiled = trainer(clip_value=0.01)
    compiled.fit(loader(), 2, loader())
    eager = trainer(clip_value=0.01, compile=False)
    eager.fit(loader(), 2, loader())
    assert described(compiled.state_dict()) == described(eager.state_dict())


@pytest.mark.parametrize("batch", [16, 23])
def test_accumulated_gradients_equal_the_ones_of_the_large_batch(batch: int) -> None:
    x, y = arrays()
    results = []
    for batches, accumulate in (
        ([(x, y)], 1),
        ([(x[i : i + batch], y[i : i + batch]) for i in range(0, SAMPLES, batch)], -(-SAMPLES // batch)),
    ):
        network = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 2)).double()
        for i, p in enumerate(network.parameters()):
            p.assign(np.random.default_rng(i).standard_normal(p.shape))
        optimizer = optim.SGD(network.parameters(), lr=0.5)
        ours = train.Trainer(
            network, nn.CrossEntropyLoss(), optimizer, accumulate=accumulate, clip_norm=0.1, progress=False
        )
        losses = [h["loss"] for h in ours.fit([(a.astype(np.float64), b) for a, b in batches], epochs=4)]
        assert ours.steps == 4
        results.append((losses, [p.numpy() for p in network.parameters()]))
    (losses, weights), (theirs, their_weights) = results
    np.testing.assert_allclose(losses, theirs, rtol=1e-12)
    for w, v in zip(weights, their_weights, strict=True):
        np.testing.assert_allclose(w, v, rtol=1e-10, atol=1e-12)


def test_evaluation_changes_nothing() -> None:
    one = trainer()
    one.model[3].eval()
    one.evaluate(loader())
    assert [module.training for module in one.model.modules()] == [True, True, True, True, False, True]
    one.model.train()
    one.fit(loader(), epochs=2)
    other = trainer()
    for _ in range(2):
        other.evaluate(loader())
        other.fit(loader(), epochs=other.epochs + 1)
        other.predict(loader())
    assert described(one.state_dict()) == described(other.state_dict())
    figures = one.evaluate([arrays()])
    one.model.eval()
    x, y = arrays()
    assert figures["accuracy"] == (one.model(rn.asarray(x)).numpy().argmax(1) == y).mean()


def test_predictions_are_joined_in_order() -> None:
    ours, (x, y) = trainer(), arrays()
    ours.model.eval()
    expected = ours.model(rn.asarray(x)).numpy()
    ours.model.train()
    for data in ([(x[:50], y[:50]), (x[50:], y[50:])], [x[:1], x[1:]], [(x,)]):
        np.testing.assert_allclose(ours.predict(data), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ArgumentError, match=r"\[predict\] the data have no batches"):
        ours.predict([])


def test_batches_of_several_inputs_and_of_dicts() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            self.linear = nn.Linear(4, 2)

        def forward(self, a: Any, b: Any) -> Any:
            return self.linear(a + b)

    x, y = arrays()
    several, named = (
        train.Trainer(n := Sum(), nn.CrossEntropyLoss(), optim.SGD(n.parameters()), split=split, progress=False)
        for split in (train.batches.pair, lambda batch: ((batch["a"], batch["b"]), batch["y"]))
    )
    named.model.load_state_dict(several.model.state_dict())
    assert several.fit([(x, x, y)]) == named.fit([{"a": x, "b": x, "y": y}])


def test_schedules_by_steps_and_by_figures() -> None:
    by_step = trainer(schedule_every="step")
    by_step.fit(loader(), epochs=1)
    assert by_step.scheduler is not None and by_step.scheduler.last_epoch == 5
    network = model()
    optimizer = optim.SGD(network.parameters(), lr=1.0)
    plateau = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=10.0, threshold_mode="abs")
    ours = train.Trainer(network, nn.CrossEntropyLoss(), optimizer, scheduler=plateau, progress=False)
    history = ours.fit(loader(), epochs=3, validation=loader())
    assert [figures["lr"] for figures in history] == pytest.approx([1.0, 1.0, 0.1])
    assert plateau.best == history[0]["val_loss"]


def test_early_stopping_gives_the_best_model_back() -> None:
    stopping = train.EarlyStopping("loss", patience=2, restore_best=True)
    ours = trainer(callbacks=[stopping], network=nn.Sequential(nn.Linear(4, 2)))
    ours.optimizer.param_groups[0]["lr"] = 30.0  # it gets worse
    ours.fit([arrays()], epochs=30)
    losses = [figures["loss"] for figures in ours.history]
    best = int(np.argmin(losses))
    assert len(losses) == best + 3 < 30
    assert re.fullmatch(r"loss has not improved on [\d.e+-]+ for 2 epochs", ours.stopped)
    before = len(ours.history)
    ours.fit([arrays()], epochs=40)  # it is over
    assert len(ours.history) == before


def test_a_missing_figure_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"monitor must be one of loss, .*Pass validation= to fit"):
        trainer(callbacks=[train.EarlyStopping()]).fit(loader())


class Diverging(nn.Module):
    """The second batch makes the logarithm of 0 in ``inner``."""

    def __init__(self) -> None:
        self.inner = nn.Sequential(nn.Linear(4, 4), Logarithm())
        self.outer = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.outer(self.inner(x))


class Logarithm(nn.Module):
    def forward(self, x: Any) -> Any:
        return rn.log(rn.abs(x) * 0 + rn.where(x > 1e6, 0.0, 1.0))


def diverging(**options: Any) -> tuple[train.Trainer, list[Any]]:
    network = Diverging()
    ours = train.Trainer(network, nn.CrossEntropyLoss(), optim.Adam(network.parameters()), progress=False, **options)
    x, y = arrays(count=16)
    return ours, [(x, y), (x * 1e9, y)]


def test_a_loss_that_is_not_finite_stops() -> None:
    ours, batches = diverging()
    with pytest.raises(NonFiniteError, match=r"the loss is (nan|inf) in step 2 \(epoch 1, batch 2\).*nan='explain'"):
        ours.fit(batches)
    assert ours.steps == 1
    ours, batches = diverging(nan="ignore")
    assert not np.isfinite(ours.fit(batches)[0]["loss"])


def test_the_op_and_the_module_that_made_a_nan_are_named() -> None:
    ours, batches = diverging(nan="explain")
    with pytest.raises(NonFiniteError, match=r"\[log\] made a NaN or infinity.*That was in step 2 \(epoch 1") as caught:
        ours.fit(batches)
    assert "inner.1 (Logarithm)" in caught.value.__notes__[0]
    assert np.isfinite(ours.model.outer.weight.numpy()).all() and ours.steps == 1
    x, y = arrays(count=16)
    with pytest.raises(NonFiniteError, match=r"\[Trainer\] input\[0\] of step 2 .* contains a NaN or an infinity"):
        ours.fit([(x, y), (x * np.float32("nan"), y)])  # the first batch has been


class Pair(NamedTuple):
    first: Any
    second: Any


class Forked(nn.Module):
    """Gives its output in some structure."""

    def __init__(self, wrap: Any) -> None:
        super().__init__()
        self.inner, self.wrap = nn.Linear(4, 2), wrap

    def forward(self, pair: Any) -> Any:
        return self.wrap(self.inner(pair.first))


def mean_square(output: Any, target: Any) -> rn.Tensor:
    return (flatten(output)[0][0] ** 2).mean()


class Kinds(train.Metric):
    name = "kinds"

    def initial(self) -> dict[str, np.ndarray]:
        return {}

    def update(self, output: Any, target: Any) -> Any:
        self.kind = type(output)
        return self

    def compute(self) -> Any:
        return self.kind.__name__


@pytest.mark.parametrize(
    "wrap",
    [lambda y: (y, None), lambda y: Pair(y, 3), lambda y: {"y": [y]}, lambda y: collections.OrderedDict(y=y)],
)
def test_structures_of_inputs_and_outputs_stay(wrap: Any) -> None:
    network = Forked(wrap)
    optimizer = optim.SGD(network.parameters())
    ours = train.Trainer(network, mean_square, optimizer, metrics=[Kinds()], progress=False)
    x, y = arrays(count=10)
    batches = [(Pair(x[:6], x[:6]), y[:6]), (Pair(x[6:], x[6:]), y[6:])]
    kind = type(wrap(rn.zeros(1)))
    assert ours.fit(batches)[-1]["kinds"] == ours.evaluate(batches)["kinds"] == kind.__name__
    predicted = ours.predict(batches)
    (joined, *others), structure = flatten(predicted)
    assert joined.shape == (10, 2) and structure == flatten(wrap(x))[1]
    assert all(other is None or other.tolist() == [3, 3] for other in others)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_trains_its_own_model(how: Any) -> None:
    """In the middle of an epoch, too."""
    whole = trainer()
    whole.fit(loader(rn.Generator(3)), 2)
    ours = trainer()

    class Stops(train.Callback):
        def on_step_end(self, trainer: Any, logs: Any) -> None:
            if trainer.steps == 3:
                trainer.stop("enough")

    ours.callbacks.append(Stops())
    source = loader(rn.Generator(3))
    ours.fit(source, 2)
    ours.callbacks.clear()
    twin = how(ours)
    before = described(ours.model.state_dict())
    twin.stopped = ""
    twin.fit(loader(rn.Generator(5)), 2)
    assert described(ours.model.state_dict()) == before
    assert described(twin.model.state_dict()) == described(whole.model.state_dict())
    assert twin.history == whole.history


@pytest.mark.parametrize("accumulate", [1, 2])
def test_batches_of_a_failed_step_are_repeated(accumulate: int) -> None:
    """In the data, in the function that splits a batch, or in the step itself."""
    x, y = arrays(count=48)
    batches = [(x[at : at + 8], y[at : at + 8]) for at in range(0, 48, 8)]
    whole = trainer(accumulate=accumulate)
    whole.fit(batches, 2)

    class Fails(list):  # type: ignore[type-arg]
        reasons: ClassVar[list[str]] = ["data", "split", "step"][: 3 if accumulate == 1 else 2]

        def __iter__(self) -> Any:
            for i, batch in enumerate(super().__iter__()):
                if i == 3 and self.reasons:
                    reason = self.reasons.pop()
                    if reason == "data":
                        raise OSError("disk gone")
                    yield batch[:1] if reason == "split" else (batch[0], batch[1] + 2)
                else:
                    yield batch

    ours, source = trainer(accumulate=accumulate), Fails(batches)
    while Fails.reasons:
        with pytest.raises((OSError, ArgumentError, AxisError)):
            ours.fit(source, 2)
    ours.fit(source, 2)
    assert described(ours.state_dict()) == described(whole.state_dict())


def test_data_may_write_each_batch_into_the_same_arrays() -> None:
    x, y = arrays(count=40)

    class Reused:
        def __iter__(self) -> Any:
            xs, ys = np.empty((10, 4), np.float32), np.empty(10, np.int64)
            for at in range(0, 40, 10):
                xs[...], ys[...] = x[at : at + 10], y[at : at + 10]
                yield xs, ys

    for accumulate in (1, 3):
        ours = trainer(accumulate=accumulate)
        ours.fit(Reused())
        expected = trainer(accumulate=accumulate)
        expected.fit([(x[at : at + 10], y[at : at + 10]) for at in range(0, 40, 10)])
        assert described(ours.state_dict()) == described(expected.state_dict())


def test_an_empty_batch_counts_nothing_in_an_evaluation() -> None:
    x, y = arrays(count=10)
    ours = trainer()
    assert ours.evaluate([(x, y), (x[:0], y[:0])]) == ours.evaluate([(x, y)])
    with pytest.raises(ArgumentError, match=r"\[evaluate\] the data have no batches: list is empty"):
        ours.evaluate([])


def test_fit_inside_fit_is_refused() -> None:
    class Again(train.Callback):
        def on_step_end(self, trainer: Any, logs: Any) -> None:
            trainer.fit(loader())

    ours = trainer(callbacks=[Again()])
    with pytest.raises(StateError, match=r"\[fit\] this Trainer is already fitting"):
        ours.fit(loader())
    ours.callbacks.clear()
    assert len(ours.fit(loader(), 1)) == 1


@pytest.mark.parametrize("epochs", [-1, 1.5, "3", True])
def test_numbers_of_epochs_that_are_refused(epochs: Any) -> None:
    with pytest.raises(ArgumentError, match=r"\[fit\] epochs must be an int of 0 or more; got"):
        trainer().fit(loader(), epochs)


def test_an_optimizer_of_another_model_is_refused() -> None:
    with pytest.raises(ArgumentError, match="the optimizer has no Parameter of the model"):
        train.Trainer(nn.Linear(2, 2), nn.MSELoss(), optim.SGD(nn.Linear(2, 2).parameters()))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"metrics": {"loss": "accuracy"}}, r"\[Trainer\] no metric can be called 'loss'; pass a dict"),
        ({"metrics": {"val_f1": "f1"}}, r"no metric can be called 'val_f1'"),
        ({"callbacks": train.EarlyStopping()}, r"callbacks must be a list of Callbacks; got EarlyStopping"),
        ({"split": lambda batch: None}, r"\[Trainer\] split must return \(inputs, target\); got None"),
        ({"nan": "maybe"}, r"\[Trainer\] nan must be one of 'stop', 'explain', 'ignore'; got 'maybe'"),
        ({"accumulate": 0}, r"\[Trainer\] accumulate must be 1 or more; got 0"),
        ({"clip_norm": -1.0}, r"\[Trainer\] clip_norm must be more than 0; got -1.0"),
        ({"metrics": ["acuracy"]}, r"\[Trainer\] a metric must be a Metric, or one of accuracy, .*got 'acuracy'"),
        ({"metrics": ["f1", train.F1("micro")]}, r"two metrics are called 'f1'; pass a dict"),
        (
            {"callbacks": [print]},
            r"\[Trainer\] each of callbacks must be an instance of Callback; got builtin_function",
        ),
    ],
)
def test_arguments_that_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        trainer(**options).fit(loader())


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (iter([]), r"\[fit\] iterates over the batches once per epoch, and a list_iterator"),
        (np.zeros((3, 4)), r"\[fit\] takes batches, .* got ndarray.*DataLoader\(TensorDataset\(x, y\)"),
        ([], r"\[fit\] the data have no batches: list is empty"),
        (
            [np.zeros((3, 4))],
            r"\[Trainer\] a batch must be \(input, target\).*an array of shape \(3, 4\).*TensorDataset\(x, y\)",
        ),
        ((rn.ones(9, 2), rn.ones(9)), r"got an array of shape \(9, 2\).*TensorDataset\(x, y\)"),
        ([{"x": np.zeros((3, 4))}], r"got a dict. Pass split="),
    ],
)
def test_data_that_are_refused(data: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        trainer().fit(data)


@pytest.mark.parametrize("options", [{}, {"accumulate": 2}, {"compile": False}])
def test_a_loss_of_each_sample_is_refused(options: dict[str, Any]) -> None:
    model = nn.Linear(2, 2)
    ours = train.Trainer(
        model, nn.CrossEntropyLoss(reduction="none"), optim.SGD(model.parameters()), progress=False, **options
    )
    with pytest.raises(
        ArgumentError, match=r"\[Trainer\] loss must return one number for a batch; .* shape \(4,\).*'mean'"
    ):
        ours.fit([(rn.ones(4, 2), rn.zeros(4, dtype=rn.int64))])


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    ours = trainer()
    ours.fit(loader())
    state, before = trainer(accumulate=2).state_dict(), described(ours.state_dict())
    with pytest.raises(StateError, match=r"it has accumulate=2, and this Trainer 1. Nothing was loaded"):
        ours.load_state_dict(state)
    broken = {**ours.state_dict(), "optimizer": {}}
    with pytest.raises(StateError):
        ours.load_state_dict(broken)
    assert described(ours.state_dict()) == before
