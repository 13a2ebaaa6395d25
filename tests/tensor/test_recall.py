"""Calls that machine code recalls: they do what their functions do, and nothing is kept or lost."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.backends.host import memory
from runnel.compat import torch
from runnel.core.errors import AxisError
from runnel.core.recall import UNUSUAL

CALLS = 5  # the first is counted, the second is learned, a composition is compiled at the third


def arrays(*shapes: tuple[int, ...], seed: int = 0) -> list[rn.Tensor]:
    random = np.random.default_rng(seed)
    return [rn.asarray(random.standard_normal(shape).astype(np.float32)) for shape in shapes]


def plainly(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of the function itself."""
    mark = -1
    UNUSUAL.add(mark)
    try:
        return function(*args)
    finally:
        UNUSUAL.discard(mark)


def each(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


M, LARGE = (4, 6), (40, 40)
FUNCTIONS: list[tuple[str, Callable[..., Any], list[tuple[int, ...]]]] = [
    ("x + y", lambda x, y: x + y, [M, M]),
    ("broadcast", lambda x, y: x - y, [M, (6,)]),
    ("transposed operand", lambda x, y: x * y.T, [M, (6, 4)]),
    ("number on the left", lambda x: 2.0 / x, [M]),
    ("negative zero", lambda x: x * -0.0, [M]),
    ("zero", lambda x: x * 0.0, [M]),
    ("comparison", lambda x, y: x > y, [M, M]),
    ("unary", lambda x: rn.exp(x), [M]),
    ("keywords", lambda x: x.sum(dim=-1, keepdim=True), [M]),
    ("large result", lambda x: x + 1, [(40, 40)]),
    ("several results", lambda x: x.topk(2), [M]),
    ("named results", lambda x: x.max(dim=1), [M]),
    ("product", lambda x, y: x @ y, [M, (6, 3)]),
    ("cumulative", lambda x: rn.cumsum(x, 0), [M]),
    ("item", lambda x: x[1], [M]),
    ("slices", lambda x: x[1:3, ::2], [M]),
    ("new axis", lambda x: x[:, None], [M]),
    ("reshape", lambda x: x.reshape(3, -1), [M]),
    ("reshape of a view", lambda x: x[:, :4].reshape(16), [M]),
    ("views of views", lambda x: x.unsqueeze(0).squeeze(0).T[2:], [M]),
    ("pieces", lambda x: x.split(2, 1), [M]),
    ("joined", lambda x, y: rn.concat([x, y], 0), [M, M]),
    ("row", lambda x: list(x), [M]),
    ("composition", lambda x: nn.functional.softmax(x, 1), [M]),
    ("layer", lambda x, y: nn.functional.linear(x, y), [M, (3, 6)]),
    ("dtype", lambda x: x.to(rn.float64), [M]),
    ("copy", lambda x: x.clone(), [M]),
    ("detached", lambda x: x.detach(), [M]),
    ("no elements", lambda x: x + x, [(0, 3)]),
    ("one element", lambda x: -x, [()]),
]


@pytest.mark.parametrize(("function", "shapes"), [row[1:] for row in FUNCTIONS], ids=[row[0] for row in FUNCTIONS])
@pytest.mark.usefixtures("usual_effort")
def test_a_recalled_call_does_what_its_function_does(
    function: Callable[..., Any], shapes: list[tuple[int, ...]]
) -> None:
    for _ in range(CALLS):  # as a program from now on, if it is a composition
        plainly(function, *arrays(*shapes))
    for seed in range(CALLS):
        operands = arrays(*shapes, seed=seed)
        actual, expected = function(*operands), plainly(function, *operands)
        assert type(actual) is type(expected)
        for a, b in zip(each(actual), each(expected), strict=True):
            assert (a.aval, a.strides, a.requires_grad) == (b.aval, b.strides, b.requires_grad)
            assert a.numpy().tobytes() == b.numpy().tobytes()
            assert (a._view is None) == (b._view is None)
            if a._view is not None:
                assert a._view.steps == b._view.steps and a._view.base.aval is b._view.base.aval
                assert a._view.base is b._view.base or all(a._view.base is not x for x in operands)


LEAVES: dict[str, Callable[[], Any]] = {
    "ones": lambda: rn.ones(3, requires_grad=True), "tensor": lambda: rn.tensor([1.0, 2.0], requires_grad=True),
    "full": lambda: rn.full((2,), 2.0, requires_grad=True), "empty": lambda: torch.empty(3, requires_grad=True),
    "asarray": lambda: torch.asarray([1.0, 2.0], requires_grad=True),
    "linspace": lambda: torch.linspace(0, 1, 3, requires_grad=True),
}  # fmt: skip


@pytest.mark.parametrize("make", LEAVES.values(), ids=LEAVES)
def test_a_recalled_call_makes_leaves(make: Callable[[], Any]) -> None:
    made = [make() for _ in range(CALLS)]
    assert all(x.requires_grad and x.is_leaf for x in made)


@pytest.mark.parametrize(("function", "shapes"), [row[1:] for row in FUNCTIONS], ids=[row[0] for row in FUNCTIONS])
@pytest.mark.usefixtures("usual_effort")
def test_gradients_of_recalled_calls(function: Callable[..., Any], shapes: list[tuple[int, ...]]) -> None:
    def gradients(operands: list[rn.Tensor]) -> list[Any]:
        leaves = [nn.Parameter(x) for x in operands]
        for result in each(function(*leaves)):
            if result.requires_grad:
                result.sum().backward(retain_graph=True)
        return [None if p.grad is None else p.grad.numpy().tobytes() for p in leaves]

    for seed in range(CALLS):
        operands = arrays(*shapes, seed=seed)
        assert gradients(operands) == plainly(gradients, operands)


WRITES: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("+=", lambda z, y: z.__iadd__(y)),
    ("mul_", lambda z, y: z.mul_(0.5)),
    ("add_, alpha", lambda z, y: z.add_(y, alpha=0.5)),
    ("zero_", lambda z, y: z.zero_()),
    ("number at an item", lambda z, y: z.__setitem__((1, -1), 3.5)),
    ("number in a row", lambda z, y: z.__setitem__(0, 3.5)),
    ("row", lambda z, y: z.__setitem__(1, y[2])),
    ("column", lambda z, y: z.__setitem__((slice(None), 2), y[:, 0])),
    ("broadcast", lambda z, y: z.__setitem__((slice(1, 3), slice(None, None, 2)), y[0, :3])),
    ("mask", lambda z, y: z.__setitem__(y > 0, 0.0)),
    ("out", lambda z, y: rn.add(y, 1.0, out=z)),
]


@pytest.mark.parametrize("write", [row[1] for row in WRITES], ids=[row[0] for row in WRITES])
def test_recalled_writes(write: Callable[[Any, Any], Any]) -> None:
    for seed in range(CALLS):
        z, y = arrays(M, M, seed=seed)
        other, same = z.handle(), rn.asarray(z.numpy())
        before = z.numpy().copy()
        write(z, y)
        plainly(write, same, y)
        np.testing.assert_array_equal(z.numpy(), same.numpy())
        np.testing.assert_array_equal(other.numpy(), before)


def cell(x: Any, w: Any, b: Any) -> Any:
    """Return a cell of an LSTM: its gates are slices, and two compositions interrupt its run."""
    h = c = x
    for _ in range(2):
        i, f, g, o = nn.functional.linear(h, w, b).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    return h


RUNS: list[tuple[str, Callable[..., Any], list[tuple[int, ...]]]] = [
    ("one record", lambda x: x.sum(), [M]),
    ("chain", lambda x: x.exp().log().sigmoid().tanh(), [M]),
    ("several leaves", lambda x, y: (x * y + y) * x, [M, M]),
    ("one tensor twice", lambda x: (y := x.sin()) * y + y, [M]),
    ("broadcast", lambda x, y: (x * y).relu() ** 2, [M, (6,)]),
    ("products", lambda x, y: ((x @ y).relu() @ y.T).square(), [M, (6, 3)]),
    ("item", lambda x: x[0] * 2, [M]),
    ("slices of a leaf", lambda x: x[1:] * x[:-1] + x[:3], [M]),
    ("slices of a result", lambda x: (y := x.exp())[:, 1:] * y[:, :-1], [M]),
    ("views", lambda x: x.view(-1)[:8].reshape(2, 4).T * 3, [M]),
    ("joined", lambda x, y: rn.concat([x, y * 2, x], 1).cos(), [M, M]),
    ("composition between", lambda x, y: nn.functional.layer_norm(x.exp(), (6,)) * y.sin(), [M, M]),
    ("cell", cell, [(2, 3), (12, 3), (12,)]),
    ("large results between", lambda x: (x[:, None] * x).exp().sum((0, 1)) * 2, [(200, 100)]),
    ("many records", lambda x: rn.sum(rn.stack([(x * k).sin() for k in range(60)])), [M]),
    ("no gradient through", lambda x: x * (x > 0) + x.detach() * x, [M]),
]


@pytest.mark.parametrize(("function", "shapes"), [row[1:] for row in RUNS], ids=[row[0] for row in RUNS])
@pytest.mark.usefixtures("usual_effort")
def test_backward_passes_are_recalled_with_the_same_bits(
    function: Callable[..., Any], shapes: list[tuple[int, ...]]
) -> None:
    def gradients(operands: list[rn.Tensor], **options: Any) -> list[bytes]:
        leaves = [nn.Parameter(x) for x in operands[::2]] + [x.requires_grad_() for x in operands[1::2]]
        leaves = [leaves[i // 2 + (i % 2) * ((len(operands) + 1) // 2)] for i in range(len(operands))]
        for _ in range(2):  # adds to the first gradient
            function(*leaves).sum().backward(**options)
        result = function(*leaves)
        (result * rn.ones_like(result)).sum().backward(retain_graph=True, **options)
        return [leaf.grad.numpy().tobytes() for leaf in leaves]

    for seed in range(CALLS):
        actual = gradients(arrays(*shapes, seed=seed))
        assert actual == plainly(gradients, arrays(*shapes, seed=seed))
        assert actual == gradients(arrays(*shapes, seed=seed), create_graph=True)  # record by record


def test_hooks_see_each_gradient_of_a_run() -> None:
    seen: list[float] = []
    for turn in range(CALLS):
        x = rn.asarray([2.0]).requires_grad_()
        y = x * 3
        if turn == CALLS - 1:
            y.register_hook(lambda g: seen.append(float(g)))
        (y * y).sum().backward()
        assert float(x.grad) == 36.0
    assert seen == [12.0]


DRAWS: list[tuple[str, Callable[[Any], Any]]] = [
    ("rand", lambda z: rn.rand(4)),
    ("randn", lambda z: rn.randn(2, 3, dtype=rn.float64)),
    ("randint", lambda z: rn.randint(0, 9, (4,))),
    ("like", lambda z: rn.randn_like(z)),
    ("permutation", lambda z: rn.random.randperm(5)),
    ("normal", lambda z: rn.random.normal(1.0, 2.0, (3,))),
    ("normal_", lambda z: z.normal_(0.5, 2.0)),
    ("bernoulli_", lambda z: z.bernoulli_(0.3)),
    ("dropout", lambda z: nn.functional.dropout(z, 0.5)),
    ("dropout of channels", lambda z: nn.functional.dropout2d(z, 0.5)),
    ("evaluation", lambda z: nn.functional.dropout(z, 0.5, False)),
]


@pytest.mark.parametrize("draw", [row[1] for row in DRAWS], ids=[row[0] for row in DRAWS])
def test_recalled_draws_advance_the_generator(draw: Callable[[Any], Any]) -> None:
    def drawn() -> list[Any]:
        rn.manual_seed(3)
        z, values = arrays(M)[0], []
        for turn in range(2 * CALLS):
            values.append(draw(z).numpy().tobytes())
            if turn == CALLS:  # programs write the state in place, and others may hold it
                values += [step().numpy().tobytes(), step().numpy().tobytes()]
                held = rn.get_rng_state()
        return [*values, held.numpy().tobytes(), rn.get_rng_state().numpy().tobytes()]

    step = rn.compile(lambda: rn.rand(2))
    for _ in range(CALLS):
        draw(arrays(M)[0])
    assert drawn() == plainly(drawn)


def test_a_draw_is_refused_only_before_the_state_changes() -> None:
    z = arrays(M)[0]
    for _ in range(CALLS):
        z.normal_()
    p = arrays(M)[0].requires_grad_()
    alive = p * 1  # on the tape: machine code does not change it
    rn.manual_seed(5)
    with rn.no_grad():
        alive.normal_()
    count = rn.get_rng_state().tolist()[2]
    assert count == 1


def test_masks_choose_known_elements() -> None:
    x, leaf = arrays(M)[0], nn.Parameter(arrays(M)[0])
    for threshold in (-9.0, 0.0, 0.5, 9.0):
        mask, rows = x > threshold, x[:, 0] > threshold
        for key in (mask, rows):
            np.testing.assert_array_equal(x[key].numpy(), x.numpy()[key.numpy()])
            np.testing.assert_array_equal(leaf[key].numpy(), x.numpy()[key.numpy()])
        leaf.grad = None
        leaf[mask].sum().backward()
        np.testing.assert_array_equal(leaf.grad.numpy(), mask.numpy().astype(np.float32))


@pytest.mark.parametrize("write", [row[1] for row in WRITES], ids=[row[0] for row in WRITES])
def test_writes_are_seen_through_views(write: Callable[[Any, Any], Any]) -> None:
    for seed in range(CALLS):
        z, y = arrays(M, M, seed=seed)
        row = z[0]
        write(z, y)
        np.testing.assert_array_equal(row.numpy(), z.numpy()[0])
        base = arrays((1, *M), seed=seed)[0]
        write(base[0], y)
        np.testing.assert_array_equal(base[0].numpy(), z.numpy())


MADE: list[tuple[str, Callable[[], Any]]] = [
    ("zeros", lambda: rn.zeros(4, 4)),
    ("full", lambda: rn.full((3,), 2.5)),
    ("arange", lambda: rn.arange(5)),
    ("number", lambda: rn.tensor(1.5)),
    ("list", lambda: rn.tensor([1.0, 2.0])),
]


@pytest.mark.parametrize("make", [row[1] for row in MADE], ids=[row[0] for row in MADE])
def test_new_tensors_have_memory_of_their_own(make: Callable[[], Any]) -> None:
    made = [make() for _ in range(CALLS)]
    assert len({x.address for x in made}) == CALLS
    for x in made:
        np.testing.assert_array_equal(x.numpy(), plainly(make).numpy())


def test_arrays_are_read_at_each_call() -> None:
    array = np.zeros(3, np.float32)
    for i in range(CALLS):
        array[:] = i
        assert rn.asarray(array).tolist() == [i] * 3
        assert rn.asarray(np.full((2, 2), i)).tolist() == [[i, i], [i, i]]


def test_one_operand_twice_is_not_two_operands() -> None:
    for seed in range(CALLS):
        x, y = arrays((3,), (3,), seed=seed)
        np.testing.assert_array_equal((x * x).numpy(), x.numpy() * x.numpy())
        np.testing.assert_array_equal((x * y).numpy(), x.numpy() * y.numpy())


def test_calls_that_look_at_values_run_their_function() -> None:
    for seed in range(CALLS):
        (x,) = arrays((9,), seed=seed)
        np.testing.assert_array_equal(x[x > 0].numpy(), x.numpy()[x.numpy() > 0])
        np.testing.assert_array_equal(rn.unique(rn.round(x)).numpy(), np.unique(np.round(x.numpy())))
        assert float(x[0]) == x.numpy()[0] and bool(x[1] > 0) == (x.numpy()[1] > 0)


def test_random_numbers_go_on() -> None:
    (x,) = arrays((64,))
    drawn = [nn.functional.dropout(x, 0.5).numpy().tobytes() for _ in range(CALLS)]
    drawn += [rn.rand(3).numpy().tobytes() for _ in range(CALLS)]
    assert len(set(drawn)) == 2 * CALLS


def test_gradients_of_equal_shapes_are_of_their_own_tapes() -> None:
    for seed in range(CALLS):
        p = nn.Parameter(arrays((3,), seed=seed)[0])
        first, second = (p * 2.0).sum(), (p * 3.0).sum()
        assert [rn.autograd.grad(y, p)[0].tolist() for y in (first, second)] == [[2.0] * 3, [3.0] * 3]


def test_an_error_is_raised_at_the_line_of_the_user() -> None:
    (x,) = arrays((4,))
    for _ in range(CALLS):
        x[rn.asarray([1, 2])]
    with pytest.raises(AxisError, match="outside") as caught:
        x[rn.asarray([1, 9])]
    assert caught.traceback[-1].path.name == "test_recall.py"


def test_modes_hold_for_calls_that_are_known() -> None:
    x, y = arrays((4, 4), (4, 4))
    p = nn.Parameter(x)
    for _ in range(CALLS):
        assert (x @ y).dtype is rn.float32 and (p * y).requires_grad
        with rn.autocast():
            assert (x @ y).dtype is rn.bfloat16
        with rn.no_grad():
            assert not (p * y).requires_grad
        np.testing.assert_array_equal(rn.compile(lambda a: a * y)(x).numpy(), x.numpy() * y.numpy())
        np.testing.assert_array_equal(rn.vmap(lambda a: a * 2.0)(x).numpy(), x.numpy() * 2)
        p.assign(p * 0.5)
        np.testing.assert_array_equal((p * y).numpy(), p.numpy() * y.numpy())


@pytest.mark.parametrize(
    "call",
    [
        lambda x, p: x + x, lambda x, p: x[1:], lambda x, p: p + x, lambda x, p: p[0], lambda x, p: x.max(dim=0),
        lambda x, p: x.__iadd__(1.0), lambda x, p: x.__setitem__(0, 1.0), lambda x, p: rn.zeros(4, 4),
        lambda x, p: rn.tensor([1.0, 2.0]), lambda x, p: x.detach(), lambda x, p: x.sum().item(),
        lambda x, p: rn.asarray(np.ones(3)),
    ],
)  # fmt: skip
def test_references_are_counted(call: Callable[[Any, Any], Any]) -> None:
    (x, start) = arrays((4, 4), (4, 4))
    p = nn.Parameter(start)

    def counts() -> list[int]:
        gc.collect()
        shared = [x, p, x.aval, x.aval.strides, None, True, False, rn.Tensor, p.read(), memory.allocate]
        blocks = sys.getallocatedblocks() if hasattr(sys, "getallocatedblocks") else 0
        return [*map(sys.getrefcount, shared), blocks // 500]

    for _ in range(200):
        call(x, p)
    before = counts()
    for _ in range(4000):
        call(x, p)
    after = counts()
    assert all(abs(a - b) < 200 for a, b in zip(before, after, strict=True)), (before, after)


def test_threads_recall_calls_of_one_key() -> None:
    operands = [rn.asarray(np.full(8, i, np.float32)) for i in range(4)]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(500):
            x = operands[i]
            if (x + x)[1].item() != 2 * i or (x * 2.0).sum().item() != 16 * i:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_tensor_that_a_list_lets_go_of_lives_as_long_as_the_call() -> None:
    """Python runs where memory is allocated: signal handlers, finalizers, other threads."""
    items, others, allocates = arrays(LARGE, LARGE), [], memory.allocate.__code__
    expected = np.concatenate([x.numpy() for x in items]).tolist()
    for _ in range(CALLS):
        rn.concat(items)

    def let_go(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code is allocates:
            sys.setprofile(None)
            items.clear()
            others.extend(arrays(*[LARGE] * 20, seed=1))  # where the tensors were

    sys.setprofile(let_go)
    try:
        result = rn.concat(items)
    finally:
        sys.setprofile(None)
    assert not items and len(others) == 20 and result.tolist() == expected


@pytest.mark.suite
def test_no_machine_code_begins_for_a_device_without_it() -> None:
    program = """
import runnel as rn
from runnel.core.recall import Recalled
x = rn.ones(3, device="interpreter")
assert ((x + 1.0) + (x + 1.0)).tolist() == [4.0, 4.0, 4.0] and Recalled.equip is None
rn.ones(3) + 1.0
assert Recalled.equip is not None and ((x + 1.0) + (x + 1.0)).tolist() == [4.0, 4.0, 4.0]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.suite
def test_threads_that_begin_at_the_same_time_share_machine_code() -> None:
    program = """
import threading
import runnel as rn
from runnel.core.recall import Recalled
from runnel.tensor import recall
x, gate = rn.ones(3), threading.Barrier(4)
wrong = []
def work():
    gate.wait()
    for _ in range(300):
        if ((x + 1.0) * 2.0).tolist() != [4.0, 4.0, 4.0]:
            wrong.append(1)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong and Recalled.equip is not None
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
