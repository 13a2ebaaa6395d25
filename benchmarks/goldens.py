"""Properties that must stay the same while Runnel is rebuilt: bits of results, planned bytes, kernels and barriers of
27 programs.

    python benchmarks/goldens.py --write goldens.json        # before a change
    python benchmarks/goldens.py --against goldens.json      # after it: says what differs; exit status 1 if bits do

Each program runs three times, on each target of this machine, on one thread and on two.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import runnel as rn
from runnel import nn, ops, optim
from runnel.cli.bench_cases import CASES
from runnel.nn import functional as F

WAYS = [(target, threads) for target in ("avx2", "avx512") for threads in (1, 2)]
RUNS = 3
Program = tuple[Callable[..., Any], tuple[Any, ...], list[Any]]  # a function to compile, its arguments, its Variables


def drawn(*shape: int, seed: int = 0, dtype: Any = np.float32) -> rn.Tensor:
    return rn.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def weight(*shape: int, seed: int = 0, dtype: Any = np.float32) -> nn.Parameter:
    return nn.Parameter(drawn(*shape, seed=seed, dtype=dtype) * 0.1)


def trained(loss: Callable[..., Any], parameters: list[Any], *data: Any, optimizer: Any = None) -> Program:
    """Steps of an optimizer on ``loss(*data)``."""
    rule = optim.SGD(parameters, 0.1) if optimizer is None else optimizer(parameters)

    def step(*xs: Any) -> Any:
        rule.zero_grad()
        value = loss(*xs)
        value.backward()
        rule.step()
        return value

    return step, data, parameters


def of_case(name: str) -> Program:
    prepared = CASES[name].prepared()
    return prepared.step, prepared.data, list(prepared.network.parameters())


def of_optimizer(make: Callable[[Any], Any]) -> Program:
    w, b = weight(20, 30), weight(30, seed=1)
    x = drawn(16, 20, seed=2)
    return trained(lambda x: (ops.tanh(x @ w + b) ** 2).mean(), [w, b], x, optimizer=make)


def recurrence(*, reverse: bool = False, checkpoint_every: int | None = None) -> Program:
    w, u = weight(12, 24), weight(24, 24, seed=1)

    def loss(xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = ops.tanh(x @ w + h @ u)
            return h, h

        last, every = rn.scan(step, rn.zeros((5, 24)), xs, reverse=reverse, checkpoint_every=checkpoint_every)
        return (last**2).sum() + every.mean()

    return trained(loss, [w, u], drawn(17, 5, 12, seed=2))


def branches() -> Program:
    w = weight(8, 8)

    def loss(x: Any) -> Any:
        made = x @ w
        return rn.cond(made.sum() > 0, lambda y: (y**2).mean(), lambda y: ops.exp(y).mean(), made)

    return trained(loss, [w], drawn(6, 8, seed=1))


def loop() -> Program:
    def halved(x: Any) -> Any:
        return rn.while_loop(lambda c: (c[0] ** 2).sum() > 1, lambda c: (c[0] * 0.5, c[1] + 1), (x, rn.zeros(())))

    return halved, (drawn(30, 7),), []


def attention(*, packed: bool, dropout: float, causal: bool) -> Program:
    w = weight(32, 96)
    key = rn.asarray(np.array([7, 9], np.uint32))

    def loss(x: Any) -> Any:
        batch, time, _ = x.shape
        made = (x @ w).reshape(batch, time, 3, 4, 8)
        if packed:
            return (ops.packed_attention(made, is_causal=causal) ** 2).mean()
        q, k, v = (made[:, :, i].permute(0, 2, 1, 3) for i in range(3))
        found = ops.scaled_dot_product_attention(
            q, k[:, :2], v[:, :2], None, dropout, causal, enable_gqa=True, dropout_key=key if dropout else None
        )
        return (found**2).mean()

    return trained(loss, [w], drawn(2, 33, 32, seed=1))


def embedding() -> Program:
    table, w = weight(50, 16), weight(16, 50, seed=1)
    which = rn.asarray(np.random.default_rng(3).integers(0, 50, (8, 12)))
    return trained(lambda i: F.cross_entropy((table[i] @ w).reshape(-1, 50), i.reshape(-1)), [table, w], which)


def assignment() -> Program:
    w = weight(10, 10)

    def loss(x: Any) -> Any:
        made = x @ w
        made[2:5] = made[1:4] * 2
        made[:, 0] = 0.0
        return (made**2).mean()

    return trained(loss, [w], drawn(10, 10, seed=1))


def halves() -> Program:
    w = weight(40, 30)
    return trained(lambda x: ops.softmax(ops.cast(x @ w, "bfloat16"), -1).sum(0).max(), [w], drawn(64, 40, seed=1))


def second_order() -> Program:
    w = weight(6, 6)

    def program(x: Any) -> Any:
        return rn.grad(lambda y: (rn.grad(lambda z: ops.sin(z @ w).sum())(y) ** 2).sum())(x)

    return program, (drawn(4, 6, seed=1),), [w]


def reductions() -> Program:
    def program(x: Any) -> Any:
        return x.sum((0, 2)), x.max(axis=1), ops.logsumexp(x, -1), x.var(0, correction=0)

    return program, (drawn(9, 33, 41),), []


def draws() -> Program:
    def program(x: Any) -> Any:
        return x + rn.randn(*x.shape), ops.dropout(x, rn.asarray(np.array([1, 2], np.uint32)), 0.3)

    return program, (drawn(13, 29),), []


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "momentum": lambda p: optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: optim.Adam(p, 0.01),
    "adamw_amsgrad": lambda p: optim.AdamW(p, 0.01, amsgrad=True),
    "rmsprop": lambda p: optim.RMSprop(p, 0.01),
    "adagrad": lambda p: optim.Adagrad(p, 0.01),
}
PROGRAMS: dict[str, Callable[[], Program]] = {
    **{name: (lambda name=name: of_case(name)) for name in CASES},
    **{f"optimizer_{name}": (lambda make=make: of_optimizer(make)) for name, make in OPTIMIZERS.items()},
    "scan": recurrence,
    "scan_reverse": lambda: recurrence(reverse=True),
    "scan_checkpoints": lambda: recurrence(checkpoint_every=4),
    "cond": branches,
    "while": loop,
    "attention_packed": lambda: attention(packed=True, dropout=0.0, causal=True),
    "attention_grouped_dropout": lambda: attention(packed=False, dropout=0.25, causal=False),
    "embedding": embedding,
    "assignment": assignment,
    "bfloat16": halves,
    "second_order": second_order,
    "reductions": reductions,
    "random": draws,
}


def tensors_of(made: Any) -> list[Any]:
    if isinstance(made, (tuple, list)):
        return [x for y in made for x in tensors_of(y)]
    return [made]


def measured(name: str) -> dict[str, Any]:
    """Return the compared properties of one program, as this process computes them."""
    rn.manual_seed(0)
    function, arguments, variables = PROGRAMS[name]()
    compiled = rn.compile(function)
    digest = hashlib.blake2b(digest_size=12)
    for _ in range(RUNS):
        for x in tensors_of(compiled(*arguments)):
            digest.update(x.numpy().tobytes())
    for variable in variables:
        digest.update(variable.numpy().tobytes())
    plan = compiled.program(*arguments).plan
    return {
        "bits": digest.hexdigest(),
        "arena": plan.arena.peak,
        "kernels": len(plan.calls),
        "barriers": sum(plan.barriers) + sum(plan.again),
    }


def child(names: list[str]) -> None:
    for name in names:
        print(json.dumps([name, measured(name)]), flush=True)


def all_ways(names: list[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for target, threads in WAYS:
        environment = os.environ | {"RUNNEL_TARGET": target, "RUNNEL_NUM_THREADS": str(threads)}
        command = [sys.executable, __file__, "--child", *names]
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        if run.returncode:
            sys.exit(run.stderr)
        for line in run.stdout.splitlines():
            name, row = json.loads(line)
            found.setdefault(name, {})[f"{target}, {threads}"] = row
    return found


def compare(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> bool:
    """Print what differs; whether all bits are equal."""
    equal = True
    for name, ways in after.items():
        for way, row in ways.items():
            old = before.get(name, {}).get(way)
            if old is None:
                print(f"{name:28} {way}: not measured before")
                continue
            for what, value in row.items():
                if old[what] != value:
                    equal = equal and what != "bits"
                    print(f"{name:28} {way:10} {what}: {old[what]} -> {value}")
    print(f"{len(after)} programs in {len(WAYS)} ways: bits {'equal' if equal else 'DIFFER'}")
    return equal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--against", type=Path, metavar="FILE")
    parser.add_argument("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    found = all_ways(options.programs)
    if options.write:
        options.write.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if options.against and not compare(json.loads(options.against.read_text(encoding="utf-8")), found):
        sys.exit(1)


if __name__ == "__main__":
    main()
