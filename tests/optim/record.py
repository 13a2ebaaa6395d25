"""Records in ``pytorch.json.gz`` what PyTorch's optimizers and schedules do with the cases of ``cases.py``.

python tests/optim/record.py     (with torch 2.13 and numpy, and without Runnel)
"""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import cases
import torch
from torch.optim import lr_scheduler, swa_utils

PLACE = Path(__file__).with_name("pytorch.json.gz")


def plain(value: Any) -> Any:
    """Return a value as JSON keeps it: numbers of a tensor with all their digits."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else None


def parameters(kind: str) -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.tensor(cases.start(shape))) for shape in cases.shapes(kind)]


def trajectory(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    params = parameters(kind)
    optimizer = getattr(torch.optim, kind)(params, **options)
    values: list[Any] = []
    halfway: Any = None
    for step in range(1, cases.STEPS + 1):
        for p in params:
            g = torch.tensor(cases.gradient(p.detach().numpy(), step))
            p.grad = g.to_sparse() if kind == "SparseAdam" else g
        optimizer.step()
        if step in cases.SEEN:
            values.append([p.detach().reshape(-1).tolist() for p in params])
        if step == 20:
            halfway = plain(optimizer.state_dict())
    return {"values": values, "state": halfway}


def search(options: dict[str, Any]) -> dict[str, Any]:
    params = parameters("LBFGS")
    optimizer = torch.optim.LBFGS(params, **options)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = sum(((p**4).sum() / 4 - (p * (k + 1)).sum() + p[..., :2].prod() for k, p in enumerate(params)))
        loss.backward()
        return loss

    values, losses = [], []
    for _ in range(cases.SEARCH_STEPS):
        losses.append(float(optimizer.step(closure)))
        values.append([p.detach().reshape(-1).tolist() for p in params])
    (state,) = optimizer.state_dict()["state"].values()
    return {"values": values, "losses": losses, "func_evals": state["func_evals"], "n_iter": state["n_iter"]}


def schedule(optimizer: torch.optim.Optimizer, kind: str, options: dict[str, Any]) -> Any:
    return cases.schedule((lr_scheduler, swa_utils), optimizer, kind, options)


def rates(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    groups = [{"params": [p], "lr": lr} for p, lr in zip(parameters("SGD"), (0.1, 0.5), strict=True)]
    optimizer = torch.optim.SGD(groups, momentum=0.9)
    result = schedule(optimizer, kind, options)
    lrs, momenta, halfway = [], [], None
    for epoch in range(cases.STEPS):
        lrs.append([group["lr"] for group in optimizer.param_groups])
        momenta.append([group["momentum"] for group in optimizer.param_groups])
        if epoch == 20:
            halfway = plain(result.state_dict())
        optimizer.step()
        result.step(cases.metric(epoch)) if kind == "ReduceLROnPlateau" else result.step()
    constant = all(pair == momenta[0] for pair in momenta)
    return {"rates": lrs, "momenta": momenta[:1] if constant else momenta, "state": halfway}


def main() -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    recorded = {
        "torch": torch.__version__,
        "optimizers": {name: trajectory(*case) for name, case in cases.OPTIMIZERS.items()},
        "searches": {name: search(options) for name, options in cases.SEARCHES.items()},
        "schedules": {name: rates(*case) for name, case in cases.SCHEDULES.items()},
    }
    text = json.dumps(recorded, separators=(",", ":"))
    PLACE.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
