"""Wrong arguments at every public function of tensor expressions: one clear sentence each, and nothing half-changed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import ArgumentError, ExpressionError, RunnelError

PRODUCT = rn.expressions.tensor_expr("C[i, j] += A[i, k] * B[k, j]")
A, B = rn.ones((20, 30)), rn.ones((30, 64))
NONSENSE: tuple[Any, ...] = (
    None, 1, -1, 0, 2.5, True, "q", "", "i j", "i", [], {}, object, (1,), b"i", float("nan"), 10**30, np.int64(4),
    rn.ones(2),
)  # fmt: skip
PLACES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], bool]]] = {}  # calls, and what they take


def place(name: str, takes: Callable[[Any], bool] = lambda v: False) -> Callable[[Callable[[Any], Any]], None]:
    def note(call: Callable[[Any], Any]) -> None:
        PLACES[name] = call, takes

    return note


def schedule() -> Any:
    return PRODUCT.schedule(A, B)


def tiled() -> Any:
    changed = schedule()
    changed.tile("i", "j", 5, 16)
    changed.cache("B")
    return changed


def is_(*values: Any) -> Callable[[Any], bool]:
    return lambda v: any(type(v) is type(x) and v == x for x in values)


def is_tensor(v: Any) -> bool:
    return isinstance(v, rn.Tensor)


LOOP = is_("i")
COUNT = is_(1, 10**30)
place("the text")(lambda v: rn.expressions.tensor_expr(v))
place("a size", is_(0, 1))(lambda v: rn.expressions.tensor_expr("O[i: 9] = A[s*i]", s=v)(rn.ones(9)))
place("an operand")(lambda v: PRODUCT(A, v))
for method in ("schedule", "automatic", "expression", "canonical", "nest"):
    place(f"an operand of {method}")(lambda v, method=method: getattr(PRODUCT, method)(A, v))
place("a schedule", lambda v: v is None or is_([])(v))(lambda v: PRODUCT.scheduled(v)(A, B))
place("a step")(lambda v: PRODUCT.scheduled([v])(A, B))
place("a step's name")(lambda v: PRODUCT.scheduled([(v, "i")])(A, B))
place("a step's argument", COUNT)(lambda v: PRODUCT.scheduled([("split", "i", v)])(A, B))
place("a step that is applied")(lambda v: schedule().apply(v))
place("the loop of split", LOOP)(lambda v: schedule().split(v, 2))
place("the factor of split", COUNT)(lambda v: schedule().split("i", v))
place("the names of split", lambda v: v is None)(lambda v: schedule().split("i", 2, v))
place("one name of split", is_("q", "i"))(lambda v: schedule().split("i", 2, (v, "x")))
place("the first loop of tile", LOOP)(lambda v: schedule().tile(v, "j", 2, 2))
place("the second loop of tile")(lambda v: schedule().tile("i", v, 2, 2))
place("the rows of tile", COUNT)(lambda v: schedule().tile("i", "j", v, 2))
place("the columns of tile", COUNT)(lambda v: schedule().tile("i", "j", 2, v))
place("a loop of reorder", LOOP)(lambda v: schedule().reorder(v, "j"))
place("a loop of reorder, once more")(lambda v: schedule().reorder("i", "i", v))
place("the outer loop of fuse", LOOP)(lambda v: schedule().fuse(v, "j"))
place("the inner loop of fuse")(lambda v: schedule().fuse("i", v))
place("the name of fuse", lambda v: v is None or is_("q")(v))(lambda v: schedule().fuse("i", "j", v))
for primitive in ("vectorise", "unroll", "parallel"):
    place(primitive, LOOP)(lambda v, primitive=primitive: getattr(schedule(), primitive)(v))
place("cache")(lambda v: schedule().cache(v))
place("the operand of compute_at")(lambda v: tiled().compute_at(v, "j_0"))
place("the loop of compute_at")(lambda v: tiled().compute_at("B", v))
place("what is searched")(lambda v: rn.expressions.search_schedule(v, A, B, trials=1))
place("an operand of search")(lambda v: rn.expressions.search_schedule(PRODUCT, A, v, trials=1))
place("trials", COUNT)(lambda v: rn.expressions.search_schedule(PRODUCT, A, B, trials=v))
place("seed", lambda v: type(v) is int)(lambda v: rn.expressions.search_schedule(PRODUCT, A, B, trials=1, seed=v))
place("log", lambda v: v is None or isinstance(v, str))(
    lambda v: rn.expressions.search_schedule(PRODUCT, A, B, trials=1, log=v)
)
place("x of reindex", lambda v: False)(lambda v: rn.expressions.reindex(v, (2, 2), ["i0", "i1"]))
place("shape of reindex")(lambda v: rn.expressions.reindex(A, v, ["i0", "i1"]))
place("a size of reindex", is_(0, 1))(lambda v: rn.expressions.reindex(A, (v, 2), ["i0", "i1"]))
place("indices of reindex")(lambda v: rn.expressions.reindex(A, (2, 2), v))
place("an index of reindex")(lambda v: rn.expressions.reindex(A, (2, 2), [v, "i1"]))
place("y of reindex_reduce")(lambda v: rn.expressions.reindex_reduce(v, "sum", (2, 2), ["i0", "i1"]))
place("op of reindex_reduce")(lambda v: rn.expressions.reindex_reduce(A, v, (20, 30), ["i0", "i1"]))
place("shape of reindex_reduce")(lambda v: rn.expressions.reindex_reduce(A, "sum", v, ["i0", "i1"]))
place("indices of reindex_reduce")(lambda v: rn.expressions.reindex_reduce(A, "sum", (20, 30), v))
place("an index of reindex_reduce")(lambda v: rn.expressions.reindex_reduce(A, "sum", (20, 30), [v, "i1"]))


@pytest.mark.parametrize("name", PLACES)
def test_nonsense_is_refused_in_one_sentence(name: str) -> None:
    call, takes = PLACES[name]
    count = 0
    for value in NONSENSE:
        if takes(value):
            continue
        with pytest.raises((RunnelError, TypeError)) as caught:
            call(value)
        first = str(caught.value).splitlines()[0]
        assert first.startswith("[") and first.endswith(".") and "cannot be done with" not in first, (value, first)
        count += 1
    assert count >= 12


MISTAKES: list[tuple[str, str]] = [  # steps on a tiled product with a cache of B
    ("split i_0 0", "'i_0' is split by 0; a factor is an integer of 1 or more"),
    ("split i 2", "no loop is called 'i' (loops: i_0, j_0, i_1, j_1, k)"),
    ("split k 4 k_1 k_1", "the two loops that 'k' is split into are both called 'k_1'"),
    ("split k 4 A x", "a loop cannot be called 'A'"),
    ("split k 4 i_0 x", "a loop cannot be called 'i_0'"),
    ("tile i_0 q 2 2", "no loop is called 'q'"),
    ("tile i_0 i_0 2 2", "'i_0' cannot be tiled with itself"),
    ("tile i_0 j_0 2 0", "'j_0' is split by 0"),
    ("reorder i_1 i_1", "a loop is named twice"),
    ("reorder k q", "no loop is called 'q'"),
    ("fuse i_0 k", "'k' is not the loop inside 'i_0'"),
    ("fuse j_1 k", "'j_1' and 'k' cannot be fused: one of them is reduced"),
    ("fuse j_1 j_1", "'j_1' is not the loop inside 'j_1'"),
    ("vectorise k", "'k' is reduced, and lanes would change the order"),
    ("parallel k", "'k' is reduced, and threads would change the order"),
    ("parallel j_0", "'j_0' is not the outermost loop"),
    ("unroll j", "no loop is called 'j'"),
    ("cache Q", "no operand is called 'Q'; the names are A, B"),
    ("cache C", "no operand is called 'C'; the names are A, B"),
    ("compute_at A i_0", "'A' has no cache"),
    ("compute_at B k", "'k' is reduced; caches are filled outside reduced loops"),
    ("compute_at B nowhere", "no loop is called 'nowhere'"),
    ("hurry i_0", "no primitive is called 'hurry'; the names are split, tile,"),
    ("split", "the step ('split',) has other arguments than 'split' takes"),
    ("parallel i_0 2", "has other arguments than 'parallel' takes"),
]


@pytest.mark.parametrize(("step", "told"), MISTAKES)
def test_primitives_that_fail_leave_the_schedule_as_it_was(step: str, told: str) -> None:
    name, *words = step.split()
    arguments = tuple(int(word) if word.isdigit() else word for word in words)
    changed = tiled()
    before, steps = str(changed), list(changed.steps)
    with pytest.raises(ExpressionError) as caught:
        changed.apply((name, *arguments))
    assert str(caught.value).startswith("[schedule] ") and told in str(caught.value)
    assert str(changed) == before and changed.steps == steps
    changed.compute_at("B", "j_0")
    assert bool((PRODUCT.scheduled(changed)(A, B) == 30).all())


def test_the_order_of_a_sums_terms_cannot_be_changed() -> None:
    total = rn.expressions.tensor_expr("O[i] += A[i, k, n]").schedule(rn.ones((4, 5, 6)))
    before = str(total)
    with pytest.raises(ExpressionError, match="the order of a sum's terms would change"):
        total.reorder("n", "k")
    with pytest.raises(ExpressionError, match="the order of a sum's terms would change"):
        total.tile("k", "n", 2, 2)  # which would put the inner part of k inside the outer one of n
    assert str(total) == before and total.steps == []


@pytest.mark.parametrize("seed", range(100))
def test_indices_outside_arrays_are_found_before_anything_runs(seed: int) -> None:
    """A subscript is refused where it takes a value outside its axis at some point, and nowhere else."""
    rng = random.Random(seed)
    a, b, c = rng.choice([-2, -1, 1, 2, 3]), rng.choice([-2, -1, 1, 2]), rng.randint(-4, 8)
    n, w, size = rng.randint(1, 6), rng.randint(1, 4), rng.randint(1, 24)
    text = f"O[y: {n}] += I[{a}*y + {b}*i + {c}] * W[i]"
    values = [a * y + b * i + c for y, i in itertools.product(range(n), range(w))]
    data = np.arange(1.0, size + 1, dtype=np.float32)
    run = lambda text: rn.expressions.tensor_expr(text)(rn.asarray(data), rn.ones(w))  # noqa: E731
    inside = [[v for v in values[y * w : (y + 1) * w] if 0 <= v < size] for y in range(n)]
    expected = [float(sum(data[v] for v in row)) for row in inside]
    if min(values) >= 0 and max(values) < size:
        assert run(text).tolist() == expected
        return
    with pytest.raises(
        ExpressionError, match=f"runs from {min(values)} to {max(values)}, and axis 0 of 'I' has {size}"
    ):
        run(text)
    assert run(f"{text} where 0 <= {a}*y + {b}*i + {c} < {size}").tolist() == expected


TEXTS = (
    "O[n, k, y: H] += I[n, c, s*y + i - 1] * W[k, c, i] where 0 <= s*y + i - 1 < H",
    "O[i] max= where(A[2*i] < 0.5, exp(A[2*i + 1]), -3) where i < 4",
    "C[i, j: N] = maximum(A[i], 1e-3) / (B[j: N] + 2) where i + j == 3",
)


@pytest.mark.parametrize("seed", range(300))
def test_cut_and_changed_texts_are_refused_or_mean_something(seed: int) -> None:
    rng = random.Random(seed)
    text = rng.choice(TEXTS)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        text = rng.choice(
            [
                text[:at],
                text[:at] + text[at + 1 :],
                text[:at] + rng.choice("[](),:*+<=1 iAé\n\0") + text[at:],
                text[at:],
            ]
        )
    try:
        expression = rn.expressions.tensor_expr(text, s=2, H=6)
        expression(*[rn.ones((6,) * 3) for _ in expression.names])
    except RunnelError as error:
        first = str(error).splitlines()[0]
        assert isinstance(error, (ExpressionError, ArgumentError)) and first.startswith("[tensor_expr] ")


@pytest.mark.parametrize("compiled", [False, True])
def test_errors_inside_modules_name_their_paths(compiled: bool) -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(rn.ones((3, 5)))
            self.expression = rn.expressions.tensor_expr("O[n, k] += I[n, c] * W[c, k]")

        def forward(self, x: Any) -> Any:
            return self.expression(x, self.weight)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Module()
            self.encoder.layers = nn.Sequential(nn.ReLU(), Layer())

        def forward(self, x: Any) -> Any:
            return self.encoder.layers(x)

    model = Model()
    run = rn.compile(model) if compiled else model
    with pytest.raises(ExpressionError) as caught:
        run(rn.ones((2, 4)))
    notes = "\n".join(getattr(caught.value, "__notes__", []))
    assert "encoder.layers.1" in notes + str(caught.value)
    with pytest.raises(RunnelError) as of_op:
        nn.Sequential(nn.Linear(3, 5))(rn.ones((2, 4)))
    assert [note.split("0")[0] for note in getattr(of_op.value, "__notes__", [])]
    assert run(rn.ones((2, 3))).shape == (2, 5)
