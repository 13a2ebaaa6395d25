"""Layers that are rows: a function and the options that its layer stores."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

import runnel as rn
from runnel import nn
from runnel.nn.layer import layer


def scaled(x: Any, y: Any, factor: float, word: str = "a", training: bool = False) -> Any:
    """Compute a product."""
    return (x + y) * factor if training else x


scaled.__annotations__ |= {"x": "Array", "y": "Array"}
Scaled = layer("Scaled", scaled, "factor, word='b', inplace=False", doc="More.")
X = rn.ones((2,))


def test_a_row_has_the_signatures_and_the_text_of_its_function() -> None:
    assert list(inspect.signature(Scaled).parameters) == ["factor", "word", "inplace"]
    assert inspect.signature(Scaled).parameters["word"].default == "b"
    assert list(inspect.signature(Scaled.forward).parameters) == ["self", "x", "y"]
    assert Scaled.__doc__ == "Compute a product.\n\nWith ``inplace`` the input gets the values of the result.\n\nMore."


def test_a_row_stores_options_and_passes_the_mode() -> None:
    module = Scaled(3.0, inplace=True)
    assert repr(module) == "Scaled(factor=3.0, inplace=True)"
    assert module(X.clone(), y=X).tolist() == [6.0, 6.0] and module.eval()(X.clone(), X).tolist() == [1.0, 1.0]
    module.factor = 2.0
    assert module.train()(X.clone(), X).tolist() == [4.0, 4.0]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_rows_are_copied_and_pickled(again: Any) -> None:
    module = again(Scaled(2.0, "c"))
    assert type(module) is Scaled and repr(module) == "Scaled(factor=2.0, word='c')"


def test_rows_have_subclasses() -> None:
    class Doubled(nn.HuberLoss):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__(delta=2.0)

        def forward(self, x: Any, target: Any) -> Any:
            return super().forward(x, target) * 2

    assert Doubled()(X, X * 2).item() == 1.0 and isinstance(Doubled(), nn.HuberLoss)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: nn.LeakyReLU("a"), r"\[LeakyReLU\] negative_slope"),
        (lambda: nn.Threshold(1.0), r"\[Threshold\] missing a required argument: 'value'"),
        (lambda: nn.ELU(beta=1), r"\[ELU\] takes no argument 'beta'; it takes alpha, inplace"),
        (lambda: nn.ReLU()(X, X), r"\[ReLU\] too many positional arguments"),
        (lambda: nn.ReLU()([1.0]), r"\[ReLU\] x .*tensor"),
        (lambda: nn.KLDivLoss(reduction="most"), "'none' or 'batchmean'; got 'most'"),
        (lambda: nn.Dropout(2.0), r"\[Dropout\] p must be a probability in \[0, 1\]; got 2.0"),
    ],
)
def test_errors_name_the_layer_and_its_arguments(wrong: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        wrong()


def test_losses_and_distances_show_what_is_set() -> None:
    shown = [nn.CrossEntropyLoss(), nn.NLLLoss(ignore_index=2), nn.CTCLoss(), nn.CosineSimilarity(), nn.ReLU6()]
    expected = ["CrossEntropyLoss()", "NLLLoss(ignore_index=2)", "CTCLoss()", "CosineSimilarity()", "ReLU6()"]
    assert list(map(repr, shown)) == expected
    assert nn.PairwiseDistance(1.0).norm == 1.0
