"""Memory of other libraries: state never shares it, and tensors only where the user says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.tensor.variable import Variable

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("size", [2, 1000])
def test_arrays_of_tensors_cannot_be_made_writeable(size: int) -> None:
    x = rn.ones(size)
    shared = rn.asarray(np.ones(size, np.float32), copy=False)
    for array in (x.numpy(), np.asarray(x + 1), x[1:].numpy(), np.from_dlpack(x), shared.numpy()):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


class Foreign:
    """An array of another library: it speaks DLPack and nothing else."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Given:
    """An object that NumPy can look into."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.array


SOURCES: dict[str, Callable[[Array], Any]] = {
    "NumPy": lambda a: a,
    "a view": lambda a: a[:],
    "read-only": lambda a: _read_only(a),
    "DLPack": Foreign,
    "__array__": Given,
    "shared by from_dlpack": rn.from_dlpack,
    "shared by asarray": lambda a: rn.asarray(a, copy=False),
    "a view of a shared one": lambda a: rn.from_dlpack(a)[:],
}


def _read_only(array: Array) -> Array:
    view = array[:]
    view.flags.writeable = False
    return view


def optimizer_of(p: nn.Parameter) -> optim.Optimizer:
    return optim.SGD([p], lr=1.0, momentum=0.5)


def loaded_momentum(source: Any, n: int) -> Any:
    optimizer = optimizer_of(nn.Parameter(np.zeros(n, np.float32)))
    saved = optimizer.state_dict()
    saved["state"][0]["momentum_buffer"] = source
    optimizer.load_state_dict(saved)
    return optimizer.state[optimizer.param_groups[0].params[0]]["momentum_buffer"]


def assigned(source: Any, n: int) -> Variable:
    v = Variable(np.zeros(n, np.float32))
    v.assign(source if isinstance(source, np.ndarray) else rn.asarray(source))
    return v


def loaded(source: Any, n: int) -> Variable:
    layer = nn.BatchNorm1d(n)
    layer.load_state_dict({**layer.state_dict(), "weight": source, "running_mean": source})
    assert layer.weight.tolist() == layer.running_mean.tolist()
    return layer.running_mean


def registered(source: Any, n: int) -> Variable:
    module = nn.Module()
    module.register_buffer("kept", source if not isinstance(source, Foreign | Given) else rn.asarray(source))
    return module.kept


STATE: dict[str, Callable[[Any, int], Any]] = {
    "Variable": lambda x, n: Variable(x if not isinstance(x, Foreign) else rn.asarray(x)),
    "Parameter": lambda x, n: nn.Parameter(x if not isinstance(x, Foreign) else rn.asarray(x)),
    "assign": assigned,
    "module": loaded,
    "optimizer": loaded_momentum,
    "buffer": registered,
}


@pytest.mark.parametrize("n", [1, 3, 5000])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("state", STATE)
def test_state_is_copied_in(state: str, source: str, n: int) -> None:
    array = np.arange(1, n + 1, dtype=np.float32)
    reference = STATE[state](SOURCES[source](array), n)
    before = array.copy()
    array[:] = -7
    np.testing.assert_array_equal(reference.numpy(), before)
    rn.compile(lambda: reference.assign(reference + 1.0))()
    assert (array == -7).all(), "nor does training reach the array"
    np.testing.assert_array_equal(reference.numpy(), before + 1)


def test_a_generators_state_is_copied_in() -> None:
    generator = rn.Generator(1)
    state = generator.get_state().numpy().copy()
    generator.set_state(state)
    expected = rn.rand(3, generator=generator).tolist()
    generator.set_state(rn.from_dlpack(state))
    state[:] = 0
    assert rn.rand(3, generator=generator).tolist() == expected


@pytest.mark.parametrize("source", [name for name in SOURCES if not name.startswith(("shared", "a view of a"))])
def test_asarray_copies_unless_told_not_to(source: str) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    copied, forced = (rn.asarray(SOURCES[source](array), copy=c) for c in (None, True))
    shared = rn.asarray(SOURCES[source](array), copy=False)
    array[0, 0] = 9
    assert (copied[0, 0].item(), forced[0, 0].item(), shared[0, 0].item()) == (0, 0, 9)
    assert rn.asarray(shared, copy=True)[0, 0].item() == rn.tensor(shared)[0, 0].item() == 9
    apart = rn.tensor(shared), rn.asarray(shared, copy=True)
    array[0, 0] = 4
    assert [x[0, 0].item() for x in apart] == [9, 9] and rn.asarray(shared)[0, 0].item() == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: rn.asarray([1.0, 2.0], copy=False),
        lambda: rn.asarray(3.0, copy=False),
        lambda: rn.asarray([rn.ones((2,))], copy=False),
        lambda: rn.asarray(np.ones(3), rn.float32, copy=False),
        lambda: rn.asarray(np.ones(3, ">f4"), copy=False),
        lambda: rn.asarray(np.zeros(3, "u1, f4")["f1"], copy=False),
        lambda: rn.asarray(rn.ones((3,)), rn.float64, copy=False),
        lambda: rn.asarray(Foreign(np.ones(3)), rn.float32, copy=False),
    ],
)
def test_what_cannot_be_shared_is_told(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"\[asarray\] .* cannot become .*leave copy=False out"):
        make()


def test_from_dlpack_shares_or_copies() -> None:
    array = np.zeros(3, np.float32)
    shared, copied = rn.from_dlpack(Foreign(array)), rn.from_dlpack(Foreign(array), copy=True)
    array[:] = 5
    assert shared.tolist() == [5.0] * 3 and copied.tolist() == [0.0] * 3


def test_a_forced_copy_is_differentiable() -> None:
    for make in (lambda: rn.tensor([1.0, 2.0], requires_grad=True), lambda: nn.Parameter(np.ones(2, np.float32))):
        leaf = make()
        y = rn.asarray(leaf, copy=True) * 3.0
        y.sum().backward()
        assert leaf.grad.tolist() == [3.0, 3.0]
    assert rn.grad(lambda x: (rn.asarray(x, copy=True) ** 2.0).sum())(rn.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]
    compiled = rn.compile(rn.grad(lambda x: (rn.asarray(x, copy=True) ** 2.0).sum()))
    assert compiled(rn.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_results_share_nothing_with_arguments() -> None:
    array = np.zeros(3, np.float32)
    same = rn.compile(lambda a: rn.asarray(a))
    results = [same(array), rn.asarray(np.ones(3, np.float32)) * array, rn.asarray(array).reshape(3, 1)]
    before = [x.tolist() for x in results]
    array[:] = 4
    assert [x.tolist() for x in results] == before


def test_a_read_only_array_of_one_element_may_change_behind_its_back() -> None:
    array = np.ones(1, np.float32)
    view = _read_only(array)
    x = rn.zeros(2)
    assert (x + view).tolist() == [1, 1]
    array[0] = 5
    assert (x + view).tolist() == [5, 5]
