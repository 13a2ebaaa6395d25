"""The handwritten digits that scikit-learn carries: 1,797 images of 8×8 pixels (UCI, E. Alpaydin, C. Kaynak, 1998)."""

from __future__ import annotations

import numpy as np

from runnel.core.errors import RunnelError
from runnel.data.classification import Classification


def digits(test_share: float = 0.2, seed: int = 0) -> Classification:
    """The digits with pixels in [0, 1], split at random by ``seed``."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise RunnelError("The digits are a part of scikit-learn: pip install 'runnel[demo]'") from None
    bunch = load_digits()
    x = (bunch.data / 16).astype(np.float32)
    y = bunch.target.astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(y))
    test_count = round(len(y) * test_share)
    test, train = order[:test_count], order[test_count:]
    return Classification("digits", x[train], y[train], x[test], y[test])
