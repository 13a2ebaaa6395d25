"""PyTorch's objects around tensors: lists of tensors, storages, shared values, the graph of gradients."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import runnel.compat.torch as torch
from runnel.core.errors import ArgumentError, GradientError, ShapeError, UnsupportedError

LISTS = [
    (lambda: torch.tensor([[torch.tensor([1.0])]]), [[1.0]]),
    (lambda: torch.tensor([torch.tensor([1.0]), torch.tensor([[2.0]])]), [1.0, 2.0]),
    (lambda: torch.tensor([[torch.tensor([1]), 2.5]]), [[1.0, 2.5]]),
    (lambda: torch.as_tensor([torch.tensor([1.0]), 2]), [1.0, 2.0]),
    (lambda: torch.FloatTensor([[torch.tensor([1.0])], [torch.tensor(2)]]), [[1.0], [2.0]]),
]


@pytest.mark.parametrize(("make", "values"), LISTS)
def test_tensors_in_lists_are_numbers(make: Callable[[], Any], values: Any) -> None:
    assert make().tolist() == values


def test_a_tensor_of_tensors_of_several_elements_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"torch\.stack"):
        torch.tensor([torch.ones(2), torch.ones(2)])


def test_data_of_another_tensor_is_shared() -> None:
    flat, x = torch.arange(6.0), torch.zeros(2, 2)
    x.data = flat[1:5].view_as(x)
    flat[1] = 100.0
    x.add_(1)
    assert flat.tolist() == [0, 101, 3, 4, 5, 5] and x.tolist() == [[101, 3], [4, 5]]
    leaf, other = torch.zeros(3, requires_grad=True), torch.ones(3)
    leaf.data = other
    other.add_(1)
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [4, 4, 4] and leaf.is_leaf
    x.data = x.data[:, :1].expand(2, 2)
    assert x.tolist() == [[101, 101], [4, 4]] and flat[1] == 101
    p = torch.nn.Parameter(torch.zeros(2, 2))
    with pytest.raises(GradientError, match=r"x\.data\.copy_"):
        p.data = flat[1:5].view_as(p)
    p.data = flat[1:5].view_as(p).clone()
    p.data = torch.ones(5)[:4].view(2, 2)  # of a vector that nobody else holds
    p.data = p.data[:1].expand(2, 2)
    assert p.tolist() == [[1, 1], [1, 1]]


FOREACH: list[tuple[str, tuple[Any, ...], list[Any]]] = [
    ("add", ([1.0, 2.0],), [3.0, 6.0]),
    ("mul", (2.0,), [4.0, 8.0]),
    ("addcmul", ("self", "self", 0.5), [4.0, 12.0]),
    ("addcdiv", ("self", "self", [1.0, 2.0]), [3.0, 6.0]),
    ("lerp", ("self", 0.5), [2.0, 4.0]),
    ("maximum", (3.0,), [3.0, 4.0]),
    ("sqrt", (), [2.0**0.5, 2.0]),
]


@pytest.mark.parametrize(("name", "args", "values"), FOREACH)
def test_foreach(name: str, args: tuple[Any, ...], values: list[float]) -> None:
    tensors = [torch.tensor(2.0), torch.tensor(4.0)]
    given = [tensors if x == "self" else torch.tensor(x) if name == "maximum" else x for x in args]
    assert [x.item() for x in getattr(torch, f"_foreach_{name}")(tensors, *given)] == pytest.approx(values)
    assert getattr(torch, f"_foreach_{name}_")(tensors, *given) is None
    assert [x.item() for x in tensors] == pytest.approx(values)


def test_storages_tell_shared_memory() -> None:
    tied, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    other.weight = tied.weight
    place = [
        x.untyped_storage().data_ptr() for x in (tied.weight, other.weight, tied.state_dict()["weight"], tied.bias)
    ]
    assert place[0] == place[1] == place[2] != place[3]
    x = torch.arange(6.0).view(2, 3)
    assert x[1].storage().data_ptr() == x.storage().data_ptr() and len(x.storage()) == 6
    assert x[1].untyped_storage().nbytes() == 24 and x[1].storage().tolist() == [0, 1, 2, 3, 4, 5]


def test_the_graph_of_gradients_can_be_walked() -> None:
    w = torch.ones(2, requires_grad=True)
    record, names = (w * 2).sum().grad_fn, []
    while record.next_functions:
        names.append(record.name())
        record = record.next_functions[0][0]
    assert record.variable is w and "mul_backward" in names and w.grad_fn is None


def test_dropout2d_of_two_axes() -> None:
    assert set(torch.nn.Dropout2d(0.5)(torch.ones(20, 20)).flatten().tolist()) == {0.0, 2.0}


class Tagged(torch.nn.Parameter):
    """A Parameter with a tag, made as in PyTorch."""

    def __new__(cls, data: Any, tag: str = "", requires_grad: bool = True) -> Any:
        made = super().__new__(cls, data, requires_grad)
        made.tag = tag
        return made


class Quantized(torch.nn.Parameter):
    def __new__(cls, data: Any, state: int) -> Any:
        made = torch.Tensor._make_subclass(cls, data, False)
        made.state = state
        return made


def test_classes_derived_from_parameter() -> None:
    module = torch.nn.Module()
    module.a, module.b = Tagged(torch.ones(2), tag="t"), Quantized(torch.ones(2), state=3)
    for twin in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert [type(p) for p in twin.parameters()] == [Tagged, Quantized]
        assert (twin.a.tag, twin.b.state, twin.b.requires_grad) == ("t", 3, False)
        (twin.a * twin.b).sum().backward()
        assert twin.a.grad.tolist() == [1, 1]
    assert issubclass(Tagged, torch.Tensor) and isinstance(module.a, torch.Tensor)


def test_classes_derived_from_tensor_have_no_instances() -> None:
    class Named(torch.Tensor):
        pass

    class Handling(torch.nn.Parameter):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any: ...

    assert not isinstance(torch.ones(2), Named) and torch.ones(2).as_subclass(torch.Tensor).tolist() == [1, 1]
    for make in (lambda: Named(2), lambda: torch.ones(2).as_subclass(Named), lambda: Handling(torch.ones(1))):
        with pytest.raises(UnsupportedError, match=r"\[Named\]|\[Handling\]"):
            make()


class Diagonal:
    """A matrix that means and sums handle by PyTorch's protocol."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.mean:
            return "mean"
        return (function.__name__, len(args)) if function is torch.matmul else NotImplemented


def test_objects_that_handle_functions() -> None:
    value = Diagonal()
    assert torch.mean(value) == "mean" and torch.matmul(torch.ones(2, 2), value) == ("matmul", 2)
    assert torch.overrides.has_torch_function((1, value)) and not torch.overrides.has_torch_function((1, torch.ones(1)))
    with pytest.raises(TypeError, match=r"\[exp\]"):
        torch.exp(value)


BITS: list[tuple[Callable[[], Any], Any]] = [
    (lambda: torch.tensor([1.0, 2.0]).view(torch.int32), [1065353216, 1073741824]),
    (lambda: torch.tensor([1.0]).view(torch.uint8), [0, 0, 128, 63]),
    (lambda: torch.tensor([[1, 2, 3, 4]], dtype=torch.uint8).view(torch.int16), [[513, 1027]]),
    (lambda: torch.arange(4.0).view(2, 2).t().view(torch.int32), [[0, 1073741824], [1065353216, 1077936128]]),
    (lambda: torch.tensor([1.0, 2.0]).view(torch.complex64), [1 + 2j]),
    (lambda: torch.tensor(1.0).bfloat16().view(torch.int16), 16256),
]


@pytest.mark.parametrize(("make", "values"), BITS)
def test_bits_as_another_dtype(make: Callable[[], Any], values: Any) -> None:
    assert make().tolist() == values


def test_writes_to_bits_are_seen() -> None:
    x = torch.tensor([1.0, 2.0])
    bits = x.view(torch.int32)
    bits[0] = 0
    x[1] = 1
    assert x.tolist() == [0.0, 1.0] and bits.tolist() == [0, 1065353216]
    with pytest.raises(ShapeError, match="multiple of 8 bytes"):
        torch.ones(3).view(torch.int64)
    with pytest.raises(GradientError, match="no gradient"):
        torch.ones(2, requires_grad=True).view(torch.float16)


def test_processes_do_not_start_while_a_model_is_shared() -> None:
    model = torch.nn.Linear(1, 1).share_memory()
    for process in (torch.multiprocessing.Process, torch.multiprocessing.get_context("spawn").Process):
        with pytest.raises(UnsupportedError, match=r"\[Process\.start\] share_memory"):
            process(target=print).start()
    with pytest.raises(UnsupportedError, match=r"\[Pool\]"):
        torch.multiprocessing.Pool(1)
    assert isinstance(model, torch.nn.Linear)
