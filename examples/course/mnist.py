"""The course's networks on MNIST: logistic regression reaches 92 % of the validation digits, three layers 97 %.

    python examples/course/mnist.py [--model logistic|layers] [--data-dir DIR] [--epochs N]

They are declared with the assignments' interface, ``dlsys.autodiff``, and trained by gradient descent on batches of
1000 digits. The last 10,000 of the training digits are for validation.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
import tvm
from dlsys import autodiff as ad, tvm_op

from runnel import data
from runnel.core.errors import RunnelError

BATCH = 1000
RATE = 1e-3  # for the sum over a batch
SIZES = {"logistic": (784, 10), "layers": (784, 256, 100, 10)}


class Network:
    """Dense layers with a relu between them, and their training."""

    def __init__(self, sizes: tuple[int, ...], seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.x, self.labels = ad.Variable("x"), ad.Variable("labels")
        self.values: dict[ad.Node, tvm.NDArray] = {}
        scores = self.x
        for number, (rows, columns) in enumerate(itertools.pairwise(sizes), 1):
            scores = ad.relu_op(scores) if number > 1 else scores
            product = ad.matmul_op(scores, self.parameter(f"w{number}", 0.1 * rng.standard_normal((rows, columns))))
            scores = product + ad.broadcastto_op(self.parameter(f"b{number}", np.zeros(columns)), product)
        loss = ad.softmaxcrossentropy_op(scores, self.labels)
        self.training = ad.Executor([loss, *ad.gradients(loss, list(self.values))])
        self.answering = ad.Executor([scores])
        self.updates = [tvm_op.make_sgd_update(v.shape, RATE, "llvm", "llvm", "update") for v in self.values.values()]

    def parameter(self, name: str, value: np.ndarray) -> ad.Node:
        node = ad.Variable(name)
        self.values[node] = tvm.nd.array(value.astype(np.float32))
        return node

    def step(self, x: np.ndarray, labels: np.ndarray) -> float:
        """One step of gradient descent; gives the loss before it."""
        one_hot = (labels[:, None] == np.arange(10)).astype(np.float32)
        feeds = {self.x: tvm.nd.array(x), self.labels: tvm.nd.array(one_hot)}
        loss, *slopes = self.training.run({**self.values, **feeds})
        for value, slope, update in zip(self.values.values(), slopes, self.updates, strict=True):
            update(value, slope, value)
        return loss.asnumpy().item()

    def accuracy(self, x: np.ndarray, labels: np.ndarray) -> float:
        """The share of digits that are recognized."""
        (scores,) = self.answering.run({**self.values, self.x: tvm.nd.array(x)}, convert_to_numpy_ret_vals=True)
        return float((scores.argmax(1) == labels).mean())


def train(model: str, folder: str | None, epochs: int, seed: int = 0) -> float:
    """Train, and tell the accuracy on the validation digits."""
    digits = data.mnist(folder)
    count = len(digits.train_y) * 5 // 6 // BATCH * BATCH
    network = Network(SIZES[model], seed)
    for epoch in range(1, epochs + 1):
        begun = time.perf_counter()
        parts = [slice(start, start + BATCH) for start in range(0, count, BATCH)]
        losses = [network.step(digits.train_x[part], digits.train_y[part]) for part in parts]
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}, {time.perf_counter() - begun:.2f} s")
    accuracy = network.accuracy(digits.train_x[count:], digits.train_y[count:])
    print(f"{model}: {accuracy:.4f} of the validation digits")
    return accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", choices=SIZES, default="layers")
    parser.add_argument("--data-dir", metavar="DIR", help="folder of the data set; without it it is downloaded")
    parser.add_argument("--epochs", type=int, default=10)
    chosen = parser.parse_args()
    try:
        train(chosen.model, chosen.data_dir, chosen.epochs)
    except RunnelError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
