#!/usr/bin/env python3
"""Makes the file of machine code in wheels: the kernels of single ops in common networks and training steps.

``scripts/prebuilt.py FILE [TARGET ...]`` runs small networks eagerly and writes the kernels that they need, for these
targets (``host``: this machine's, the default; or ``avx2``, ``avx512``, ...). Kernels serve every shape, so the sizes
here do not matter; which axes are strided, broadcast or reduced does. Every way of combining layers that changes such a
pattern needs a row; depth does not.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["RUNNEL_CACHE_DIR"] = tempfile.mkdtemp()  # before runnel: kernels that are cached already are not compiled

import numpy as np

import runnel as rn
import runnel.compat.torch as torch
from runnel import nn
from runnel.backends import context as contexts
from runnel.backends.context import CompileContext
from runnel.backends.cpu import prebuilt, target as targets
from runnel.backends.cpu.codegen import build, contract
from runnel.backends.host import threads
from runnel.compiler import entry
from runnel.core.errors import RunnelError
from runnel.loops.ir import Kernel

F = nn.functional
Net = Callable[[Any], Any]
STEPS = 2  # the second one finds state that the first one made


class Lambda(nn.Module):
    """A layer around a function."""

    def __init__(self, function: Callable[..., Any], *layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Any) -> Any:
        return self.function(x, *self.layers)


def conv(i: int, o: int, k: int = 3, stride: int = 1, **options: Any) -> list[nn.Module]:
    """Return a convolution of ``k`` × ``k``, with the padding that keeps the size at stride 1."""
    return [nn.Conv2d(i, o, k, stride, options.pop("padding", k // 2), **options)]


def normalized(i: int, o: int, k: int = 3, stride: int = 1, act: Any = nn.ReLU, **options: Any) -> list[nn.Module]:
    """Return a convolution without bias, a batch norm, and an activation."""
    return [*conv(i, o, k, stride, bias=False, **options), nn.BatchNorm2d(o), *([act()] if act else [])]


def residual(i: int, o: int, stride: int) -> nn.Module:
    """Return the basic block of a ResNet."""
    main = nn.Sequential(*normalized(i, o, 3, stride), *normalized(o, o, act=None))
    down = nn.Sequential(*normalized(i, o, 1, stride, act=None)) if stride != 1 or i != o else nn.Identity()
    return Lambda(lambda x, main, down: F.relu(main(x) + down(x)), main, down)


def inverted(i: int, o: int, k: int, stride: int, act: Any, squeeze: bool) -> nn.Module:
    """Return the inverted residual block of MobileNet and EfficientNet."""
    middle = [nn.Sequential(*conv(4 * i, 4, 1), nn.SiLU(), *conv(4, 4 * i, 1), nn.Sigmoid())] if squeeze else []
    head = nn.Sequential(*normalized(i, 4 * i, 1, act=act), *normalized(4 * i, 4 * i, k, stride, act, groups=4 * i))
    tail = nn.Sequential(*normalized(4 * i, o, 1, act=None))

    def forward(x: Any, head: Net, tail: Net, *gate: Net) -> Any:
        y = head(x)
        for g in gate:
            y = y * g(y.mean((2, 3), keepdim=True))
        y = tail(y)
        return x + y if stride == 1 and i == o else y

    return Lambda(forward, head, tail, *middle)


def dense(i: int, growth: int) -> nn.Module:
    """Return a layer of a DenseNet."""
    layers = [nn.BatchNorm2d(i), nn.ReLU(), *conv(i, 4 * growth, 1, bias=False)]
    layers += [nn.BatchNorm2d(4 * growth), nn.ReLU(), *conv(4 * growth, growth, bias=False)]
    return Lambda(lambda x, layer: rn.cat([x, layer(x)], 1), nn.Sequential(*layers))


def attention(d: int, heads: int, causal: bool, own: bool) -> nn.Module:
    """Return self-attention: by the function, or written out (``own``)."""

    def forward(x: Any, qkv: Net, out: Net) -> Any:
        b, t, _ = x.shape
        q, k, v = [part.reshape(b, t, heads, d // heads).transpose(1, 2) for part in qkv(x).chunk(3, -1)]
        if own:
            scores = q @ k.transpose(-2, -1) * (d // heads) ** -0.5
            if causal:
                scores = scores.masked_fill(rn.tril(rn.ones((t, t))) == 0, float("-inf"))
            y = F.dropout(scores.softmax(-1), 0.1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return out(y.transpose(1, 2).reshape(b, t, d))

    return Lambda(forward, nn.Linear(d, 3 * d), nn.Linear(d, d))


def block(d: int, heads: int, causal: bool, own: bool = False, act: Any = nn.GELU) -> nn.Module:
    """Return a block of a Transformer."""
    mlp = nn.Sequential(nn.Linear(d, 4 * d), act(), nn.Linear(4 * d, d), nn.Dropout(0.1))
    parts = nn.LayerNorm(d), attention(d, heads, causal, own), nn.LayerNorm(d), mlp

    def forward(x: Any, norm1: Net, mix: Net, norm2: Net, mlp: Net) -> Any:
        x = x + mix(norm1(x))
        return x + mlp(norm2(x))

    return Lambda(forward, *parts)


def standardized(i: int, o: int) -> nn.Module:
    """Return a convolution whose filters have mean 0 and variance 1."""

    def forward(x: Any, layer: Any) -> Any:
        weight = F.batch_norm(layer.weight.reshape(1, o, -1), None, None, training=True, momentum=0.0)
        return F.conv2d(x, weight.reshape_as(layer.weight), layer.bias, padding=1)

    return Lambda(forward, nn.Conv2d(i, o, 3))


def head(i: int) -> list[nn.Module]:
    """Return the classifier at the end of an image network."""
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 5)]


IMAGE, ROWS, TOKENS, SERIES = "image", "rows", "tokens", "series"


def networks() -> Iterator[tuple[str, nn.Module]]:
    """Yield networks with the kind of their input; their results are rows of five logits, or are reduced to them."""
    yield ROWS, nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Dropout(0.5), nn.Linear(24, 5))
    for act in (nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Softplus, nn.Mish, nn.Hardswish):
        yield ROWS, nn.Sequential(nn.Linear(12, 24, bias=False), act(), nn.LayerNorm(24), nn.Linear(24, 5))
    yield ROWS, nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 5))
    yield IMAGE, nn.Sequential(*conv(3, 8), nn.ReLU(), nn.MaxPool2d(2), *conv(8, 8, 5), nn.ReLU(), nn.MaxPool2d(2),
                               nn.Flatten(), nn.Linear(8 * 8 * 8, 5))  # fmt: skip
    yield IMAGE, nn.Sequential(*normalized(3, 16, 7, 2), nn.MaxPool2d(3, 2, 1), residual(16, 16, 1),
                               residual(16, 32, 2), residual(32, 32, 1), *head(32))  # fmt: skip
    yield IMAGE, nn.Sequential(*normalized(3, 16, 3, 2), *normalized(16, 16, 1), *normalized(16, 8, 3, groups=4),
                               *normalized(8, 8, 3, dilation=2, padding=2), nn.AvgPool2d(2), *head(8))  # fmt: skip
    for act, squeeze in ((nn.ReLU6, False), (nn.SiLU, True), (nn.Hardswish, True)):
        rows = [inverted(8, 8, 3, 1, act, squeeze), inverted(8, 16, 5, 2, act, squeeze),
                inverted(16, 16, 5, 1, act, squeeze), inverted(16, 8, 3, 2, act, squeeze),
                inverted(8, 8, 7, 1, act, squeeze)]  # fmt: skip
        yield IMAGE, nn.Sequential(*normalized(3, 8, 3, 2, act), *rows, nn.Dropout(0.2), *head(8))
    yield IMAGE, nn.Sequential(*normalized(3, 8), dense(8, 4), dense(12, 4), nn.BatchNorm2d(16), nn.ReLU(),
                               *conv(16, 8, 1, bias=False), nn.AvgPool2d(2), dense(8, 4), *head(12))  # fmt: skip
    yield IMAGE, nn.Sequential(*conv(3, 8), nn.GroupNorm(2, 8), nn.SiLU(), *conv(8, 8, 4, 2, padding=1),
                               nn.InstanceNorm2d(8), nn.LeakyReLU(0.2), nn.ConvTranspose2d(8, 8, 4, 2, 1),
                               nn.Upsample(scale_factor=2), nn.Tanh(), *head(8))  # fmt: skip
    yield IMAGE, nn.Sequential(nn.Conv2d(3, 16, 4, 4), Lambda(lambda x: x.permute(0, 2, 3, 1)), nn.LayerNorm(16),
                               nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8), Lambda(lambda x: x.permute(0, 3, 1, 2)),
                               *head(8))  # fmt: skip
    yield IMAGE, nn.Sequential(nn.Conv2d(3, 16, 8, 8), Lambda(lambda x: x.flatten(2).transpose(1, 2)),
                               block(16, 2, False), block(16, 2, False, own=True), nn.LayerNorm(16),
                               Lambda(lambda x: x.mean(1)), nn.Linear(16, 5))  # fmt: skip
    yield IMAGE, nn.Sequential(*conv(3, 8), nn.GELU(), standardized(8, 8), nn.GELU(), nn.AvgPool2d(3, 1, 1),
                               nn.Conv2d(8, 8, (1, 7), padding=(0, 3)), nn.ReLU(),
                               nn.Conv2d(8, 8, (7, 1), padding=(3, 0)), nn.MaxPool2d(3, 2),
                               nn.Conv2d(8, 12, 3, 2), nn.Hardswish(), *head(12))  # fmt: skip
    for width, heads in ((32, 1), (40, 2), (48, 2), (64, 2), (64, 1)):
        first = nn.Conv2d(3, width, 8, 8), Lambda(lambda x: x.flatten(2).transpose(1, 2))
        yield IMAGE, nn.Sequential(*first, block(width, heads, False), Lambda(lambda x: x[:, 0]), nn.Linear(width, 5))
    for act, own in ((nn.GELU, True), (nn.ReLU, False), (nn.SiLU, False)):
        yield TOKENS, nn.Sequential(nn.Embedding(11, 16), nn.Dropout(0.1), block(16, 2, True, own, act),
                                    nn.LayerNorm(16), nn.Linear(16, 5, bias=False))  # fmt: skip
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    yield TOKENS, nn.Sequential(nn.Embedding(11, 16), nn.TransformerEncoder(layer, 2), nn.Linear(16, 5))
    for cell in (nn.LSTM, nn.GRU, nn.RNN):
        recurrent = Lambda(lambda x, layer: layer(x)[0][:, -1], cell(16, 16, batch_first=True))
        yield TOKENS, nn.Sequential(nn.Embedding(11, 16), recurrent, nn.Linear(16, 5))
    yield SERIES, nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2),
                                nn.Conv1d(8, 8, 3, padding=2, dilation=2), nn.ReLU(), nn.AdaptiveAvgPool1d(1),
                                nn.Flatten(), nn.Linear(8, 5))  # fmt: skip


def inputs(kind: str, rng: np.random.Generator, batch: int, size: int) -> Any:
    """Return an input of this kind; ``size`` is the size of images."""
    if kind == TOKENS:
        return rn.asarray(rng.integers(0, 11, (batch, 6)))
    shape = {IMAGE: (3, size, size), ROWS: (12,), SERIES: (4, 10)}[kind]
    return rn.asarray(rng.random((batch, *shape), np.float32))


def train(kind: str, net: Any, optimizer: Any, batch: int, size: int = 32) -> None:
    """Train ``net`` for a few steps, as scripts do, and evaluate it."""
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        x = inputs(kind, rng, batch, size)
        logits = net(x).reshape(-1, 5)
        y = rn.asarray(rng.integers(0, 5, logits.shape[0]))
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        _ = loss.item(), (logits.argmax(1) == y).float().mean().item()
    net.eval()
    with rn.no_grad():
        net(x).softmax(-1).max(-1)


def others() -> Iterator[Callable[[], object]]:
    """Yield small programs: optimizers, losses, and ops that training scripts use beside layers."""
    optim = rn.optim
    for make in (
        lambda p: optim.SGD(p, 0.1), lambda p: optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-4),
        lambda p: optim.SGD(p, 0.1, momentum=0.9, nesterov=True), lambda p: optim.Adam(p), lambda p: optim.AdamW(p),
        lambda p: optim.Adam(p, betas=(0.5, 0.999)), lambda p: optim.RMSprop(p), lambda p: optim.Adagrad(p),
    ):  # fmt: skip
        net = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 5))
        yield lambda net=net, make=make: train(ROWS, net, make(net.parameters()), 3)
    p = nn.Parameter(rn.rand((4, 6)))
    target, positive = rn.rand((4, 6)), rn.rand((4, 6)) + 0.1
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits):
        yield lambda loss=loss: loss(p, target).backward()
    yield lambda: F.binary_cross_entropy(rn.sigmoid(p), target).backward()
    yield lambda: F.kl_div(p.log_softmax(-1), positive, reduction="batchmean").backward()
    yield lambda: F.nll_loss(p.log_softmax(1), rn.asarray([0, 1, 2, 3])).backward()
    x, y, row, column = rn.rand((4, 6)), rn.rand((4, 6)), rn.rand((6,)), rn.rand((4, 1))
    tables = ["add", "sub", "mul", "div", "maximum", "minimum", "pow", "eq", "lt", "gt", "le", "ge", "ne"]
    for other in (y, row, column, 2.0, 3):
        yield lambda other=other: [getattr(torch, op)(x, torch.as_tensor(other)) for op in tables]
        yield lambda other=other: [x + other, x - other, x * other, x / other, other + x, other - x, x > other]
    singles = ["neg", "abs", "exp", "log", "sqrt", "rsqrt", "square", "sin", "cos", "tanh", "sigmoid", "relu", "floor"]
    singles += ["round", "sign", "erf", "erfinv", "reciprocal"]
    for value in (x, x.T, p):
        yield lambda value=value: [getattr(torch, op)(value) for op in singles]
    for axis in (None, 0, 1, -1, (0, 1)):
        yield lambda axis=axis: [x.sum(axis), x.mean(axis), p.mean(axis), x.amax(axis), x.amin(axis)]
    for axis in (0, 1):
        yield lambda axis=axis: [x.max(axis), x.min(axis), x.argmax(axis), x.std(axis), x.var(axis), x.cumsum(axis),
                                 x.softmax(axis), x.log_softmax(axis), x.prod(axis), x.norm(dim=axis)]  # fmt: skip
    index, mask = rn.asarray([2, 0, 1]), x > 0.5
    yield lambda: [x.std(), x.var(), x.norm(), x.argmax(), x.max(), x.min(), mask.sum(), mask.any(), mask.all()]
    yield lambda: [x[0], x[:, 1], x[1:3], x[index], x[:, index], x[mask], x[..., None], x[::2], x[index, index]]
    yield lambda: [rn.where(mask, x, y), rn.where(mask, x, rn.asarray(0.0)), x.masked_fill(mask, 0.0), x.clamp(0, 0.5)]
    yield lambda: [rn.cat([x, y], 0), rn.cat([x, y], 1), rn.stack([x, y]), x.T.contiguous(), x.flip(0), x.tril()]
    yield lambda: [x.to(rn.float64), mask.float(), x.long(), x.int(), index.float(), x.bool(), x.double().float()]
    yield lambda: [rn.zeros((3, 4)), rn.ones((3, 4)), rn.full((3,), 0.5), rn.arange(5), rn.arange(0.0, 1.0, 0.1),
                   rn.linspace(0, 1, 5), rn.eye(3), rn.rand((3,)), rn.randn((3, 4)), rn.zeros_like(x)]  # fmt: skip
    yield lambda: [torch.randint(0, 5, (4,)), torch.randperm(6), torch.normal(0.0, 1.0, (3,)), torch.bernoulli(x)]
    yield lambda: [x @ y.T, x.T @ y, x @ row, torch.bmm(x[None], y.T[None]), torch.einsum("ij,kj->ik", x, y)]
    yield lambda: [x.topk(2), x.sort(1), F.one_hot(index, 5), x.gather(1, index[:, None][:1]), F.normalize(x, dim=1)]
    yield lambda: [nn.init.xavier_uniform_(p), nn.init.kaiming_normal_(p), nn.init.normal_(p, 0.0, 0.02)]
    yield lambda: [nn.init.trunc_normal_(p, std=0.02), nn.init.constant_(p, 0.1), nn.init.zeros_(p), nn.init.ones_(p)]
    for each in (nn.LSTMCell(6, 8), nn.GRUCell(6, 8)):
        yield lambda each=each: rn.stack(list(each(x))).sum().backward()

    def discounted() -> None:
        distribution = torch.distributions.Categorical(logits=p)
        action = distribution.sample()
        (distribution.log_prob(action) * rn.rand((4,)) + 0.01 * distribution.entropy()).mean().backward()
        normal = torch.distributions.Normal(p, p.exp())
        normal.log_prob(normal.rsample()).sum().backward()

    yield discounted


def has_any_size(net: nn.Module) -> bool:
    """Return whether a network takes images of any size: small ones have axes of length 1, which other kernels skip."""
    return any(isinstance(m, nn.AdaptiveAvgPool2d) for m in net.modules())


def run_programs() -> None:
    """Run all of them; one that raises is reported and left out."""
    for kind, net in networks():
        batches = (4,) if any(isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) for m in net.modules()) else (4, 1)
        for batch in batches:
            optimizer = rn.optim.AdamW(net.parameters())
            for size in (32, 17, 8) if kind == IMAGE and batch > 1 and has_any_size(net) else (32,):
                attempt(functools.partial(train, kind, net, optimizer, batch, size))
    for program in others():
        for _ in range(STEPS):
            attempt(program)


def attempt(program: Callable[[], object]) -> None:
    try:
        program()
    except (RunnelError, ValueError, TypeError, AttributeError) as error:
        print(f"prebuilt: a program failed: {error}", file=sys.stderr)


def recipes(programs: Callable[[], None]) -> list[entry.Recipe]:
    """Return the compilations of ``programs``, which are run."""
    made: list[entry.Recipe] = []
    usual = entry.Recipe.programs

    def noted(recipe: entry.Recipe) -> entry.Programs:
        made.append(recipe)
        return usual(recipe)

    entry.Recipe.programs = noted  # type: ignore[method-assign]
    try:
        programs()
    finally:
        entry.Recipe.programs = usual  # type: ignore[method-assign]
    return made


def compile_for(target: targets.InstructionSet, made: list[entry.Recipe]) -> None:
    """Compile the kernels of these recipes for another machine than this."""
    kernels: dict[str, Kernel] = {}
    for recipe in made:
        there = like(recipe.context, target, recipe.context.cache)
        with contexts.entered(there):
            plans = entry.Recipe(recipe.graph, recipe.bindings, there, recipe.options)._plan().plans
        kernels |= {call.kernel.name: call.kernel for plan in plans for call in plan.calls}
    with contexts.entered(like(contexts.current(), target, threads.LEAST)):
        for first in range(0, len(kernels), 64):
            build.compile_only(list(kernels.values())[first : first + 64])


def compile_library(target: targets.InstructionSet) -> None:
    """Compile the products of float32 matrices, for every size of cache that they are made for."""
    size = threads.LEAST
    while size <= threads.MOST:
        with contexts.entered(like(contexts.current(), target, size)):
            build.compile_only([], [contract.SYMBOLS["float32"]])
        size *= 2


def like(context: CompileContext, target: targets.InstructionSet, cache: int) -> CompileContext:
    """Return ``context`` for this target and size of cache."""
    return CompileContext(context.device, target, context.threads, target.precision, 0, cache)


def main(path: Path, names: list[str]) -> None:
    prebuilt.PATH.unlink(missing_ok=True)
    prebuilt.recording = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = recipes(run_programs)
    host = targets.host()
    for target in dict.fromkeys(host if name == "host" else targets.by_name(name) for name in names or ["host"]):
        compile_library(target)
        if target != host:
            compile_for(target, made)
    prebuilt.write(path, prebuilt.recording)
    print(f"{path}: {len(prebuilt.recording)} modules, {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
