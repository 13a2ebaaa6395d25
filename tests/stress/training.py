"""A training program that uses what programs are made of; run as a script, it prints a digest of all it computed.

python -m tests.stress.training STEPS [fork | damage FOLDER]
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

import runnel as rn
from runnel import nn, optim
from runnel.compiler.schedule import partition


def split_everything() -> None:
    """Let threads share whatever can be split, however small."""
    partition.WORTH_A_TEAM = partition.WORTH_SPLITTING = 0.0


class Net(nn.Module):
    """Embedding, products, row and column reductions, dropout: every form of kernel."""

    def __init__(self) -> None:
        self.table = nn.Embedding(11, 24)
        self.norm = nn.LayerNorm(24)
        self.hidden = nn.Linear(24, 40)
        self.drop = nn.Dropout(0.25)
        self.out = nn.Linear(40, 7)

    def forward(self, i: rn.Tensor) -> rn.Tensor:
        x = self.norm(self.table(i))
        return self.out(self.drop(rn.tanh(self.hidden(x))))


def training(compiled: bool = True) -> tuple[Net, Callable[[], rn.Tensor]]:
    """A network and a function that makes one step with it; the same numbers each time."""
    rn.manual_seed(3)
    net = Net()
    opt = optim.AdamW(net.parameters(), lr=1e-2)
    batches = np.random.default_rng(1).integers(0, 11, (5, 37))
    turn = [0]

    def step(i: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        opt.zero_grad()
        loss = rn.cross_entropy(net(i), y)
        loss.backward()
        opt.step()
        return loss

    run = rn.compile(step) if compiled else step

    def once() -> rn.Tensor:
        i = batches[turn[0] % len(batches)]
        turn[0] += 1
        return run(rn.asarray(i), rn.asarray(i * 3 % 7))

    return net, once


def digest(net: Net, losses: list[rn.Tensor]) -> str:
    """All parameters and losses, to the bit."""
    content = hashlib.sha256()
    for value in (*net.parameters(), *losses):
        content.update(value.numpy().tobytes())
    return content.hexdigest()


def trained(steps: int, compiled: bool = True) -> str:
    """The digest after ``steps`` steps."""
    net, once = training(compiled)
    return digest(net, [once() for _ in range(steps)])


def forking(steps: int) -> str:
    """Forks while another thread trains and computes; each child trains, too."""
    expected = trained(steps)
    going = True
    net, once = training()

    def busy() -> None:
        while going:
            once()
            (net.out.weight * 2.0).sum()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(12):
            child = os.fork()
            if child == 0:
                os._exit(0 if trained(steps) == expected else 3)
            status = os.waitpid(child, 0)[1]
            if status:
                raise SystemExit(f"a child ended with status {status}")
    finally:
        going = False
        thread.join()
    return trained(steps)


def damaging(steps: int, folder: Path) -> str:
    """Spoils all files of the cache in the middle of a training that goes on to need kernels."""
    net, once = training()
    losses = [once() for _ in range(steps // 2)]
    for number, file in enumerate(sorted(folder.glob("*.rno"))):
        whole = file.read_bytes()
        spoiled = (b"", whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1]), whole + b"\0")[number % 4]
        file.write_bytes(spoiled)
    (net.out.weight.detach() @ net.out.weight.detach().T).sum()  # kernels that the first half had no need of
    losses += [once() for _ in range(steps - len(losses))]
    return digest(net, losses)


if __name__ == "__main__":
    split_everything()
    count, *how = sys.argv[1:]
    if how[:1] == ["fork"]:
        print(forking(int(count)))
    elif how[:1] == ["damage"]:
        print(damaging(int(count), Path(how[1])))
    else:
        print(trained(int(count)))
