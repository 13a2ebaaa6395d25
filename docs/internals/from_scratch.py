"""A deep-learning framework from scratch: a graph, its derivative, a plan for its memory, and machine code.

The page from_scratch.md explains it part by part. It needs NumPy and llvmlite, and nothing of Runnel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

Pass = Callable[..., Any]  # a function that a reader may replace


class Op(NamedTuple):
    """An operation: ``code`` is LLVM text for one element, or else ``compute`` is NumPy for whole arrays.

    ``gradient(node, g, *inputs)`` gives the derivative by each input, where ``g`` is the one by the node.
    """

    name: str
    gradient: Callable[..., Sequence[Node]] | None = None
    code: str = ""
    compute: Callable[..., Any] | None = None

    def __call__(self, *inputs: Any) -> Node:
        """The op of each element of ``inputs``, which are brought to one shape."""
        nodes = [as_node(x) for x in inputs]
        shape = np.broadcast_shapes(*[x.shape for x in nodes])
        return Node(self, shape, *[broadcast_to(x, shape) for x in nodes])


class Node:
    """A value that can be computed: what an op makes of other nodes. Nothing is computed when it is declared."""

    def __init__(self, op: Op, shape: tuple[int, ...], *inputs: Node, value: Any = None) -> None:
        self.op, self.shape, self.inputs = op, shape, inputs
        self.value = value  # of a constant, and the first one of a variable

    def __repr__(self) -> str:
        return f"{self.op.name}{list(self.shape)}"

    def __add__(self, other: Any) -> Node:
        return add(self, other)

    def __sub__(self, other: Any) -> Node:
        return add(self, multiply(other, -1.0))

    def __mul__(self, other: Any) -> Node:
        return multiply(self, other)

    def __truediv__(self, other: Any) -> Node:
        return divide(self, other)

    def __matmul__(self, other: Node) -> Node:
        if self.shape[1:] != other.shape[:1]:
            raise ValueError(f"{self} and {other} have no product")
        return Node(matmul, self.shape[:1] + other.shape[1:], self, other)

    @property
    def T(self) -> Node:
        """The transposed matrix."""
        return Node(transpose, self.shape[::-1], self)


def placeholder(*shape: int) -> Node:
    """A value that each run is fed."""
    return Node(source, shape)


def variable(value: Any) -> Node:
    """A value that lasts from run to run, and begins as ``value``."""
    return Node(source, np.shape(value), value=np.array(value, np.float32))


def as_node(x: Any) -> Node:
    """``x``, a node or a number."""
    return x if isinstance(x, Node) else Node(constant, (), value=np.float32(x))


def broadcast_to(x: Node, shape: tuple[int, ...]) -> Node:
    """``x`` repeated along axes of size 1, and along new ones in front."""
    if x.op is constant:
        return Node(constant, shape, value=x.value)
    return x if x.shape == shape else Node(broadcast, shape, x)


def sum_to(x: Node, shape: tuple[int, ...]) -> Node:
    """The sum over the axes along which ``broadcast_to(…, x.shape)`` repeats an array of ``shape``."""
    return x if x.shape == shape else Node(total, shape, x)


def add_up(x: np.ndarray, out: np.ndarray) -> None:
    """What ``sum_to`` computes."""
    aligned = out.reshape((1,) * (x.ndim - out.ndim) + out.shape)
    axes = tuple(axis for axis in range(x.ndim) if aligned.shape[axis] != x.shape[axis])
    np.sum(x, axes, keepdims=True, out=aligned)


source = Op("source")
constant = Op("constant", code="bitcast i32 {bits} to float")
add = Op("add", lambda y, g, a, b: [g, g], "fadd float {0}, {1}")
multiply = Op("multiply", lambda y, g, a, b: [g * b, g * a], "fmul float {0}, {1}")
divide = Op("divide", lambda y, g, a, b: [g / b, g * y / b * -1.0], "fdiv float {0}, {1}")
exp = Op("exp", lambda y, g, x: [g * y], "call float @llvm.exp.f32(float {0})")
log = Op("log", lambda y, g, x: [g / x], "call float @llvm.log.f32(float {0})")
matmul = Op("matmul", lambda y, g, a, b: [g @ b.T, a.T @ g], compute=np.matmul)
transpose = Op("transpose", lambda y, g, x: [g.T], compute=lambda x, out: np.copyto(out, x.T))
broadcast = Op("broadcast", lambda y, g, x: [sum_to(g, x.shape)], compute=lambda x, out: np.copyto(out, x))
total = Op("sum", lambda y, g, x: [broadcast_to(g, x.shape)], compute=add_up)


def tanh(x: Node) -> Node:
    """The hyperbolic tangent, of ops that are there."""
    return as_node(1.0) - as_node(2.0) / (exp(x * 2.0) + 1.0)


def mean(x: Node) -> Node:
    """The mean of all elements."""
    return sum_to(x, ()) / float(np.prod(x.shape))


def ordered(nodes: Sequence[Node]) -> list[Node]:
    """``nodes`` and all that they need, each behind its inputs."""
    order: dict[Node, None] = {}
    waiting = list(reversed(nodes))
    while waiting:
        missing = [x for x in waiting[-1].inputs if x not in order]
        waiting += reversed(missing)
        if not missing:
            order[waiting.pop()] = None
    return list(order)


def gradients(y: Node, xs: Sequence[Node]) -> list[Node]:
    """The derivative of the sum of ``y`` by each of ``xs``: nodes again."""
    slopes = {y: broadcast_to(as_node(1.0), y.shape)}
    for node in reversed(ordered([y])):
        if node in slopes and node.op.gradient:
            for x, g in zip(node.inputs, node.op.gradient(node, slopes[node], *node.inputs), strict=True):
                slopes[x] = slopes[x] + g if x in slopes else g
    return [slopes[x] if x in slopes else broadcast_to(as_node(0.0), x.shape) for x in xs]


def descend(loss: Node, xs: Sequence[Node], rate: float, differentiate: Pass = gradients) -> dict[Node, Node]:
    """The values of variables after a step of gradient descent with momentum: v = 0.9 · v + g, x = x - rate · v."""
    updates: dict[Node, Node] = {}
    for x, g in zip(xs, differentiate(loss, xs), strict=True):
        velocity = variable(np.zeros(x.shape))
        updates[velocity] = velocity * 0.9 + g
        updates[x] = x - updates[velocity] * rate
    return updates


def fuse(order: Sequence[Node]) -> list[list[Node]]:
    """The nodes in groups, one kernel for each: neighbors that compute elements of one shape are a group."""
    groups: list[list[Node]] = []
    for node in order:
        before = groups[-1][-1] if groups else None
        if before and before.op.code and node.op.code and before.shape == node.shape:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def plan_memory(lives: Sequence[tuple[int, int, int]]) -> list[int]:
    """Where each value begins in one arena: the lowest place that is free for all of its life. ``lives`` has its size,
    the numbers of the step that writes it and of the last step that reads it."""
    offsets: list[int] = []
    for size, first, last in lives:
        offset = 0
        for taken, (extent, written, read) in sorted(zip(offsets, lives, strict=False)):
            if first <= read and written <= last and taken < offset + size:
                offset = max(offset, taken + extent)
        offsets.append(offset)
    return offsets


LOOP = """
declare float @llvm.exp.f32(float)
declare float @llvm.log.f32(float)
define void @kernel(i64 %n, {parameters}) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %end
body:
{body}
  %next = add i64 %i, 1
  br label %loop
end:
  ret void
}}
"""


def kernel_text(group: Sequence[Node], reads: Sequence[Node], writes: Sequence[Node]) -> str:
    """A loop that computes ``group`` for one element after another, ``reads`` and ``writes`` alone in memory."""
    name = {node: f"%v{i}" for i, node in enumerate([*reads, *group])}
    pointer = {node: f"%p{i}" for i, node in enumerate([*reads, *writes])}
    body = [f"{p} = getelementptr float, ptr %a{i}, i64 %i" for i, p in enumerate(pointer.values())]
    body += [f"{name[node]} = load float, ptr {pointer[node]}" for node in reads]
    for node in group:
        bits = node.value.view(np.int32) if node.op is constant else None
        body.append(f"{name[node]} = " + node.op.code.format(*[name[x] for x in node.inputs], bits=bits))
    body += [f"store float {name[node]}, ptr {pointer[node]}" for node in writes]
    parameters = ", ".join(f"ptr noalias %a{i}" for i in range(len(pointer)))
    return LOOP.format(parameters=parameters, body="\n".join(f"  {line}" for line in body))


@cache
def compiled(text: str, arrays: int) -> Callable[..., None]:
    """The machine code of ``text``: a function of the number of elements and of the addresses of ``arrays``."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module, target = llvm.parse_assembly(text), llvm.Target.from_default_triple()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    machine = target.create_target_machine(cpu=cpu, features=features, opt=3)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * arrays)
    function: Any = kind(engine.get_function_address("kernel"))
    function.engine = engine  # which owns the machine code
    return function


class Program:
    """Steps that compute ``tops``, on arrays whose places are known before anything runs."""

    def __init__(self, tops: Sequence[Node], session: Session) -> None:
        order = ordered(tops)
        self.tops = tops
        self.values = {x: session.array(x) for x in order if x.op is source}
        self.fed = [x for x in self.values if x.value is None]
        groups = session.fuse([x for x in order if x.op is not source])
        first = {node: i for i, group in enumerate(groups) for node in group}
        last = {x: i for i, group in enumerate(groups) for node in group for x in node.inputs}
        last.update({x: len(groups) for x in tops})
        stored = {x: int(np.prod(x.shape)) for x in first if last[x] > first[x]}
        places = session.plan_memory([(size, first[x], last[x]) for x, size in stored.items()])
        ends = [place + size for place, size in zip(places, stored.values(), strict=True)]
        self.arena = np.zeros(max(ends, default=0), np.float32)
        for x, place, end in zip(stored, places, ends, strict=True):
            self.values[x] = self.arena[place:end].reshape(x.shape)
        self.steps = [self.step(group) for group in groups]

    def step(self, group: Sequence[Node]) -> Callable[[], Any]:
        """Return the function that carries out a group."""
        if compute := group[0].op.compute:
            inputs, out = [self.values[x] for x in group[0].inputs], self.values[group[0]]
            return lambda: compute(*inputs, out=out)
        inside = set(group)
        reads = list(dict.fromkeys(x for node in group for x in node.inputs if x not in inside))
        writes = [node for node in group if node in self.values]
        kernel = compiled(kernel_text(group, reads, writes), len(reads) + len(writes))
        size, addresses = self.values[writes[0]].size, [self.values[x].ctypes.data for x in (*reads, *writes)]
        return lambda: kernel(size, *addresses)

    def __call__(self, feeds: Mapping[Node, Any]) -> list[np.ndarray]:
        for x in self.fed:
            if x not in feeds or np.shape(feeds[x]) != x.shape:
                raise ValueError(f"{x} has to be fed an array of its shape")
            self.values[x][...] = feeds[x]
        for step in self.steps:
            step()
        return [self.values[x].copy() for x in self.tops]


class Session:
    """Runs nodes, and keeps the values of variables. ``fuse`` and ``plan_memory`` are the passes that it uses."""

    def __init__(self, fuse: Pass = fuse, plan_memory: Pass = plan_memory) -> None:
        self.fuse, self.plan_memory = fuse, plan_memory
        self.arrays: dict[Node, np.ndarray] = {}
        self.programs: dict[Any, Program] = {}

    def array(self, x: Node) -> np.ndarray:
        """The memory of a placeholder or variable."""
        return self.arrays.setdefault(x, np.zeros(x.shape, np.float32) if x.value is None else x.value.copy())

    def run(self, fetches: Sequence[Node], feeds: Any = (), updates: Any = ()) -> list[np.ndarray]:
        """The values of ``fetches``. Then each variable in ``updates`` takes the value of the node beside it."""
        feeds, updates = dict(feeds), dict(updates)
        key = (*fetches,), (*updates.items(),)
        if key not in self.programs:
            self.programs[key] = Program([*fetches, *updates.values()], self)
        values = self.programs[key](feeds)
        for x, value in zip(updates, values[len(fetches) :], strict=True):
            self.array(x)[...] = value
        return values[: len(fetches)]


def demo(steps: int = 300) -> tuple[Any, ...]:
    """Train a network to tell whether the two coordinates of a point have the same sign; print what it learns."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (256, 2)).astype(np.float32)
    signs = np.sign(points[:, :1] * points[:, 1:])
    start = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 32), (32,), (32, 1))]

    x, label = placeholder(256, 2), placeholder(256, 1)
    w, b, v = model = [variable(value) for value in start]
    score = tanh(x @ w + b) @ v
    loss = mean(log(exp(score * label * -1.0) + 1.0))
    step = descend(loss, model, rate=0.1)

    session = Session()
    losses = [session.run([loss], {x: points, label: signs}, step)[0].item() for _ in range(steps)]
    (answer,) = session.run([score], {x: points})
    print(f"loss {losses[0]:.3f}, after {steps} steps {losses[-1]:.3f}; {(np.sign(answer) == signs).mean():.1%} right")
    return points, signs, start, losses


if __name__ == "__main__":
    demo()
