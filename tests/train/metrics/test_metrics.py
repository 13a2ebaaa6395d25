"""Metrics over uneven batches, beside scikit-learn on all samples at once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import train
from runnel.core.errors import ArgumentError, ShapeError, StateError

sklearn = pytest.importorskip("sklearn.metrics")


def over_batches(metric: train.Metric, output: np.ndarray, target: np.ndarray, *ends: int) -> Any:
    """The value of a metric that sees the samples in batches up to ``ends``, saved and loaded between them."""
    for start, end in zip((0, *ends), (*ends, len(target)), strict=True):
        metric.update(rn.asarray(output[start:end]), rn.asarray(target[start:end]))
        state = metric.state_dict()
        metric = metric.fresh()
        metric.load_state_dict(state)
    return metric.compute()


def samples(seed: int, count: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    target = rng.integers(0, classes, count)
    return rng.standard_normal((count, classes)) + 1.5 * np.eye(classes)[target], target


AVERAGES = ("macro", "micro", "weighted", None)
CASES: list[tuple[str, Callable[[], train.Metric], Callable[..., Any]]] = [
    ("accuracy", train.Accuracy, lambda s, t: sklearn.accuracy_score(t, s.argmax(1))),
    ("top 2", lambda: train.TopK(2), lambda s, t: sklearn.top_k_accuracy_score(t, s, k=2)),
    ("confusion", train.ConfusionMatrix, lambda s, t: sklearn.confusion_matrix(t, s.argmax(1))),
    ("perplexity", train.Perplexity, lambda s, t: math.exp(sklearn.log_loss(t, softmax(s)))),
    ("auroc", train.AUROC, lambda s, t: np.mean([sklearn.roc_auc_score(t == c, s[:, c]) for c in range(s.shape[1])])),
    *(
        (
            f"{name} {average}",
            lambda kind=kind, average=average: kind(average),
            lambda s, t, score=score, average=average: score(t, s.argmax(1), average=average, zero_division=0),
        )
        for average in AVERAGES
        for name, kind, score in (
            ("precision", train.Precision, sklearn.precision_score),
            ("recall", train.Recall, sklearn.recall_score),
            ("f1", train.F1, sklearn.f1_score),
        )
    ),
]


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


@pytest.mark.parametrize(("metric", "truth"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_as_scikit_learn_over_uneven_batches(metric: Callable[[], train.Metric], truth: Callable[..., Any]) -> None:
    for seed, ends in enumerate(([1, 8, 90], [64], [])):
        scores, target = samples(seed, 100, 4)
        np.testing.assert_allclose(over_batches(metric(), scores, target, *ends), truth(scores, target), rtol=1e-12)


@pytest.mark.parametrize("average", ["binary", *AVERAGES])
def test_labels_that_are_absent_count_as_in_scikit_learn(average: str | None) -> None:
    target, predicted = np.array([0, 0, 1, 1, 1, 0]), np.array([0, 1, 1, 0, 1, 0])
    if average != "binary":
        target, predicted = 3 * target, 3 * predicted
        predicted[0] = 5
    for kind, score in ((train.Precision, sklearn.precision_score), (train.F1, sklearn.f1_score)):
        value = over_batches(kind(average), predicted, target, 2)
        if average is None:
            value = value[sorted({*target, *predicted})]
        np.testing.assert_allclose(value, score(target, predicted, average=average, zero_division=0), rtol=1e-12)


def test_areas_of_scores_with_ties() -> None:
    rng = np.random.default_rng(3)
    target, scores = rng.integers(0, 2, 300), rng.integers(0, 9, 300).astype(np.float32)
    np.testing.assert_allclose(
        over_batches(train.AUROC(), scores, target, 1, 250), sklearn.roc_auc_score(target, scores), rtol=1e-12
    )
    assert math.isnan(train.AUROC().update(scores[:3], np.ones(3, int)).compute())


@pytest.mark.parametrize(
    ("metric", "score"),
    [(train.MSE, "mean_squared_error"), (train.MAE, "mean_absolute_error"), (train.RMSE, "root_mean_squared_error")],
)
def test_errors_of_regression(metric: type[train.Metric], score: str) -> None:
    rng = np.random.default_rng(4)
    output, target = rng.standard_normal((2, 50, 3))
    value = over_batches(metric(), output, target, 7, 8)
    truth = (
        getattr(sklearn, score)(target.ravel(), output.ravel())
        if hasattr(sklearn, score)
        else math.sqrt(sklearn.mean_squared_error(target.ravel(), output.ravel()))
    )
    np.testing.assert_allclose(value, truth, rtol=1e-12)


def test_scores_of_positions_in_sequences() -> None:
    rng = np.random.default_rng(5)
    scores, target = rng.standard_normal((6, 9, 4)), rng.integers(0, 4, (6, 9))
    target[:, 7:] = -100
    flat, right = scores[:, :7].reshape(-1, 4), target[:, :7].ravel()
    accuracy = over_batches(train.Accuracy(axis=-1, ignore_index=-100), scores, target, 1)
    assert accuracy == pytest.approx(sklearn.accuracy_score(right, flat.argmax(1)), rel=1e-12)
    perplexity = over_batches(train.Perplexity(axis=-1, ignore_index=-100), scores, target, 5)
    assert perplexity == pytest.approx(math.exp(sklearn.log_loss(right, softmax(flat))), rel=1e-12)


def test_two_classes_by_a_threshold() -> None:
    logits, target = np.array([-2.0, 0.5, 3.0, -1.0]), np.array([0, 1, 0, 0])
    assert train.Accuracy().update(logits, target).compute() == 0.75
    assert train.Accuracy(threshold=0.5).update(1 / (1 + np.exp(-logits)), target).compute() == 0.75
    assert train.Accuracy().update(logits > 0, target.astype(np.float32)).compute() == 0.75


def test_means_are_weighted() -> None:
    mean = train.Mean()
    mean.update(rn.asarray(1.0), weight=3)
    mean.update(5.0)
    assert mean.compute() == 2.0
    mean.reset()
    assert math.isnan(mean.compute())


@pytest.mark.parametrize("kind", [train.Accuracy, train.F1, train.MSE, train.Perplexity, train.AUROC, train.TopK])
def test_without_samples_there_is_no_value(kind: type[train.Metric]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(kind().compute())


def test_errors_say_what_was_received() -> None:
    with pytest.raises(ShapeError, match=r"\[Accuracy\] output must have the shape of target.*\(3, 2\) and \(4,\)"):
        train.Accuracy().update(np.zeros((3, 2)), np.zeros(4, int))
    with pytest.raises(ShapeError, match=r"\[MSE\] output and target must have the same shape; got \(3, 1\) and \(3,"):
        train.MSE().update(np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(ArgumentError, match=r"\[Accuracy\] labels in target must.*float64"):
        train.Accuracy().update(np.zeros((2, 2)), np.array([0.5, 1.0]))
    with pytest.raises(ArgumentError, match=r"\[TopK\] labels must be in \[0, 2\); got 2"):
        train.TopK(1).update(np.zeros((1, 2)), np.array([2]))
    with pytest.raises(ArgumentError, match=r"\[F1\] average must be one of"):
        train.F1("mean")
    with pytest.raises(ArgumentError, match=r"\[Precision\] average='binary' needs labels 0 and 1"):
        train.Precision("binary").update(np.array([2]), np.array([2])).compute()
    with pytest.raises(StateError, match="the state of Accuracy has right, count"):
        train.Accuracy().load_state_dict({"right": 1})


EVERY = [
    kind
    for kind in (getattr(train, name) for name in train.__all__)
    if isinstance(kind, type) and issubclass(kind, train.Metric) and kind not in (train.Metric, train.Mean)
]
WITH_LABELS = [kind for kind in EVERY if kind not in (train.MSE, train.MAE, train.RMSE)]
NONSENSE: dict[str, tuple[Any, Any]] = {
    "scores without an axis of classes": (np.ones(3), np.int64(1)),
    "scores with too many axes": (np.ones((2, 2, 2)), np.ones(2, np.int64)),
    "no target": (np.ones((3, 2)), None),
    "texts": (np.ones(3), np.array(["a", "b", "c"])),
    "ragged lists": ([[1.0], [2.0, 3.0]], [0, 1]),
    "complex numbers": (np.ones((3, 2)) * 1j, np.ones(3, np.int64)),
    "other lengths": (np.ones((3, 2)), np.ones(2, np.int64)),
}


@pytest.mark.parametrize("what", NONSENSE)
@pytest.mark.parametrize("kind", EVERY)
def test_values_that_are_not_batches_are_reported_and_change_nothing(kind: type[train.Metric], what: str) -> None:
    metric = kind()
    with pytest.raises((ArgumentError, ShapeError), match=rf"^\[{kind.__name__}\] .*got"):
        metric.update(*NONSENSE[what])
    assert all(np.array_equal(x, y) for x, y in zip(metric.sums.values(), metric.initial().values(), strict=True))


@pytest.mark.parametrize("value", [0.5, math.nan, math.inf])
@pytest.mark.parametrize(
    ("kind", "axes"),
    [(kind, n) for kind in WITH_LABELS for n in (1, 2) if n == 2 or kind not in (train.TopK, train.Perplexity)],
)
def test_labels_are_whole_numbers(kind: type[train.Metric], value: float, axes: int) -> None:
    scores = np.linspace(0, 1, 3 * 2).reshape(3, 2) if axes == 2 else np.linspace(0, 1, 3)
    metric = kind()
    with pytest.raises(ArgumentError, match=rf"\[{kind.__name__}\] labels in target must be .*got {value}, in float64"):
        metric.update(scores, np.array([0.0, value, 1.0]))
    metric.update(scores, np.array([0.0, 1.0, 1.0]))
    assert np.isfinite(metric.compute()).all()
