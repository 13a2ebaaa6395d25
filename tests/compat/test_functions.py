"""PyTorch's functions in ``runnel.compat.torch`` that are not Runnel's under the same name."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel.core.errors import ArgumentError, DTypeError, ShapeError


def test_open_files_are_saved_to_and_loaded_from() -> None:
    model = torch.nn.Linear(3, 2)
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "epoch": 3}, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer)
    assert loaded["epoch"] == 3
    np.testing.assert_array_equal(loaded["model"]["weight"].numpy(), model.weight.numpy())


def test_sums_of_unsigned_integers_can_be_negative_later() -> None:
    image = torch.tensor([[200, 100], [50, 3]], dtype=torch.uint8)
    for total in (torch.sum(image), torch.prod(image), torch.cumsum(image, 0), torch.cumprod(image, dim=1)):
        assert total.dtype is torch.int64
    assert (torch.sum(image) - 1000).item() == -647 and torch.sum(image, dtype=torch.uint8).item() == 353 % 256
    assert torch.sum(image, dim=(0, 1), keepdim=True).shape == (1, 1) and rn.sum(image).dtype is rn.uint64
    assert torch.sum(torch.tensor([True, True])).item() == 2 and torch.sum(torch.ones(2)).dtype is torch.float32


def test_copies_and_updates() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.permute_copy(x, (1, 0)).tolist() == torch.t_copy(x).tolist() == x.T.tolist()
    assert torch.slice_copy(x, 1, 0, 3, 2).tolist() == [[0.0, 2.0], [3.0, 5.0]]
    assert torch.select_copy(x, 0, 1).tolist() == [3.0, 4.0, 5.0] and torch.alias_copy(x) is not x
    assert [part.shape for part in torch.unsafe_split(x, 2, 1)] == [(2, 2), (2, 1)]
    assert torch.sqrt_(x) is x and x[1, 1].item() == 2.0
    assert torch.clamp_(x, min=0.5, max=1.5) is x and x.amax().item() == 1.5
    assert torch.zero_(x) is x and x.sum().item() == 0.0


@pytest.mark.parametrize("name", ["atan2", "hypot", "copysign", "heaviside", "float_power", "nextafter"])
def test_methods_that_update_have_the_values_of_the_others(name: str) -> None:
    x, y = torch.tensor([0.5, 2.0]), torch.tensor([1.5, -0.5])
    expected = getattr(x, name)(y).tolist()
    assert getattr(x, f"{name}_")(y) is x and x.tolist() == pytest.approx(expected, nan_ok=True)


def test_properties_of_tensors() -> None:
    x = torch.ones(2, 3, dtype=torch.float64)
    assert x.is_cpu and not (x.is_cuda or x.is_sparse or x.is_quantized or x.is_meta) and x.layout == torch.strided
    assert x.itemsize == 8 and x.get_device() == -1 and x.storage_offset() == 0 and x.is_signed()
    assert not torch.is_signed(torch.ones(1, dtype=torch.uint8)) and x.is_same_size(torch.zeros(2, 3))
    assert x.cfloat().dtype is torch.complex64 and x.cdouble().dtype is torch.complex128
    assert not (torch.is_conj(x) or torch.is_neg(x) or x.is_inference())
    assert torch.typename(x) == "torch.DoubleTensor" and isinstance(x.half(), torch.HalfTensor)
    assert torch.CharTensor([1]).dtype is torch.int8


def test_conjugates() -> None:
    z = torch.tensor([[1 + 2j, 3j]])
    assert z.adjoint().tolist() == torch.adjoint(z).tolist() == [[1 - 2j], [-3j]]
    assert torch.vdot(z[0], z[0]).item() == 14 and z[0].vdot(z[0]).item() == 14
    assert rn.matrix_transpose(z).tolist() == [[1 + 2j], [3j]]


def test_tensors_from_ranges_and_buffers() -> None:
    assert torch.range(1, 2, 0.5).tolist() == [1.0, 1.5, 2.0] and torch.range(2).dtype is torch.float32
    assert torch.frombuffer(b"abcd", dtype=torch.uint8, count=2, offset=1).tolist() == [98, 99]
    assert torch.empty_strided((2, 3), (1, 2)).shape == torch.empty_permuted((2, 3), (1, 0)).shape == (2, 3)
    assert torch.repeat_interleave(torch.tensor([1, 0, 2])).tolist() == [0, 2, 2]
    assert torch.repeat_interleave(torch.tensor([1, 2]), 2).tolist() == [1, 1, 2, 2]


def test_settings_answer() -> None:
    assert torch.get_default_device().type == "cpu" and torch.get_float32_matmul_precision() == "highest"
    assert torch.set_flush_denormal(True) is False and torch.get_num_interop_threads() == 1
    with pytest.raises(DTypeError, match="new tensors are float32"):
        torch.set_default_tensor_type(torch.DoubleTensor)
    before = np.get_printoptions()
    try:
        torch.set_printoptions(precision=2, sci_mode=False)
        assert "0.33" in repr(torch.ones(1) / 3) and "0.333" not in repr(torch.ones(1) / 3)
        torch.set_printoptions(profile="full")
        assert "..." not in repr(torch.zeros(2000))
    finally:
        np.set_printoptions(**before)


def test_one_row_has_one_covariance() -> None:
    x = np.array([[1.0, 2.0, 4.0]])
    assert torch.cov(rn.asarray(x)).shape == () and torch.cov(rn.asarray(x)).item() == pytest.approx(float(np.cov(x)))
    assert torch.corrcoef(rn.asarray(x)).item() == 1.0


def test_random_tensors_for_tests() -> None:
    make = torch.testing.make_tensor
    for dtype, low, high in ((torch.float32, -9, 9), (torch.int8, -9, 9), (torch.uint8, 0, 9), (torch.bool, 0, 1)):
        values = make(500, dtype=dtype, device="cpu")
        assert values.dtype is dtype and low <= values.double().min() < values.double().max() <= high
    assert make((2, 3), dtype=torch.complex64).shape == (2, 3) and make(dtype=torch.float64).shape == ()
    assert make(3, 4, dtype=torch.float32, noncontiguous=True).stride() == (8, 2)
    whole = make(300, dtype=torch.uint8, low=-5, high=300)
    assert whole.max() > 200 and set(make(200, dtype=torch.int64, low=0, high=3, exclude_zero=True).tolist()) == {1, 2}
    assert make(3, dtype=torch.float64, requires_grad=True).requires_grad
    with pytest.raises(ValueError, match=r"\[make_tensor\] low must be less than high; got 3 and 3"):
        make(2, dtype=torch.float32, low=3, high=3)
    torch.testing.assert_allclose(torch.ones(2), torch.ones(2, dtype=torch.float64))
    with pytest.raises(AssertionError, match="differ by more"):
        torch.testing.assert_allclose(torch.ones(2), [1.0, 2.0])


def test_recurrent_networks_of_given_weights() -> None:
    x, h, w, u = torch.ones(4, 2, 3), torch.zeros(1, 2, 5), torch.ones(20, 3), torch.ones(20, 5)
    with pytest.raises(ArgumentError, match=r"\[lstm\] 2 layers need 4 weights, weight_ih, weight_hh of each; got 2"):
        torch.lstm(x, (h, h), [w, u], False, 2, 0.0, False, False, False)
    with pytest.raises(
        ShapeError, match=r"\[gru_cell\] an input of 3 and a state of 5 features need weights of shapes"
    ):
        torch.gru_cell(x[0], h[0], w, u)
    state = torch.get_rng_state()
    output, last, cell = torch.lstm(x, (h, h), [w, u], False, 1, 0.0, False, False, False)
    assert output.shape == (4, 2, 5) and last.shape == cell.shape == (1, 2, 5)
    assert torch.equal(torch.get_rng_state(), state)


def test_dropout_in_place_and_with_its_mask() -> None:
    x = torch.ones(40, 30)
    values, kept = torch.native_dropout(x, 0.5, True)
    assert torch.equal(values != 0, kept) and 300 < kept.sum() < 900 and values.max() == 2
    channels = torch.feature_dropout(torch.ones(20, 30, 4), 0.5, True)
    assert set(channels.sum(-1).flatten().tolist()) == {0.0, 8.0}
    for update in (torch.dropout_, torch.feature_dropout_, torch.alpha_dropout_, torch.feature_alpha_dropout_):
        y = torch.ones(20, 30)
        assert update(y, 0.5, True) is y and (y != 1).sum() > 0


def test_older_methods() -> None:
    x = torch.ones(2, 3)
    assert x.data_ptr() == x.detach().data_ptr() != torch.ones(2, 3).data_ptr() and x.is_set_to(x.detach())
    assert x.new(2, 2).shape == (2, 2) and x.double().new([1, 2]).dtype is torch.float64
    assert x.dim_order() == (0, 1) and x.dense_dim() == 2 and x.sparse_dim() == 0 and not x.is_coalesced()
    assert x.pin_memory() is x and torch.get_device(x) == -1 and torch.sym_max(1, 2) == 2 and torch.sym_int(2.5) == 2
    assert not torch.is_autocast_enabled("cpu") and not torch.is_autocast_cpu_enabled()
    with torch.autocast("cpu"):
        assert (
            torch.is_autocast_enabled("cpu")
            and not torch.is_autocast_enabled()
            and torch.get_autocast_dtype("cpu") is torch.bfloat16
        )
    torch.set_anomaly_enabled(True)
    assert torch.is_anomaly_enabled()
    torch.set_anomaly_enabled(False)


def test_numbers_of_files(tmp_path: Path) -> None:
    np.arange(6, dtype=np.int16).tofile(tmp_path / "numbers")
    read = torch.from_file(str(tmp_path / "numbers"), size=4, dtype=torch.int16)
    assert read.tolist() == [0, 1, 2, 3] and read.dtype is torch.int16
    with pytest.raises(ValueError, match=r"\[from_file\] shared must be False; got True"):
        torch.from_file(str(tmp_path / "numbers"), shared=True)


def test_division_rounded_toward_0() -> None:
    big, i = 2**53 + 1, torch.tensor([5, -7, 0])
    rows = [
        (torch.tensor([5]), 2.0**-40, [5 * 2.0**40]), (i, 2.0, [2.0, -3.0, 0.0]), (i, 2, [2, -3, 0]),
        (i, -2, [-2, 3, 0]),
        (torch.tensor([5.0, -7.0]), torch.tensor([2, 3]), [2.0, -2.0]), (torch.tensor([big]), 1, [big]),
        (torch.tensor([-(2**63)]), -(2**62), [2]), (torch.tensor([200], dtype=torch.uint8), 3, [66]),
    ]  # fmt: skip
    for x, y, expected in rows:
        dtype = (x / y).dtype if isinstance(expected[0], float) else x.dtype
        for call in (lambda x: torch.div(x, y, rounding_mode="trunc"), lambda x: x.div(y, rounding_mode="trunc")):  # noqa: B023
            for result in (call(x), rn.compile(call)(x)):
                assert result.tolist() == expected and result.dtype is dtype
    with pytest.raises(DTypeError, match="stays int64"):
        i.div_(2.0, rounding_mode="trunc")


def test_private_names_that_programs_use() -> None:
    torch._assert(True, "no")
    with pytest.raises(AssertionError, match="why"):
        torch._assert(torch.tensor(1) == 2, "why")
    drawn = torch.distributions.utils._standard_normal((2, 3), dtype=torch.float64, device="cpu")
    assert drawn.shape == (2, 3) and drawn.dtype is torch.float64


def test_dropout_takes_inplace_by_position() -> None:
    x = torch.ones(4)
    assert torch.nn.functional.dropout(x, 1.0, True, True) is x and x.tolist() == [0, 0, 0, 0]


def test_variables_of_older_programs() -> None:
    x = torch.autograd.Variable(torch.ones(2), volatile=True)
    assert x.tolist() == [1, 1] and torch.autograd.Variable(torch.ones(2), requires_grad=True).requires_grad


@pytest.mark.parametrize("size", [3, np.int64(3), np.array(3)])
def test_ints_of_numpy_are_sizes(size: Any) -> None:
    made = [torch.FloatTensor(size), torch.Tensor(size), torch.LongTensor(size), torch.ones(1).new(size)]
    assert [x.shape for x in made] == [(3,)] * 4 and torch.Tensor(np.float32(3)).shape == ()
