"""Summaries of modules: shapes, numbers of Parameters and operations."""

from __future__ import annotations

from typing import Any

import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import ArgumentError, DTypeError, ShapeError
from tests.train.trainings import described


def test_shapes_parameters_and_operations_by_hand() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 10, bias=False))
    table = nn.summary(model, (2, 3, 8, 8))
    whole, conv, relu, flatten, linear = table.rows
    assert [row.output for row in table.rows] == ["(2, 10)", "(2, 8, 6, 6)", "(2, 8, 6, 6)", "(2, 288)", "(2, 10)"]
    assert [row.parameters for row in table.rows] == [224 + 2880, 224, 0, 0, 2880]
    assert linear.flops == 2 * 2 * 288 * 10
    products = 2 * (2 * 8 * 36) * 27
    assert conv.flops is not None and products < conv.flops <= products + 2 * 2 * 8 * 36
    assert (relu.flops, flatten.flops) == (2 * 8 * 36, 0)
    assert whole.flops == table.flops == sum(row.flops or 0 for row in table.rows[1:])
    assert (table.parameters, table.trainable, table.nbytes) == (3104, 3104, 4 * 3104)


def test_a_shared_module_has_one_row_and_counts_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.first = nn.Linear(4, 4)
            self.second = self.first
            self.unused = nn.Linear(4, 1)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x))

    model = Tied()
    model.unused.requires_grad_(False)
    table = model.summary((5, 4))
    assert [(row.path, row.calls, row.output) for row in table.rows] == [
        ("", 1, "(5, 4)"), ("first", 2, "(5, 4)"), ("unused", 0, "-"),
    ]  # fmt: skip
    assert table.rows[1].flops == table.flops == 2 * (2 * 5 * 16 + 5 * 4)
    assert (table.parameters, table.trainable) == (25, 20)
    assert "25 parameters, 5 of them not trained; 100 B" in str(table)


def test_nothing_of_the_model_changes() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5), nn.LSTM(4, 3))
    model[1].eval()
    state, random = described(model.state_dict()), rn.get_rng_state().tolist()
    modes, kinds = [m.training for m in model.modules()], [type(m) for m in model.modules()]
    table = nn.summary(model, (7, 4))
    assert table.rows[-1].output == "[(7, 3), [(1, 3), (1, 3)]]" and table.flops
    assert described(model.state_dict()) == state and rn.get_rng_state().tolist() == random
    assert [m.training for m in model.modules()] == modes and [type(m) for m in model.modules()] == kinds


def test_several_inputs_of_several_kinds() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            self.embedding = nn.Embedding(10, 4)

        def forward(self, labels: Any, x: Any) -> Any:
            return {"sum": self.embedding(labels) + x}

    table = nn.summary(Both(), rn.asarray([[1, 2]]), (1, 2, 4))
    assert [row.output for row in table.rows] == ["{sum: (1, 2, 4)}", "(1, 2, 4)"]


def test_a_model_that_asks_for_values_runs_on_some() -> None:
    class Asks(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2 if float(x.sum()) > -1e9 else x

    table = nn.summary(nn.Sequential(Asks()), (3,))
    assert table.rows[1].output == "(3,)" and table.flops is None


def test_a_table_without_inputs_and_of_few_levels() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.ReLU())
    text = str(nn.summary(model, depth=1))
    assert text.splitlines()[0].split() == ["module", "class", "output", "calls", "parameters", "bytes", "FLOPs"]
    assert "Linear" not in text and "ReLU" in text and text.splitlines()[-1] == "6 parameters; 24 B with buffers"
    assert "<td>Sequential</td>" in nn.summary(model)._repr_html_()


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match=r"\[summary\] an input must be a shape.*got 'x'"):
        nn.summary(nn.ReLU(), "x")
    with pytest.raises(ArgumentError, match=r"\[summary\] model must be a Module; got function"):
        nn.summary(lambda x: x, (1,))
    with pytest.raises(ShapeError):
        nn.summary(nn.Sequential(nn.Linear(3, 2)), (1, 4))
    assert not nn.Linear(3, 2)._forward_hooks


def test_a_shape_for_indices_is_answered_by_what_chooses_the_dtype() -> None:
    with pytest.raises(DTypeError) as caught:
        nn.summary(nn.Embedding(10, 4), (5, 2))
    assert "pass dtype=, such as 'int64'" in "".join(caught.value.__notes__)
    assert "(5, 2, 4)" in str(nn.summary(nn.Embedding(10, 4), (5, 2), dtype="int64"))
