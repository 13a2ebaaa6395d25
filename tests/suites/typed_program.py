"""A user's program with all its types, as strict as a type checker gets: ``scripts/lint`` checks it."""
# mypy: disallow-untyped-defs, disallow-untyped-calls, disallow-untyped-decorators, disallow-any-generics
# mypy: disallow-subclassing-any, no-implicit-reexport, strict-equality, warn-unused-ignores, warn-redundant-casts

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import runnel as rn
from runnel import data, nn, optim, train

Sample = tuple[npt.NDArray[np.float32], int]


class Network(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.dropout = nn.Dropout(0.1)
        self.dense = nn.Linear(8 * 7 * 7, classes)
        self.register_buffer("mean", rn.zeros(1))

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        x = nn.functional.relu(self.norm(self.convolution(x - self.mean)))
        x = nn.functional.max_pool2d(x, 2).flatten(1)
        result: rn.Tensor = self.dense(self.dropout(x))
        return result


class Images(data.Dataset[Sample]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Sample:
        return np.zeros((1, 14, 14), np.float32), index % 10


class Bias(train.Callback):
    def on_epoch_end(self, trainer: train.Trainer, logs: dict[str, float]) -> None:
        print(trainer.epochs, logs["loss"])


def main(path: str) -> None:
    rn.manual_seed(0)
    model = Network(10)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = optim.CosineAnnealingLR(optimizer, 10)
    loader = data.DataLoader(Images(), batch_size=8, shuffle=True, num_workers=2)

    @rn.compile
    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss: rn.Tensor = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for x, y in loader:
        print(step(x, y).item())
    scheduler.step()
    with rn.no_grad():
        scores = model(rn.randn(2, 1, 14, 14))
        values, places = rn.topk(scores, 2, axis=1)
        print(values.tolist(), places.shape, rn.softmax(scores, dim=-1).numpy().sum())
    gradient = rn.grad(lambda w: (w**2).sum())(rn.ones(3))
    products = rn.vmap(lambda a, b: a @ b)(rn.ones((3, 2, 2)), rn.ones((3, 2, 2)))
    print(gradient.shape, products[0, :, 1], -products + 1, 1 - products, products > 0, products.mean(axis=0))
    rn.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    model.load_state_dict(rn.load(path)["model"])
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            print(name, parameter.shape, parameter.grad.norm())
    trainer = train.Trainer(model, nn.CrossEntropyLoss(), optimizer, metrics=["accuracy"], callbacks=[Bias()])
    history = trainer.fit(loader, epochs=2)
    print(history[0]["loss"], trainer.evaluate(loader)["accuracy"])
