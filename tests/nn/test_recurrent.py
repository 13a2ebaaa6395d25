"""RNN, GRU and LSTM against loops in NumPy: layers, directions, cells, first states, packed sequences, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import nn
from runnel.core.errors import ShapeError, TracedValueError
from runnel.nn import recurrent
from runnel.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence
from tests.random_numbers import RNG

Array = np.ndarray[Any, Any]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def step(kind: str, x: Array, states: list[Array], w: Array, u: Array, b: Array, c: Array) -> list[Array]:
    inputs, past = w @ x + b, u @ states[0] + c
    if kind == "RNN":
        return [np.tanh(inputs + past)]
    if kind == "GRU":
        (gr, gz, gn), (pr, pz, pn) = np.split(inputs, 3), np.split(past, 3)
        z, n = sigmoid(gz + pz), np.tanh(gn + sigmoid(gr + pr) * pn)
        return [(1 - z) * n + z * states[0]]
    i, f, g, o = np.split(inputs + past, 4)
    cell = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(cell), cell]


def by_hand(layer: Any, sequences: list[Array], first: list[Array] | None) -> tuple[list[Array], list[Array]]:
    """Each sequence for itself: its outputs, and the last states, of shape (layers · directions, batch, hidden)."""
    kind, size = type(layer).__name__, layer.hidden_size
    count = layer.num_layers * (1 + layer.bidirectional)
    states = [np.zeros((count, len(sequences), size)) for _ in range(layer.states)] if first is None else first
    last = [np.zeros_like(s) for s in states]
    outputs = []
    for row, xs in enumerate(sequences):
        for number in range(layer.num_layers):
            results = []
            for direction in range(1 + layer.bidirectional):
                suffix = f"l{number}" + ("_reverse" if direction else "")
                names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                w, u, b, c = (
                    getattr(layer, f"{n}_{suffix}").numpy().astype(np.float64)
                    if hasattr(layer, f"{n}_{suffix}")
                    else 0.0
                    for n in names
                )
                place = number * (1 + layer.bidirectional) + direction
                now = [s[place, row] for s in states]
                ys = np.zeros((len(xs), size))
                for t in reversed(range(len(xs))) if direction else range(len(xs)):
                    now = step(kind, xs[t], now, w, u, b, c)
                    ys[t] = now[0]
                results.append(ys)
                for s, value in zip(last, now, strict=True):
                    s[place, row] = value
            xs = np.concatenate(results, 1)
        outputs.append(xs)
    return outputs, last


def as_list(states: Any) -> list[Array]:
    return [h.numpy() for h in (states if isinstance(states, tuple) else (states,))]


KINDS = ("RNN", "GRU", "LSTM")


@settings(deadline=None, max_examples=15)
@given(
    st.sampled_from(KINDS), st.integers(1, 5), st.integers(1, 4), st.integers(1, 2), st.booleans(), st.booleans(),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_layers_against_numpy(
    kind: str, steps: int, batch: int, layers: int, both: bool, batch_first: bool, bias: bool, given_first: bool
) -> None:
    layer = getattr(nn, kind)(3, 4, layers, bias=bias, batch_first=batch_first, bidirectional=both)
    x = RNG.normal(size=(batch, steps, 3)).astype(np.float32)
    states = None
    if given_first:
        states = [RNG.normal(size=(layers * (1 + both), batch, 4)).astype(np.float32) for _ in range(layer.states)]
    hx: Any = None if states is None else tuple(map(rn.asarray, states))
    hx = hx[0] if hx is not None and len(hx) == 1 else hx
    output, last = layer(rn.asarray(x if batch_first else x.transpose(1, 0, 2)), hx)
    outputs, expected = by_hand(layer, list(x.astype(np.float64)), states)
    actual = output.numpy() if batch_first else output.numpy().transpose(1, 0, 2)
    np.testing.assert_allclose(actual, np.stack(outputs), rtol=1e-4, atol=1e-5)
    for h, w in zip(as_list(last), expected, strict=True):
        np.testing.assert_allclose(h, w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_batch_and_relu(kind: str) -> None:
    layer = getattr(nn, kind)(3, 4)
    x = rn.asarray(RNG.normal(size=(5, 3)).astype(np.float32))
    output, last = layer(x)
    outputs, expected = by_hand(layer, [x.numpy().astype(np.float64)], None)
    np.testing.assert_allclose(output.numpy(), outputs[0], rtol=1e-4, atol=1e-5)
    assert [h.shape for h in as_list(last)] == [(1, 4)] * len(expected)
    relu = nn.RNN(3, 4, nonlinearity="relu")
    assert relu(x)[0].numpy().min() >= 0


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_steps_of_layers(kind: str) -> None:
    layer, cell = getattr(nn, kind)(3, 4), getattr(nn, f"{kind}Cell")(3, 4)
    cell.load_state_dict({name: getattr(layer, f"{name}_l0").value for name in cell.state_dict()})
    x = rn.asarray(RNG.normal(size=(6, 2, 3)).astype(np.float32))
    state: Any = None
    for t in range(6):
        state = cell(x[t], state)
    for h, w in zip(as_list(state), as_list(layer(x)[1]), strict=True):
        np.testing.assert_allclose(h, w[0], rtol=1e-5, atol=1e-6)
    alone = cell(x[0, 0])
    np.testing.assert_allclose(as_list(alone)[0], as_list(cell(x[0]))[0][0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind: str) -> None:
    layer = getattr(nn, kind)(3, 4, 2, bidirectional=True, dtype="float64")
    x = RNG.normal(size=(4, 2, 3))
    weight = RNG.normal(size=(4, 2, 8))

    def loss(array: Array) -> Any:
        return (layer(rn.asarray(array))[0] * rn.asarray(weight)).sum()

    loss(x).backward()
    for name, parameter in layer.named_parameters():
        along, before = RNG.normal(size=parameter.shape), parameter.numpy().copy()

        def at(size: float, p: Any = parameter, before: Array = before, along: Array = along) -> float:
            p.assign(before + size * along)
            return float(loss(x).item())

        expected = (at(1e-5) - at(-1e-5)) / 2e-5
        parameter.assign(before)
        assert float((parameter.grad.numpy() * along).sum()) == pytest.approx(expected, rel=1e-5, abs=1e-8), name


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
def test_packed_sequences(kind: str, lengths: list[int], both: bool, layers: int, given_first: bool) -> None:
    """Each sequence gives what it gives alone, whatever is padded."""
    layer = getattr(nn, kind)(3, 4, layers, bidirectional=both)
    x = np.full((len(lengths), max(lengths), 3), np.nan, np.float32)
    for row, n in enumerate(lengths):
        x[row, :n] = RNG.normal(size=(n, 3))
    count = layers * (1 + both)
    states = [RNG.normal(size=(count, len(lengths), 4)) for _ in range(layer.states)] if given_first else None
    hx: Any = None if states is None else tuple(rn.asarray(s.astype(np.float32)) for s in states)
    hx = hx[0] if hx is not None and len(hx) == 1 else hx
    packed = pack_padded_sequence(rn.asarray(x), lengths, batch_first=True, enforce_sorted=False)
    assert packed.data.shape == (sum(lengths), 3)
    output, last = layer(packed, hx)
    padded, actual = pad_packed_sequence(output, batch_first=True, padding_value=-5.0, total_length=7)
    assert actual.tolist() == lengths and padded.shape[1] == 7
    outputs, expected = by_hand(layer, [x[i, :n].astype(np.float64) for i, n in enumerate(lengths)], states)
    for row, n in enumerate(lengths):
        np.testing.assert_allclose(padded.numpy()[row, :n], outputs[row], rtol=1e-4, atol=1e-5)
        assert np.all(padded.numpy()[row, n:] == -5.0)
    for h, w in zip(as_list(last), expected, strict=True):
        np.testing.assert_allclose(h, w, rtol=1e-4, atol=1e-5)


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


def test_what_does_not_fit() -> None:
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


def test_how_layers_are_shown() -> None:
    assert repr(nn.GRU(3, 4, 2, batch_first=True)).startswith("GRU(3, 4, num_layers=2, batch_first=True)")
    assert repr(nn.LSTMCell(3, 4, bias=False)).startswith("LSTMCell(3, 4, bias=False)")
