"""Labels that are no class: an error, eager and compiled, and nothing is changed."""

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops, optim
from runnel.core.errors import AxisError


def batch(*labels):
    x = rn.asarray(np.random.default_rng(0).standard_normal((len(labels), 4)).astype(np.float32))
    return x, rn.asarray(np.array(labels))


@pytest.mark.parametrize("loss", [ops.cross_entropy, ops.nll_loss])
@pytest.mark.parametrize("wrong", [3, -1, -100])
def test_eager(loss, wrong):
    x, y = batch(0, 1, 2, wrong)
    x = x[:, :3]
    if wrong == -100:
        assert np.isfinite(loss(x, y).item())
    else:
        with pytest.raises(AxisError, match=rf"1 of 4 .* outside \[0, 3\).*{wrong}"):
            loss(x, y)


def test_compiled_step_changes_nothing():
    model = nn.Linear(4, 3)
    optimizer = optim.SGD(model.parameters(), 0.1)

    @rn.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = ops.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = batch(0, 1, 2, 2)
    step(x, y)
    before = [p.numpy().copy() for p in model.parameters()]
    with pytest.raises(AxisError, match=r"\[0, 3\)"):
        step(x, batch(0, 1, 2, 3)[1])
    assert all((b == p.numpy()).all() for b, p in zip(before, model.parameters(), strict=True))
    assert np.isfinite(step(x, y).item())
