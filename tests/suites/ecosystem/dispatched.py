"""SciPy's and scikit-learn's functions on tensors beside the same on arrays: prints a line for each that differs.

A separate program, because both read ``SCIPY_ARRAY_API`` when they are imported.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

import runnel as rn

RNG = np.random.default_rng(7)
X = RNG.normal(size=(30, 4))
V, POSITIVE, SQUARE = X[:, 0].copy(), RNG.uniform(0.1, 0.9, 30), X.T @ X + np.eye(4)
CLASSES = (V > 0).astype(np.int64)


def of_scipy() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    from scipy import cluster, fft, integrate, ndimage, signal, special, stats

    for name in ("fft", "ifft", "rfft", "hfft", "fftshift", "dct"):
        yield f"fft.{name}", getattr(fft, name), (V,)
    for name in ("erf", "gammaln", "i0", "expit", "logit", "entr", "ndtr", "ndtri", "logsumexp", "softmax"):
        yield f"special.{name}", getattr(special, name), (POSITIVE,)
    yield "special.gammainc", special.gammainc, (POSITIVE, POSITIVE)
    for name in ("zscore", "skew", "kurtosis", "variation", "sem", "iqr", "rankdata", "kstat", "circmean"):
        yield f"stats.{name}", getattr(stats, name), (V,)
    yield "stats.ttest_1samp", lambda x: stats.ttest_1samp(x, 0.0).pvalue, (V,)
    yield "stats.pearsonr", lambda x, y: stats.pearsonr(x, y).statistic, (V, V**3)
    yield "cluster.kmeans2", lambda x: cluster.vq.kmeans2(x, x[:3])[0], (X,)
    yield "ndimage.gaussian_filter", lambda x: ndimage.gaussian_filter(x, 1.0), (X,)
    yield "signal.fftconvolve", signal.fftconvolve, (V, V)
    yield "signal.detrend", signal.detrend, (V,)
    yield "integrate.simpson", integrate.simpson, (V,)


def of_sklearn() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    from sklearn import decomposition, discriminant_analysis, linear_model, metrics, naive_bayes, preprocessing

    yield "PCA", lambda x: abs(decomposition.PCA(2, svd_solver="full").fit_transform(x)), (X,)
    yield "StandardScaler", preprocessing.StandardScaler().fit_transform, (X,)
    yield "MinMaxScaler", preprocessing.MinMaxScaler().fit_transform, (X,)
    yield "Ridge", lambda x, y: linear_model.Ridge(solver="svd").fit(x, y).predict(x), (X, V)
    lda = discriminant_analysis.LinearDiscriminantAnalysis
    yield "LinearDiscriminantAnalysis", lambda x, y: lda().fit(x, y).predict_proba(x), (X, CLASSES)
    yield "GaussianNB", lambda x, y: naive_bayes.GaussianNB().fit(x, y).predict_proba(x), (X, CLASSES)
    yield "r2_score", metrics.r2_score, (V, V * 1.1)
    yield "confusion_matrix", metrics.confusion_matrix, (CLASSES, 1 - CLASSES)
    yield "euclidean_distances", metrics.pairwise.euclidean_distances, (X,)


def difference(function: Callable[..., Any], arrays: tuple[Any, ...], dispatched: Any) -> str | None:
    expected = function(*arrays)
    try:
        with dispatched:
            result = function(*map(rn.asarray, arrays))
        np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=1e-6, atol=1e-9)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if isinstance(result, (rn.Tensor, float)) else f"a {type(result).__name__} came back"


def main(library: str) -> None:
    warnings.simplefilter("ignore")
    sklearn = importlib.import_module("sklearn") if library == "sklearn" else None
    count = 0
    for name, function, arrays in of_scipy() if sklearn is None else of_sklearn():
        count += 1
        dispatched = nullcontext() if sklearn is None else sklearn.config_context(array_api_dispatch=True)
        message = difference(function, arrays, dispatched)
        if message is not None:
            print(f"{name}: {message}")
    print(f"{count} done")


if __name__ == "__main__":
    main(sys.argv[1])
