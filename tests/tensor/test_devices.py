"""Devices: where arrays are made, how they move, and what happens where they meet."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.core import switches
from runnel.core.errors import ArgumentError, CaptureWarning, DeviceError

CPU, OTHER = rn.device("cpu"), rn.device("interpreter")


def there(*shape: int) -> rn.Tensor:
    return rn.tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), device=OTHER)


def test_devices_have_names() -> None:
    assert rn.devices() == (CPU, OTHER)
    assert rn.device("interpreter") is rn.device(OTHER) is OTHER
    assert (str(OTHER), repr(OTHER)) == ("interpreter", "runnel.device('interpreter')")
    for device in rn.devices():
        assert copy.deepcopy(device) is device and pickle.loads(pickle.dumps(device)) is device
    for wrong in ("cuda", 0, None.__class__):
        with pytest.raises(DeviceError, match=r"there is no device .*; there are cpu, interpreter\."):
            rn.device(wrong)


MAKERS: list[Any] = [
    lambda **d: rn.zeros(2, 3, **d), lambda **d: rn.ones((2,), **d), lambda **d: rn.full((2,), 3, **d),
    lambda **d: rn.empty(2, **d), lambda **d: rn.arange(4, **d), lambda **d: rn.linspace(0, 1, 3, **d),
    lambda **d: rn.eye(2, **d), lambda **d: rn.tensor([1.0], **d), lambda **d: rn.asarray([1, 2], **d),
    lambda **d: rn.asarray(np.ones(2), **d), lambda **d: rn.from_dlpack(np.ones(2), **d), lambda **d: rn.rand(3, **d),
    lambda **d: rn.randn(3, **d), lambda **d: rn.randint(0, 5, (3,), **d), lambda **d: rn.Variable([1.0], **d),
    lambda **d: nn.Parameter(np.ones(2), **d),
]  # fmt: skip


@pytest.mark.parametrize("make", MAKERS)
def test_arrays_are_made_where_they_are_wanted(make: Any) -> None:
    assert make().device is CPU
    assert make(device="interpreter").device is make(device=OTHER).device is OTHER
    with switches.override(device="interpreter"):
        assert rn.device() is OTHER
        assert make().device is OTHER
        assert make(device="cpu").device is CPU
    with pytest.raises(DeviceError, match="there is no device"):
        make(device="tpu")


def test_results_are_where_their_operands_are() -> None:
    x = there(2, 3)
    results = [
        x + 1, 2.0 * x, x @ x.mT, x.sum(), x[1], x[:, 0], rn.zeros_like(x), rn.full_like(x, 2.0),
        rn.ones_like(rn.ones(2), device=OTHER), rn.stack([x, x]),
        rn.where(x > 1, x, 0.0), x.reshape(-1), x.astype("int64"), x.clone(), x.detach(), rn.linalg.qr(x @ x.mT)[0],
        rn.one_hot(x[0].astype("int64"), 3), x + np.ones((2, 3), np.float32), rn.asarray(x), *rn.split(x, 3, 1),
    ]  # fmt: skip
    assert {y.device for y in results} == {OTHER}


def test_a_tensor_moves_and_its_gradient_comes_back() -> None:
    x = rn.tensor([1.0, 2.0], requires_grad=True)
    y = x.to("interpreter")
    assert (y.device, y.dtype, x.to("cpu") is x) == (OTHER, x.dtype, True)
    (y * y).sum().backward()
    assert x.grad is not None and x.grad.device is CPU and x.grad.tolist() == [2.0, 4.0]
    for moved in (x.to(OTHER, "float64"), x.to("float64", device="interpreter"), x.to(there(1).astype("float64"))):
        assert (moved.device, moved.dtype) == (OTHER, rn.float64)
    assert y.cpu().device is CPU
    with pytest.raises(ArgumentError, match="twice"):
        x.to("cpu", device="cpu")


def test_devices_survive_copies() -> None:
    x = there(2)
    v = rn.Variable([1.0], device=OTHER)
    for result in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        assert result.device is OTHER


@pytest.mark.parametrize(
    "meet",
    [
        lambda x, y: x + y, lambda x, y: x @ y.mT, lambda x, y: rn.concat([x, y]), lambda x, y: rn.where(x > 0, x, y),
        lambda x, y: x.add_(y), lambda x, y: (x * y.requires_grad_()).sum(),
        rn.compile(lambda x, y: x + y), lambda x, y: rn.vmap(lambda a: a + y)(x), lambda x, y: x.__setitem__(0, y[0]),
        lambda x, y: rn.jvp(lambda a: a * y, (x,), (x,)),
    ],
)  # fmt: skip
def test_operands_on_different_devices_are_refused(meet: Any) -> None:
    for x, y in ((there(2, 2), rn.ones((2, 2))), (rn.ones((2, 2)), there(2, 2))):
        with pytest.raises(DeviceError, match=r"interpreter.*cpu|cpu.*interpreter"):
            meet(x, y)


def test_a_compiled_function_computes_on_one_device() -> None:
    step = rn.compile(lambda x: x * 2 + 1)
    for _ in range(3):
        assert step(there(3)).device is OTHER
        assert step(rn.ones(3)).device is CPU
    assert step.statistics["programs"] == 2
    moving = rn.compile(lambda x: x.to("cpu") + 1)
    assert moving(rn.ones(2)).tolist() == [2.0, 2.0]
    with pytest.warns(CaptureWarning, match="move it before the call"):
        assert moving(there(2)).tolist() == [1.0, 2.0]


def test_a_module_moves_and_its_programs_follow() -> None:
    layer = nn.BatchNorm1d(3)
    recorded = []
    step = rn.compile(lambda x: layer(x).sum(0))
    for device in ("cpu", "interpreter", "cpu", "interpreter"):
        assert layer.to(device) is layer
        x = rn.tensor([[1.0, 2.0, 4.0], [2.0, 0.0, 1.0]], device=device)
        for _ in range(3):
            recorded.append((layer.weight.device, layer.running_mean.device, step(x).device))
    names = [("cpu",) * 3, ("interpreter",) * 3]
    assert [tuple(map(str, place)) for place in recorded] == [name for name in names * 2 for _ in range(3)]
    with pytest.raises(DeviceError, match="there is no device"):
        layer.to("tpu")


def test_variables_take_values_of_their_own_device() -> None:
    v = rn.Variable([1.0, 2.0], device=OTHER)
    with pytest.raises(DeviceError, match=r"on interpreter; got cpu.*to\(\"interpreter\"\)"):
        v.assign(rn.ones(2))
    v.assign([3.0, 4.0])
    v.assign(rn.ones(2).to(v.device) * 5)
    assert v.numpy().tolist() == [5.0, 5.0]


def test_layers_are_made_on_the_default_device() -> None:
    with switches.override(device="interpreter"):
        assert nn.Linear(2, 3, device="interpreter").weight.device is OTHER
    with pytest.raises(ArgumentError, match=r"creates arrays on cpu.*\.to\(\"interpreter\"\)"):
        nn.Linear(2, 3, device="interpreter")


def test_numbers_of_a_loop_are_where_its_tensors_are() -> None:
    last, _ = rn.scan(lambda c, x: ((c[0] + x.sum(), c[1] + 1), x), (there(1)[0], 0), there(3, 2))
    assert [x.device for x in last] == [OTHER, OTHER]


def test_an_optimizers_state_is_where_its_parameters_are() -> None:
    layer = nn.Linear(2, 1).to(OTHER)
    optimizer = optim.Adam(layer.parameters(), lr=0.1)
    layer(there(3, 2)).sum().backward()
    optimizer.step()
    assert {slot.device for saved in optimizer.state.values() for slot in saved.values()} == {OTHER}
    elsewhere = nn.Linear(2, 1)
    elsewhere.load_state_dict(layer.state_dict())
    assert elsewhere.weight.device is CPU
    other = optim.Adam(elsewhere.parameters(), lr=0.1)
    other.load_state_dict(optimizer.state_dict())
    assert {slot.device for saved in other.state.values() for slot in saved.values()} == {CPU}


def test_each_device_has_its_stream_of_random_numbers() -> None:
    rn.manual_seed(5)
    first = [rn.randn(4, device=device).numpy().tobytes() for device in rn.devices()]
    assert first[0] == first[1]
    x = rn.dropout(there(2, 2), 0.5)
    assert x.device is OTHER
    generator = rn.Generator(3)
    assert rn.rand(2, generator=generator, device=OTHER).device is OTHER


def test_levels_keep_devices() -> None:
    x = there(3, 2)
    assert rn.vmap(lambda row: row.sum() * 2)(x).device is OTHER
    assert {y.device for y in rn.jvp(rn.sin, (x,), (x,))} == {OTHER}
    assert rn.grad(lambda a: (a**2).sum())(x).device is OTHER
    assert rn.hessian(lambda a: (a**3).sum())(x[0]).device is OTHER
