"""compile, fit, evaluate and predict: beside a loop by hand, with Keras' callbacks."""

from __future__ import annotations

import copy
import csv
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import runnel as rn
import runnel.compat.keras as keras
from runnel import optim
from runnel.compat.keras import callbacks as C, layers as L
from runnel.core.errors import ArgumentError


def samples(seed: int = 0, count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64)


def sequential(**options: Any) -> keras.Sequential:
    rn.manual_seed(3)
    model = keras.Sequential([keras.Input((4,)), L.Dense(8, activation="tanh"), L.Dense(2, activation="softmax")])
    model.compile(**{"optimizer": "sgd", "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"], **options})
    return model


def test_fit_is_the_loop_by_hand() -> None:
    x, y = samples()
    model, twin = sequential(), sequential()
    history = model.fit(x, y, batch_size=25, epochs=3, shuffle=False, verbose=0).history
    optimizer = optim.SGD(twin.trainable_weights, lr=0.01)
    losses = []
    for _ in range(3):
        total = 0.0
        for i in range(0, 60, 25):
            part = slice(i, i + 25)
            optimizer.zero_grad()
            p = twin(rn.asarray(x[part]))
            loss = -rn.log(p)[np.arange(p.shape[0]), y[part]].mean()
            loss.backward()
            optimizer.step()
            total += loss.item() * p.shape[0]
        losses.append(total / 60)
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-5)
    for ours, theirs in zip(model.get_weights(), twin.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    loss, accuracy = model.evaluate(x, y)
    predicted = model.predict(x, batch_size=7)
    np.testing.assert_allclose(loss, -np.log(predicted[np.arange(60), y]).mean(), rtol=1e-5)
    assert accuracy == (predicted.argmax(1) == y).mean()


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw", "rmsprop", "adagrad"])
@pytest.mark.parametrize(
    ("loss", "activation"),
    [("categorical_crossentropy", "softmax"), ("binary_crossentropy", "sigmoid"), ("mse", None), ("huber", None)],
)
def test_losses_and_optimizers_by_name(loss: str, activation: str | None, optimizer: str) -> None:
    x, y = samples()
    model = keras.Sequential([L.Dense(2, activation=activation)])
    model.compile(optimizer, loss, metrics=["accuracy"] if activation else ["mae"])
    model.fit(x, np.eye(2, dtype=np.float32)[y], epochs=4, verbose=0)
    history = model.fit(x, np.eye(2, dtype=np.float32)[y], epochs=4, verbose=0)
    assert history.epoch == [0, 1, 2, 3] and history.history["loss"][-1] < history.history["loss"][0]


def test_graphs_of_layers_with_several_inputs() -> None:
    a, b = keras.Input((4,)), keras.Input((4,))
    shared = L.Dense(3, activation="relu")
    joined = L.Concatenate()([shared(a), shared(b), L.Multiply()([a, b])])
    model = keras.Model([a, b], L.Dense(1, activation="sigmoid")(joined))
    assert len(model.layers) == 4 and model.count_params() == 15 + 11
    model.compile("adam", "binary_crossentropy", ["accuracy", "auc", "precision"])
    x, y = samples()
    history = model.fit([x, x[::-1].copy()], y, epochs=2, verbose=0, validation_split=0.25)
    assert set(history.history) >= {"loss", "auc", "val_auc", "val_precision"}
    one, two, product = shared(rn.asarray(x)), shared(rn.asarray(x[::-1].copy())), x * x[::-1]
    z = np.concatenate([one.numpy(), two.numpy(), product], 1) @ model.layers[-1].kernel.numpy()
    expected = 1 / (1 + np.exp(-(z + model.layers[-1].bias.numpy())))
    np.testing.assert_allclose(model.predict([x, x[::-1].copy()]), expected, rtol=1e-4, atol=1e-6)


def test_custom_models() -> None:
    class Own(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = L.Dense(6, activation="relu"), L.Dense(2)

        def call(self, inputs: Any) -> Any:
            return self.second(self.first(inputs))

    x, y = samples()
    model = Own()
    model.compile(
        keras.optimizers.Adam(0.05), keras.losses.SparseCategoricalCrossentropy(from_logits=True), ["accuracy"]
    )
    assert model.fit(x, y, epochs=15, verbose=0).history["accuracy"][-1] > 0.9


class Figures(C.Callback):
    """Gives ``val_loss`` the values of a list."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs["val_loss"] = self.values[epoch]


def test_stopping_and_saving_the_best(tmp_path: Path) -> None:
    x, y = samples()
    model = sequential()
    weights: list[Any] = []
    remember = type(
        "Remember", (C.Callback,), {"on_epoch_end": lambda s, e, logs=None: weights.append(s.model.get_weights())}
    )
    stop = C.EarlyStopping(patience=2, restore_best_weights=True)
    best = C.ModelCheckpoint(tmp_path / "at-{epoch}-{val_loss:.1f}", save_best_only=True)
    history = model.fit(x, y, epochs=9, verbose=0, callbacks=[Figures(5, 3, 4, 4.5, 1), remember(), stop, best])
    assert len(history.epoch) == 4 and stop.stopped_epoch == 3
    assert all((a == b).all() for a, b in zip(model.get_weights(), weights[1], strict=True))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["at-1-5.0", "at-2-3.0"]
    other = sequential()
    other.load_weights(tmp_path / "at-2-3.0")
    assert all((a == b).all() for a, b in zip(other.get_weights(), weights[1], strict=True))


def test_rates() -> None:
    x, y = samples()
    model = sequential()
    scheduler = C.LearningRateScheduler(lambda epoch, rate: 0.1 / (epoch + 1))
    rates = model.fit(x, y, epochs=3, verbose=0, callbacks=[scheduler]).history["learning_rate"]
    assert rates == pytest.approx([0.1, 0.05, 0.1 / 3])
    model = sequential()
    plateau = C.ReduceLROnPlateau(factor=0.5, patience=2)
    model.fit(x, y, epochs=5, verbose=0, callbacks=[Figures(3, 2, 2, 2, 2), plateau])
    assert model.optimizer.learning_rate == pytest.approx(0.005)


def test_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = samples()
    model = sequential()
    history = model.fit(
        x,
        y,
        epochs=2,
        validation_data=(x, y),
        callbacks=[C.CSVLogger(tmp_path / "log.csv"), C.TensorBoard(tmp_path / "tb")],
    )
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["val_loss"]) for row in rows] == history.history["val_loss"]
    assert sorted(path.name for path in (tmp_path / "tb").iterdir()) == ["train", "validation"]
    assert capsys.readouterr().out.startswith("Epoch 1/2 - loss: ")
    model.summary()
    assert "Dense" in capsys.readouterr().out


def test_layers_that_are_not_trainable_stay() -> None:
    x, y = samples()
    inner = keras.Sequential([L.Dense(4, activation="relu"), L.BatchNormalization()])
    model = keras.Sequential([keras.Input(x.shape[1:]), inner, L.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for frozen in (True, False):
        inner.trainable = not frozen
        assert inner.layers[0].trainable is not frozen
        model.compile("sgd", loss)
        before = [layer.get_weights() for layer in (inner, model.layers[1])]
        model.fit(x, y, verbose=0)
        after = [layer.get_weights() for layer in (inner, model.layers[1])]
        assert [np.array_equal(a, b) for a, b in zip(before[0], after[0], strict=True)] == [frozen] * 6
        assert not any(np.array_equal(a, b) for a, b in zip(before[1], after[1], strict=True))

    class Fixed(L.Layer):
        def build(self, input_shape: Any) -> None:
            self.scale = self.add_weight((1,), "ones", "scale", trainable=False)

    layer = Fixed()
    layer.ensure_built((None, 2))
    layer.trainable = True
    assert layer.trainable_weights == []


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_of_a_model_is_a_separate_model(copied: Callable[[Any], Any]) -> None:
    x, y = samples()
    model = sequential()
    model.fit(x, y, verbose=0)
    expected, weights = model.predict(x), model.get_weights()
    twin = copied(model)
    assert np.array_equal(twin.predict(x), expected)
    twin.fit(x, y, verbose=0)
    assert not np.array_equal(twin.predict(x), expected)
    assert np.array_equal(model.predict(x), expected)
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), weights, strict=True))


def test_fit_starts_at_the_first_batch_after_a_failure() -> None:
    x, y = samples()

    class Fails(C.Callback):
        batches: ClassVar[list[int]] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.batches.append(batch)
            if len(self.batches) == 3:
                raise OSError("disk gone")

    model, fails = sequential(), Fails()
    with pytest.raises(OSError, match="disk gone"):
        model.fit(x, y, batch_size=10, verbose=0, callbacks=[fails])
    weights = model.get_weights()
    history = model.fit(x[:20], y[:20], batch_size=10, epochs=2, verbose=0, callbacks=[fails])
    assert fails.batches == [0, 1, 2, 0, 1, 0, 1]
    assert not any(np.array_equal(a, b) for a, b in zip(model.get_weights(), weights, strict=True))
    assert len(history.epoch) == 2 and np.isfinite(history.history["loss"]).all()


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda m, x, y: m.fit(x[:0], y[:0], verbose=0), r"there are no samples|the data have no batches"),
        (lambda m, x, y: m.compile("sgdd", "mse"), r"\[compile\] optimizer must be one of .*got 'sgdd'"),
        (lambda m, x, y: m.compile("sgd", "mses"), r"\[compile\] there is no loss 'mses'; there are sparse_"),
        (lambda m, x, y: m.compile("sgd", "mse", ["acuracy"]), r"\[compile\] there is no metric 'acuracy'"),
        (lambda m, x, y: keras.Sequential([L.Dense(1)]).fit(x, y), r"\[Model\] call compile\(optimizer, loss\) first"),
        (lambda m, x, y: m.fit(x, y[:-1]), r"\[fit\] x and y must have the same number of samples; got \[59, 60\]"),
        (lambda m, x, y: m.fit(x, y, callbacks=[C.EarlyStopping()], verbose=0), r"got 'val_loss'"),
    ],
)
def test_refusals(attempt: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        attempt(sequential(), *samples())
