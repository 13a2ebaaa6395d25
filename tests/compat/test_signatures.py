"""PyTorch's signatures: each argument of each function, method, layer and optimizer binds, by position and by name."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import runnel as rn
import runnel.compat.torch as torch
from runnel.core.missing import known_keywords, known_positions
from runnel.core.public import _PUBLIC, _parameters, _places, _plain

PAGE = Path(__file__).with_name("signatures.txt")
METHODS = ("torch.Tensor", "torch.nn.Module", "torch.optim.Optimizer")


# Names with arguments that do not bind, and why.
REFUSED = {
    "PyTorch refuses what its stub files say": """
        torch.linspace torch.logspace torch.subtract torch.tensor torch.Tensor.cpu
        torch.Tensor.is_contiguous torch.Tensor.new_tensor torch.Tensor.requires_grad_
        torch.Tensor.subtract torch.Tensor.subtract_ torch.nn.RNNBase torch.nn.RNNCellBase
    """,
    "products of another dtype are for GPUs": "torch.addmm torch.baddbmm torch.bmm torch.mm",
    "a driver is for GPUs": "torch.linalg.svd torch.linalg.svdvals",
    "numbers and dtypes are passed by position": """
        torch.promote_types torch.repeat_interleave torch.result_type torch.sym_max torch.sym_min torch.sym_not
        torch.sym_sqrt
    """,
    "sizes are passed by position": """
        torch.Tensor.new torch.Tensor.resize_ torch.Tensor.sum_to_size torch.Tensor.map2_
    """,
    "memory has no storage to place a tensor in, and is not pinned": "torch.Tensor.is_pinned torch.Tensor.set_",
    "inner arguments of PyTorch": """
        torch.expand_copy torch.gru torch.lstm torch.rnn_relu torch.rnn_tanh torch.save torch.Tensor.expand
        torch.nn.functional.log_softmax torch.nn.functional.softmax torch.nn.functional.softmin
    """,
    "the default generator draws": "torch.rrelu torch.rrelu_ torch.nn.functional.rrelu_",
    "the argument has had another name since 2018": "torch.nn.Hardtanh",
    "the function is nn.functional.embedding_bag, whose arguments have another order": "torch.embedding_bag",
}


class Row(NamedTuple):
    """A signature: positional arguments, how many of them have no default, arguments by keyword, and those needed."""

    owner: str
    name: str
    places: list[str]
    first: int
    keywords: list[str]
    needed: list[str]


def rows() -> Iterator[Row]:
    owner = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            owner = line[1:-1]
        elif not line.startswith("#"):
            arguments, _, names = line.partition(": ")
            before, _, after = arguments.removeprefix("()").partition("*")
            places, keywords = before.split(), after.split()
            first, needed = sum("?" not in p for p in places), [k for k in keywords if "?" not in k]
            bare = [p.rstrip("?") for p in places], first, [k.rstrip("?") for k in keywords], needed
            yield from (Row(owner, name, *bare) for name in names.split())


def found(row: Row) -> Any:
    owner: Any = torch
    for part in row.owner.split(".")[1:]:
        owner = rn.Tensor if part == "Tensor" else getattr(owner, part)
    return getattr(owner, row.name, None)


def failures(row: Row) -> Iterator[str]:
    """Yield the arguments of a row that do not bind."""
    function: Any = found(row)
    is_class = isinstance(function, type)
    called = function.__init__ if is_class else function
    plain = _plain(called)
    parameters = own = None
    if _PUBLIC.get(called) is called:
        parameters, own = _parameters(plain), _places(plain)
    itself = (None,) * (is_class or row.owner in METHODS)

    def binds(count: int, names: Iterable[str]) -> bool:
        args, kwargs = itself + (None,) * count, dict.fromkeys([*names, *row.needed])
        try:
            if own is not None and len(args) > len(own):
                args, kwargs = known_positions(function.__name__, args, kwargs, own, parameters or ()) or (args, kwargs)
            if parameters is not None:
                kwargs.pop("out", None)
                kwargs = known_keywords(function.__name__, kwargs, parameters)
            inspect.signature(plain).bind(*args, **kwargs)
        except (TypeError, ValueError):
            return False
        return True

    for i, place in enumerate(row.places):
        if not binds(i, [place, *row.places[i + 1 : row.first]]):
            yield place
    if not binds(len(row.places), ()):
        yield "(positions)"
    yield from (keyword for keyword in row.keywords if not binds(row.first, [keyword]))


def test_each_argument_binds_or_is_refused() -> None:
    unbound = {f"{row.owner}.{row.name}" for row in rows() if callable(found(row)) and any(failures(row))}
    assert unbound == {name for names in REFUSED.values() for name in names.split()}


def test_there_are_as_many_names_as_before() -> None:
    there = [row for row in rows() if callable(found(row))]
    assert len({(row.owner, row.name) for row in there}) >= 1300
