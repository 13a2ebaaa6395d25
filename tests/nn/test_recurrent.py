"""RNN, GRU and LSTM beyond the cases recorded from PyTorch: packed sequences, initial values, dropout, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import nn
from runnel.core.errors import ArgumentError, ShapeError, TracedValueError
from runnel.nn import recurrent
from runnel.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence
from tests.random_numbers import RNG

Array = np.ndarray[Any, Any]


def as_list(states: Any) -> list[Array]:
    return [h.numpy() for h in (states if isinstance(states, tuple) else (states,))]


KINDS = ("RNN", "GRU", "LSTM")


def test_initial_values_and_names() -> None:
    layer = nn.GRU(5, 16, 2, bidirectional=True)
    names = [n for n, _ in layer.named_parameters()]
    assert names[:4] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    assert names[4] == "weight_ih_l0_reverse" and len(names) == 16
    assert layer.weight_ih_l1.shape == (48, 32)
    for parameter in layer.parameters():
        assert 0.8 * 0.25 < np.abs(parameter.numpy()).max() <= 0.25


@settings(deadline=None, max_examples=12)
@given(
    st.sampled_from(KINDS), st.lists(st.integers(1, 6), min_size=1, max_size=5), st.booleans(), st.integers(1, 2),
    st.booleans(),
)  # fmt: skip
def test_packed_sequences(kind: str, lengths: list[int], both: bool, layers: int, with_states: bool) -> None:
    """Each sequence has the results that it has by itself, whatever is padded."""
    layer = getattr(nn, kind)(3, 4, layers, bidirectional=both, batch_first=True)
    x = np.full((len(lengths), max(lengths), 3), np.nan, np.float32)
    for row, n in enumerate(lengths):
        x[row, :n] = RNG.normal(size=(n, 3))
    shape = (layers * (1 + both), len(lengths), 4)
    states = [rn.asarray(RNG.normal(size=shape).astype(np.float32)) for _ in range(layer.states)]

    def first(rows: slice) -> Any:
        chosen = tuple(s[:, rows] for s in states)
        return None if not with_states else chosen if len(chosen) > 1 else chosen[0]

    packed = pack_padded_sequence(rn.asarray(x), lengths, batch_first=True, enforce_sorted=False)
    assert packed.data.shape == (sum(lengths), 3)
    output, last = layer(packed, first(slice(None)))
    padded, actual = pad_packed_sequence(output, batch_first=True, padding_value=-5.0, total_length=7)
    assert actual.tolist() == lengths and padded.shape[1] == 7
    for row, n in enumerate(lengths):
        expected, expected_last = layer(rn.asarray(x[row : row + 1, :n]), first(slice(row, row + 1)))
        np.testing.assert_allclose(padded.numpy()[row, :n], expected.numpy()[0], rtol=1e-4, atol=1e-5)
        assert np.all(padded.numpy()[row, n:] == -5.0)
        for h, w in zip(as_list(last), as_list(expected_last), strict=True):
            np.testing.assert_allclose(h[:, row], w[:, 0], rtol=1e-4, atol=1e-5)


def test_packed_sequences_run_through_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many lengths there are: what is compiled follows from the longest one."""
    loops: list[int] = []

    def counted(step: Any, carry: Any, xs: Any, **options: Any) -> Any:
        loops.append(xs[0].shape[0])
        return recurrent_scan(step, carry, xs, **options)

    recurrent_scan = recurrent.scan
    monkeypatch.setattr(recurrent, "scan", counted)
    layer = nn.LSTM(2, 3, num_layers=2, bidirectional=True)
    x = rn.randn(7, 5, 2)
    layer(pack_padded_sequence(x, [7, 6, 4, 3, 1]))
    assert loops == [7] * 4
    x[6, 1:] = float("nan")  # padding is not read
    output, _ = layer(pack_padded_sequence(x, [7, 6, 4, 3, 1]))
    output.data.sum().backward()
    assert all(bool(rn.isfinite(p.grad).all()) for p in layer.parameters())


def test_packed_sequences_compiled_with_gradients() -> None:
    layer = nn.GRU(3, 4, bidirectional=True)
    x = rn.asarray(RNG.normal(size=(5, 3, 3)).astype(np.float32))

    def run(x: Any) -> tuple[Any, ...]:
        packed = pack_padded_sequence(x, (5, 3, 3))
        output, last = layer(packed)
        loss = (output.data * output.data).sum() + last.sum()
        gradients = rn.grad(lambda m: _loss(m, packed))(layer)
        return loss, gradients["weight_hh_l0"], gradients["bias_ih_l0_reverse"]

    for eager, compiled in zip(run(x), rn.compile(run)(x), strict=True):
        np.testing.assert_array_equal(eager.numpy(), compiled.numpy())


def test_packed_sequences_say_what_pytorchs_say() -> None:
    packed = pack_sequence([rn.ones((3, 2)), rn.ones((5, 2)) * 2], enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [2, 2, 2, 1, 1] and packed.batch_sizes.dtype is rn.int64
    assert int(packed.batch_sizes[0]) == packed.batch_sizes[0].item() == 2
    assert packed.sorted_indices.tolist() == packed.unsorted_indices.tolist() == [1, 0]
    data, sizes, order, back = packed
    for again in (PackedSequence(data, sizes, order, back), PackedSequence(data, sizes, order),
                  PackedSequence(data, sizes.tolist(), sorted_indices=[1, 0]), packed._replace(data=data)):  # fmt: skip
        padded, lengths = pad_packed_sequence(again, batch_first=True)
        assert padded[:, :, 0].tolist() == [[1, 1, 1, 0, 0], [2, 2, 2, 2, 2]] and lengths.tolist() == [3, 5]
    assert PackedSequence(data, sizes).sorted_indices is None and packed.double().data.dtype is rn.float64
    inside = rn.compile(lambda packed: packed.data * sum(packed.batch_sizes.tolist()) + packed.batch_sizes.sum())
    assert inside(packed)[0].tolist() == [24, 24]
    layer = nn.GRU(2, 3)
    outputs = rn.compile(lambda packed: layer(packed)[0])(packed)
    assert isinstance(outputs, PackedSequence) and outputs.batch_sizes.tolist() == sizes.tolist()
    with pytest.raises(ShapeError, match=r"\[PackedSequence\] batch_sizes must be a vector of integers"):
        PackedSequence(data, 3)
    with pytest.raises(TracedValueError, match=r"\[PackedSequence\] batch_sizes must be known"):
        rn.compile(lambda x, n: PackedSequence(x, n).data)(data, rn.asarray([8]))


def _loss(layer: Any, packed: PackedSequence) -> Any:
    output, last = layer(packed)
    return (output.data * output.data).sum() + last.sum()


def test_dropout_between_layers() -> None:
    layer = nn.RNN(3, 50, 2, dropout=0.5)
    x = rn.asarray(RNG.normal(size=(4, 2, 3)).astype(np.float32))
    rn.manual_seed(1)
    first, second = layer(x)[0].numpy(), layer(x)[0].numpy()
    assert np.any(first != second)
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].numpy(), layer(x)[0].numpy())


def test_arguments_that_do_not_fit() -> None:
    layer = nn.GRU(3, 4)
    with pytest.raises(ShapeError, match="last of size 3"):
        layer(rn.ones((5, 2, 4)))
    with pytest.raises(ShapeError, match="hx must have shape"):
        layer(rn.ones((5, 2, 3)), rn.ones((1, 3, 4)))
    with pytest.raises(ValueError, match="proj_size"):
        nn.LSTM(3, 4, proj_size=4)
    with pytest.raises(ValueError, match="nonlinearity"):
        nn.RNN(3, 4, nonlinearity="sin")
    with pytest.raises(ValueError, match="dropout must be in"):
        nn.GRU(3, 4, dropout=2.0)
    with pytest.raises(ValueError, match="num_layers must be in"):
        nn.GRU(3, 4, 0)
    with pytest.raises(ShapeError, match="must decrease"):
        pack_padded_sequence(rn.ones((4, 2, 1)), [2, 4])
    with pytest.raises(ShapeError, match="numbers from 1"):
        pack_padded_sequence(rn.ones((4, 2, 1)), [5, 4])
    with pytest.raises(ShapeError, match="at least the longest"):
        pad_packed_sequence(pack_padded_sequence(rn.ones((4, 2, 1)), [4, 2]), total_length=3)
    with pytest.raises(ShapeError, match="state must have shape"):
        nn.GRUCell(3, 4)(rn.ones((2, 3)), rn.ones((3, 4)))
    with pytest.raises(ShapeError, match="input must have shape"):
        nn.GRUCell(3, 4)(rn.ones((2, 5)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: nn.LSTM(3, 4)(None), r"\[LSTM\] input must be a tensor or a PackedSequence; got None"),
        (lambda x: nn.LSTM(3, 4)(x, x), r"\[LSTM\] hx must be a pair of tensors \(h, c\); got a Tensor"),
        (lambda x: nn.GRU(3, 4)(x, (x, x)), r"\[GRU\] hx must be a tensor; got"),
        (lambda x: nn.LSTMCell(3, 4)("abc"), r"\[LSTMCell\] input must be a tensor; got 'abc'"),
        (lambda x: nn.MultiheadAttention(3, 1)(x, x, [x]), r"\[Multi\w+\] value must be a tensor; got a list"),
    ],
)
def test_inputs_of_another_kind(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call(rn.ones((5, 2, 3)))


def test_how_layers_are_shown() -> None:
    assert repr(nn.GRU(3, 4, 2, batch_first=True)).startswith("GRU(3, 4, num_layers=2, batch_first=True)")
    assert repr(nn.LSTMCell(3, 4, bias=False)).startswith("LSTMCell(3, 4, bias=False)")
