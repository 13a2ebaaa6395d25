"""Trainings: their numbers beside a loop by hand, accumulation, clipping, evaluation, and what is refused."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim, train
from runnel.core.errors import ArgumentError, NonFiniteError, StateError
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
def test_accumulated_gradients_are_those_of_the_large_batch(batch: int) -> None:
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
    with pytest.raises(ArgumentError, match=r"\[predict\] the data give no batches"):
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
    assert re.fullmatch(r"loss has not got better than [\d.e+-]+ for 2 epochs", ours.stopped)
    before = len(ours.history)
    ours.fit([arrays()], epochs=40)  # it is over
    assert len(ours.history) == before


def test_a_figure_that_is_not_there_is_named() -> None:
    with pytest.raises(
        ArgumentError, match=r"no figure 'val_loss' to watch; there are loss, .*Pass validation= to fit"
    ):
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
    with pytest.raises(NonFiniteError, match=r"\[Trainer\] input\[0\] of step 2 .* holds a NaN or an infinity"):
        ours.fit([(x, y), (x * np.float32("nan"), y)])  # the first batch has been


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"nan": "maybe"}, r"\[Trainer\] nan is one of 'stop', 'explain', 'ignore'; received 'maybe'"),
        ({"accumulate": 0}, r"\[Trainer\] accumulate is 1 or more; received 0"),
        ({"clip_norm": -1.0}, r"\[Trainer\] clip_norm is more than 0; received -1.0"),
        ({"metrics": ["acuracy"]}, r"\[Trainer\] a metric is a Metric, or one of accuracy, .*received 'acuracy'"),
        ({"metrics": ["f1", train.F1("micro")]}, r"two metrics are called 'f1'; pass a dict"),
        ({"callbacks": [print]}, r"\[Trainer\] each of callbacks is of Callback; received builtin_function"),
    ],
)
def test_arguments_that_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        trainer(**options)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (iter([]), r"\[fit\] goes through the batches once an epoch, and a list_iterator"),
        (np.zeros((3, 4)), r"\[fit\] takes batches, .* received ndarray.*DataLoader\(TensorDataset\(x, y\)"),
        ([], r"\[fit\] the data give no batches: list is empty"),
        ([np.zeros((3, 4))], r"\[Trainer\] a batch is \(input, target\).*received a ndarray. Pass split="),
    ],
)
def test_data_that_are_refused(data: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        trainer().fit(data)


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


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_trains_a_model_of_its_own(copied: Any) -> None:
    original = trainer()
    original.fit(loader(), 1)
    random = rn.get_rng_state()
    other = copied(original)
    before = described(original.state_dict())
    other.fit(loader(), 2)
    rn.set_rng_state(random)
    assert described(original.state_dict()) == before, "the original has not been trained"
    original.fit(loader(), 2)
    assert described(original.model.state_dict()) == described(other.model.state_dict())
