"""`save` and `load`: every kind of value goes round to the bit, what is shared is stored once, the rest is refused."""

from __future__ import annotations

import math
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from safetensors import safe_open

import runnel as rn
from runnel import nn, optim
from runnel.core import dtypes
from runnel.core.errors import FileError
from runnel.tensor.variable import Variable
from tests.tensor.copying.described import described


def round_trip(value: Any, folder: Path) -> Any:
    path = folder / "kept"
    rn.save(value, path)
    return rn.load(path)


ODD_NAN = np.array([0x7FF8000000000123], np.uint64).view(np.float64)[0].item()
VALUES: dict[str, Any] = {
    "none": None,
    "truths": [True, False],
    "ints": [0, -1, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, -(10**40), 7**9000],
    "floats": [0.0, -0.0, 1.5, 1e-320, 0.1, math.inf, -math.inf, math.nan, -math.nan, ODD_NAN, 1e308],
    "complex": [1j, complex(-0.0, math.nan), complex(math.inf, -0.0)],
    "strings": ["", "ä\u2028\U0001f600\x00\n\"\\", "\ud800 alone"],
    "bytes": [b"", b"\x00\xff" * 500, bytearray(b"abc")],
    "containers": [[], (), {}, [[()]], (1,), ({},), OrderedDict(b=1, a=(2,))],
    "keys": {0: "a", "0": "b", 1.5: "c", None: "d", False + 2: "e", (1, ("x", b"y")): "f", "a.b": {"c": 1},
             7**9000: [rn.ones(1)]},
    "dtypes": [rn.float32, rn.bfloat16, np.dtype("int8"), np.dtype("<M8[ns]"), np.dtype(ml_dtypes.bfloat16)],
    "scalars": [
        np.float32(0.1), np.float64(-0.0), np.int8(-3), np.bool_(True), np.complex64(1j), np.str_("né"),
        np.bytes_(b"x"), np.datetime64("2020-02-29T12", "ms"), np.timedelta64(5, "s"), ml_dtypes.bfloat16(1.5),
        np.float16(math.inf),
        np.longdouble("0.1"), np.uint64(2**64 - 1), np.str_(""),
    ],
    "arrays": [
        np.arange(6.0).reshape(2, 3), np.zeros((0, 3)), np.array(5), np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.arange(10)[::-3], np.ones(3, complex), np.array(["a", "bcd"]), np.array([b"a", b"bcd"]),
        np.arange(3, dtype=">i4"), np.ones(2, ml_dtypes.float8_e4m3fn), np.array(["2020-01-01"], "M8[D]"),
        np.array(5j), np.zeros((2, 0), "U3"), np.ones(2, ml_dtypes.bfloat16),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_every_kind_of_value_goes_round(kind: str, tmp_path: Path) -> None:
    actual = round_trip(VALUES[kind], tmp_path)
    assert _bits(actual) == _bits(VALUES[kind])


def _bits(value: Any) -> Any:
    """Return what ``==`` and ``repr`` do not tell: NaNs, signs of zeros, classes, dtypes."""
    if isinstance(value, dict):
        return type(value), [(_bits(k), _bits(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [_bits(v) for v in value]
    if isinstance(value, (float, complex, np.ndarray, np.generic)):
        array = np.asarray(value)
        # of a long double some bytes are padding, and hold anything
        reference = repr(array) if array.dtype.char in "gG" else array.tobytes()
        return type(value), array.dtype, array.shape, reference
    return type(value), value.tolist() if isinstance(value, rn.Tensor) else value


def test_tensors_of_every_dtype_and_layout(tmp_path: Path) -> None:
    base = np.arange(24).reshape(4, 6)
    state = {d.name: rn.asarray(base % 2 if d.kind == "bool" else base, d) for d in dtypes.ALL}
    x = rn.asarray(base.astype(np.float32))
    state["views"] = [x.T, x[::2, 1::3], x[::-1], x[2, 3], x[4:], rn.broadcast_to(x[0], (3, 6)), rn.from_dlpack(base)]
    actual = round_trip(state, tmp_path)
    for name in state.keys() - {"views"}:
        assert actual[name].dtype is state[name].dtype
        assert actual[name].numpy().tobytes() == state[name].numpy().tobytes()
    for one, two in zip(actual["views"], state["views"], strict=True):
        assert one.dtype is two.dtype and one.shape == two.shape and one.tolist() == two.tolist()


def test_variables_are_stored_as_their_values(tmp_path: Path) -> None:
    p = nn.Parameter(np.ones(3, np.float32))
    v = Variable([1, 2])
    actual = round_trip({"p": p, "v": v, "loss": (p * p).sum()}, tmp_path)
    assert all(type(x) is rn.Tensor and not x.requires_grad for x in actual.values())
    assert actual["p"].tolist() == [1.0] * 3 and actual["v"].tolist() == [1, 2] and actual["loss"].item() == 3.0


def test_shared_values_are_stored_once(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(100, 100, bias=False), nn.Linear(100, 100, bias=False))
    net[1].weight = net[0].weight
    array = np.zeros(20_000, np.float32)
    state = {"model": net.state_dict(), "again": net[0].weight, "arrays": [array, array, array.copy()]}
    actual = round_trip(state, tmp_path)
    assert (tmp_path / "kept").stat().st_size < 40_000 + 2 * 80_000 + 2000
    one, two = actual["model"].values()
    assert one.address == two.address == actual["again"].address
    assert actual["arrays"][0] is actual["arrays"][1] is not actual["arrays"][2]
    one[0, 0] = 5.0
    assert two[0, 0].item() != 5.0, "a separate handle"


def test_names_in_the_file_are_paths(tmp_path: Path) -> None:
    rn.save(
        {"model": {"0.weight": rn.ones(2)}, "opt": {"state": {0: {"exp_avg": rn.zeros(2)}}}, "x": [rn.ones(1)]},
        tmp_path / "a",
    )
    with safe_open(str(tmp_path / "a"), framework="numpy") as file:
        assert sorted(file.keys()) == ["model.0.weight", "opt.state.0.exp_avg", "x.0"]
        np.testing.assert_array_equal(file.get_tensor("model.0.weight"), [1, 1])
    assert rn.load_file(tmp_path / "a")["x.0"].tolist() == [1.0]


def test_similar_paths_and_impossible_names(tmp_path: Path) -> None:
    state = {
        "a.b": rn.ones(1),
        "a": {"b": rn.zeros(1)},
        "__metadata__": rn.ones(2),
        "\ud800": rn.ones(3),
        "": rn.ones(4),
    }
    actual = round_trip(state, tmp_path)
    assert described(actual) == described(state)
    assert round_trip(rn.ones(2), tmp_path).tolist() == [1.0, 1.0]
    assert len(rn.load_file(tmp_path / "kept")) == 1


def test_nothing_that_is_loaded_is_the_files(tmp_path: Path) -> None:
    x = np.arange(1000.0, dtype=np.float32)
    rn.save({"t": rn.asarray(x), "a": x}, tmp_path / "a")
    actual = rn.load(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"\xff" * (tmp_path / "a").stat().st_size)
    np.testing.assert_array_equal(actual["t"].numpy(), x)
    np.testing.assert_array_equal(actual["a"], x)
    actual["a"][0] = 5.0
    assert actual["t"][0].item() == 0.0


def test_the_same_value_gives_the_same_file(tmp_path: Path) -> None:
    state = {"b": rn.ones(3), "a": [rn.zeros(2), 1.5], "c": np.arange(3)}
    rn.save(state, tmp_path / "one")
    rn.save(state, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


class Pair(NamedTuple):
    one: int
    two: int


def circular() -> list[Any]:
    value: list[Any] = [1]
    value.append({"again": value})
    return value


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: nn.Linear(2, 2), TypeError, r"the value must be .* got Linear. Save its state_dict\(\)\."),
        (
            lambda: {"opt": [optim.SGD(nn.Linear(1, 1).parameters())]},
            TypeError,
            r"the value\['opt'\]\[0\] must be .* got SGD",
        ),
        (lambda: {"f": len}, TypeError, r"the value\['f'\] must be .* got builtin_function_or_method"),
        (lambda: {1, 2}, TypeError, "got set"),
        (lambda: Pair(1, 2), TypeError, "got Pair"),
        (lambda: np.ma.masked_array([1, 2], [0, 1]), TypeError, "got MaskedArray"),
        (lambda: np.array([None]), TypeError, "the NumPy dtype object"),
        (lambda: [np.zeros(2, "i4, f4")], TypeError, r"\[0\] must hold numbers, strings or times"),
        (circular, ValueError, r"the value\[1\]\['again'\] is a list that contains itself"),
        (lambda: nested(101), ValueError, "is inside 100 nested containers"),
    ],
)
def test_parts_that_a_file_lacks(make: Any, kind: type[Exception], message: str, tmp_path: Path) -> None:
    rn.save("old", tmp_path / "kept")
    with pytest.raises(kind, match=rf"^\[save\] .*{message}"):
        rn.save(make(), tmp_path / "kept")
    assert rn.load(tmp_path / "kept") == "old"


def test_deep_is_not_too_deep(tmp_path: Path) -> None:
    assert round_trip(nested(100), tmp_path) == nested(100)
    same = [1, 2]
    assert round_trip([same, same], tmp_path) == [same, same]


def test_arguments_in_the_wrong_order(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"\[save\] the second argument must be a path; got dict"):
        rn.save(str(tmp_path / "a"), {"x": 1})  # type: ignore[arg-type]


def test_files_of_others(tmp_path: Path) -> None:
    rn.save_file({"x": rn.ones(2)}, tmp_path / "a")
    with pytest.raises(FileError, match=r"was not written by save\(\); load_file\(\) reads its tensors"):
        rn.load(tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        rn.load(tmp_path / "missing")


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=5),
    st.complex_numbers(), st.sampled_from([rn.ones((2, 2)), np.arange(3), np.float32(1.5), rn.int8]),
)  # fmt: skip
keys = st.one_of(st.text(max_size=3), st.integers(), st.none(), st.tuples(st.integers(), st.text(max_size=2)))


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(keys, inner, max_size=4),
        ),
        max_leaves=12,
    )
)
def test_any_value_goes_round(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    actual = round_trip(value, tmp_path_factory.getbasetemp())
    assert _plain(actual) == _plain(value)


def _plain(value: Any) -> Any:
    """As _bits, with tensors as arrays."""
    if isinstance(value, rn.Tensor):
        return "tensor", _bits(value.numpy())
    if isinstance(value, dict):
        return [(_plain(k), _plain(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [_plain(v) for v in value]
    return _bits(value)


def test_headers_of_every_length_are_read(tmp_path: Path) -> None:
    """One of 640 bytes begins like a pickle."""
    beginnings = set()
    for n in range(200, 800, 8):
        assert round_trip("a" * n, tmp_path) == "a" * n
        beginnings.add((tmp_path / "kept").read_bytes()[:2])
    assert b"\x80\x02" in beginnings
