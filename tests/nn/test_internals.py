"""PyTorch's private names of Modules: live dicts of members, and methods that subclasses override."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import ArgumentError, StateError


def test_members_are_live() -> None:
    layer = nn.Linear(2, 2)
    assert dict(layer._parameters) == {"weight": layer.weight, "bias": layer.bias} and "x" not in layer._parameters
    layer._parameters["weight"] = nn.Parameter(rn.zeros((2, 2)))
    del layer._parameters["bias"]
    layer.register_parameter("bias", None)
    assert layer._parameters["bias"] is None and layer(rn.ones((1, 2))).tolist() == [[0.0, 0.0]]
    del layer._parameters["weight"]
    layer.weight = rn.ones((2, 2))  # computed by whoever deleted the Parameter
    assert list(layer.parameters()) == [] and layer(rn.ones((1, 2))).tolist() == [[2.0, 2.0]]
    with pytest.raises(TypeError, match=r"\[register_parameter\]"):
        nn.Linear(1, 1)._parameters["new"] = rn.ones(1)
    with pytest.raises(ArgumentError, match="_parameters must be a parameter"):
        nn.Linear(1, 1)._parameters["weight"] = rn.ones(1)

    chain = nn.Sequential(OrderedDict(a=nn.Linear(1, 1), b=nn.ReLU()))
    for name, module in chain._modules.items():
        if isinstance(module, nn.ReLU):
            chain._modules[name] = nn.Tanh()
    chain._modules["c"] = nn.GELU()
    chain._modules.pop("a")
    assert [type(module).__name__ for module in chain] == ["Tanh", "GELU"] and list(chain[1:]._modules) == ["c"]
    assert list(nn.BatchNorm1d(2, track_running_stats=False)._buffers.values()) == [None] * 3
    rnn = nn.GRU(2, 3, bidirectional=True)
    assert rnn._flat_weights_names[-1] == "bias_hh_l0_reverse" and rnn._flat_weights[0] is rnn.weight_ih_l0


def test_programs_follow_changes_of_members() -> None:
    class Chain(nn.Module):
        def __init__(self) -> None:
            self.a, self.b = nn.Linear(3, 3), nn.Tanh()

        def forward(self, x: Any) -> Any:
            for module in self._modules.values():
                x = module(x)
            return x + len(self._parameters)

    chain, x = Chain(), rn.ones((2, 3))
    step = rn.compile(lambda x: chain(x))
    for change in (
        lambda: None,
        lambda: chain._modules.update(b=nn.ReLU()),
        lambda: setattr(chain, "p", nn.Parameter(x)),
    ):
        change()
        assert step(x).tolist() == chain(x).tolist()


def test_lists_hold_none() -> None:
    row = nn.ModuleList([None, nn.Linear(1, 1)])
    row.append(None)
    assert len(row) == 3 and row[0] is None and list(row.state_dict()) == ["1.weight", "1.bias"]
    assert list(row._modules) == ["0", "1", "2"]


class Renaming(nn.Module):
    def __init__(self) -> None:
        self.w = nn.Parameter(rn.ones(2))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        if prefix + "old" in state_dict:
            state_dict[prefix + "w"] = state_dict.pop(prefix + "old")
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "extra"] = rn.ones(1)


class Ignoring(Renaming):
    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Load nothing."""

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return kwargs["destination"]


def test_overridden_methods_of_states() -> None:
    model = nn.Sequential(Renaming(), nn.BatchNorm1d(1), Ignoring())
    assert list(model.state_dict())[:3] == ["0.w", "0.extra", "1.weight"] and not any(
        name.startswith("2.") for name in model.state_dict()
    )
    state = {"0.old": rn.zeros(2), **nn.Sequential(Renaming(), nn.BatchNorm1d(1)).state_dict()}
    del state["0.w"], state["0.extra"]
    assert repr(model.load_state_dict(state)) == "<All keys matched successfully>"
    assert model[0].w.tolist() == [0.0, 0.0] and model[2].w.tolist() == [1.0, 1.0]
    with pytest.raises(StateError, match=r"missing '0\.w'"):
        model.load_state_dict({name: x for name, x in state.items() if name != "0.old"})
    assert nn.Sequential(nn.BatchNorm1d(1)).state_dict()._metadata["0"] == {"version": 2}


def test_private_hooks() -> None:
    layer = nn.Linear(1, 1)
    layer._register_load_state_dict_pre_hook(lambda state, prefix, *rest: state.update(weight=state.pop("w")))
    layer.load_state_dict({"w": rn.zeros((1, 1)), "bias": rn.zeros(1)})
    layer._register_state_dict_hook(lambda module, state, prefix, metadata: state.pop("bias") and None)
    assert layer.weight.item() == 0.0 and list(layer.state_dict()) == ["weight"]
    errors: list[str] = []
    missing: list[str] = []
    layer._load_from_state_dict({"a.weight": rn.ones((2, 2))}, "a.", {}, True, missing, [], errors)
    assert missing == ["a.bias"] and "must have shape (1, 1)" in errors[0]
    assert layer._apply(lambda x: x + 1).weight.item() == 1.0 and layer._get_name() == "Linear"
    assert [name for name, _ in layer._named_members(lambda m: m._parameters.items())] == ["weight", "bias"]


def test_train_calls_overridden_methods_of_children() -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(2)

        def train(self, mode: bool = True) -> Any:
            super().train(mode)
            self.norm.eval()
            return self

    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(Frozen()))
    for mode in (True, False, True):
        net.train(mode)
        assert [m.training for m in net.modules()] == [mode, mode, mode, mode, False]
        rn.compile(lambda mode=mode: net.train(mode))()
        assert not net[1][0].norm.training and net[1][0].training is mode
