"""Models, optimizers, schedules, compiled functions copied together: what was shared is shared, and both train on."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from tests.tensor.copying import trainer
from tests.tensor.copying.described import described, overlap
from tests.tensor.copying.test_every_class import ROOT, WAYS
from tests.tensor.copying.trainer import Net, Trainer

OPTIMIZERS = [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad]
MODES = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])


def test_what_a_model_shares_its_copy_shares() -> None:
    net = Net()
    for copied in WAYS.values():
        twin = copied(net)
        assert described(twin) == described(net) and not overlap(twin, net)
        assert twin.first.weight is twin.tied.weight and twin.also is twin.blocks[0]
        assert [p.name for p in twin.parameters()] == [p.name for p in net.parameters()]
        assert list(twin.state_dict()) == list(net.state_dict())
        assert twin.infer.__self__ is twin and twin.config["sizes"] is not net.config["sizes"]
        twin.first.weight.assign(twin.first.weight * 0.0)
        assert (twin.tied.weight.numpy() == 0).all() and (net.tied.weight.numpy() != 0).any()


def test_a_compiled_method_of_a_copy_is_the_copys() -> None:
    net = Net()
    x = rn.ones((2, 4))
    before = net.infer(x).numpy().copy()
    for copied in WAYS.values():
        twin = copied(net)
        twin.first.bias.assign(twin.first.bias + 1.0)
        np.testing.assert_array_equal(net.infer(x).numpy(), before)
        np.testing.assert_allclose(twin.infer(x).numpy(), before + 2.0, rtol=1e-6)
        alone = copied(net.infer)
        assert alone.__self__.infer is alone and alone.__self__ is not net
    assert copy.copy(net.infer).__self__ is net


def test_compiled_functions_are_known_by_their_names() -> None:
    x = rn.ones((3,))
    for copied in (copy.copy, *WAYS.values()):
        assert copied(trainer.tripled) is trainer.tripled
        again = copied(trainer.renamed)
        assert again(x).tolist() == [2.0] * 3 and again.name == "another name" and again._options.keep_grads
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(rn.compile(lambda x: x))


@pytest.mark.parametrize(("kind", "compiled"), [*((kind, False) for kind in OPTIMIZERS), (optim.Adam, True)])
def test_copies_in_the_middle_of_training_go_on_alike(kind: type[optim.Optimizer], compiled: bool) -> None:
    original = Trainer(kind)
    original.train(2, compiled)
    state = rn.get_rng_state()
    copies = [copied(original) for way, copied in WAYS.items() if way in ("deepcopy", "protocol 5")]
    expected = original.train(2, compiled)
    message = described(original.model.state_dict())
    for twin in copies:
        assert twin.optimizer.param_groups[0]["params"][0] is twin.model.first.weight
        assert twin.schedule.optimizer is twin.optimizer and twin.optimizer.param_groups[0].optimizer is twin.optimizer
        rn.set_rng_state(state)
        assert twin.train(2, compiled) == expected
        assert described(twin.model.state_dict()) == message
        assert twin.schedule.get_last_lr() == [0.0125]
    assert described(original.model.state_dict()) == message, "copies do not train the original"


@MODES
def test_the_best_weights_are_kept(compiled: bool) -> None:
    original = Trainer()
    original.train(2, compiled)
    best = copy.deepcopy(original.model.state_dict())
    message = described(best)
    original.train(3, compiled)
    assert described(best) == message
    original.model.load_state_dict(best)
    assert described(copy.deepcopy(original.model.state_dict())) == message
    original.train(2, compiled)
    assert described(best) == message, "loading shares nothing"


@MODES
def test_a_mean_of_weights_and_a_target_network(compiled: bool) -> None:
    """Against the same training in NumPy of what the copy should have seen."""
    original = Trainer(optim.SGD)
    alone = Trainer(optim.SGD)
    mean, target = copy.deepcopy(original.model), copy.deepcopy(original.model)
    expected = [p.numpy().copy() for p in original.model.parameters()]
    frozen = described(target)

    def blend(mean: nn.Module, model: nn.Module) -> None:
        for slow, p in zip(mean.parameters(), model.parameters(), strict=True):
            slow.assign(slow.value * 0.5 + p.value * 0.5)

    step = rn.compile(blend) if compiled else blend
    for _ in range(4):
        rn.manual_seed(original.epoch)
        losses = original.train(1, compiled)
        step(mean, original.model)
        expected = [
            e * np.float32(0.5) + p.numpy() * np.float32(0.5)
            for e, p in zip(expected, original.model.parameters(), strict=True)
        ]
        rn.manual_seed(alone.epoch)
        assert alone.train(1, compiled) == losses, "the copies change nothing for the original"
    for p, e in zip(mean.parameters(), expected, strict=True):
        np.testing.assert_array_equal(p.numpy(), e)
    assert described(target) == frozen
    target.load_state_dict(original.model.state_dict())
    assert described(target.state_dict()) == described(original.model.state_dict())


def test_an_optimizer_copied_alone_is_consistent() -> None:
    original = Trainer(optim.SGD)
    original.optimizer.param_groups[0]["momentum"] = 0.9
    original.train(2, False)
    p = original.optimizer.param_groups[0].params[0]
    for copied in WAYS.values():
        twin = copied(original.optimizer)
        q = twin.param_groups[0].params[0]
        assert q is not p and set(twin.state) == set(twin.param_groups[0].params)
        before, saved = p.numpy().copy(), q.numpy().copy()
        q.grad = rn.ones(q.shape)
        twin.step()
        assert (q.numpy() != saved).all() and (p.numpy() == before).all()
        twin.param_groups[0]["lr"] = 0.5
        twin.state[q].clear()
        twin.param_groups[0]["momentum"] = 0.5
        twin.step()  # makes the state again
        assert set(twin.state[q]) == {"momentum_buffer"} and original.optimizer.param_groups[0]["lr"] != 0.5


def test_a_shallow_copy_of_an_optimizer_steps_the_same_parameters() -> None:
    p = nn.Parameter(np.zeros(3, np.float32))
    original = optim.SGD([p], lr=1.0, momentum=0.5)
    twin = copy.copy(original)
    twin.param_groups[0]["lr"] = 0.5
    extra = nn.Parameter(np.zeros(2, np.float32))
    twin.add_param_group({"params": [extra]})
    p.grad = rn.ones((3,))
    original.step()
    twin.step()
    assert p.tolist() == [-1.75] * 3, "-1, then -(0.5 + 1)/2: the momentum is shared"
    assert extra not in original.state and len(original.param_groups) == 1


def test_groups_copied_alone_are_plain_dicts() -> None:
    original = Trainer(optim.SGD)
    for copied in (copy.copy, *WAYS.values()):
        group = copied(original.optimizer.param_groups[0])
        group["lr"] = 7.0
        assert group["lr"] == 7.0 and type(group) is dict
        assert original.optimizer.param_groups[0]["lr"] == 0.05


def test_generators_go_on_from_where_they_were() -> None:
    generator = rn.Generator(5)
    rn.rand(2, generator=generator)
    twins = [copied(generator) for copied in WAYS.values()]
    expected = rn.rand(4, generator=generator).tolist()
    assert all(rn.rand(4, generator=twin).tolist() == expected for twin in twins)
    assert rn.rand(4, generator=generator).tolist() != expected


@pytest.mark.suite
def test_training_goes_on_in_a_fresh_process(tmp_path: Path) -> None:
    original = Trainer()
    original.train(2, True)
    (tmp_path / "in").write_bytes(pickle.dumps((original, rn.get_rng_state())))
    expected = original.train(2, True), described(original)
    code = (
        "import pickle, sys; from pathlib import Path\n"
        "import runnel as rn; from tests.tensor.copying.described import described\n"
        "twin, state = pickle.loads(Path(sys.argv[1]).read_bytes()); rn.set_rng_state(state)\n"
        "found = twin.train(2, True), described(twin); Path(sys.argv[2]).write_bytes(pickle.dumps(found))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "in"), str(tmp_path / "out")]
    subprocess.run(command, cwd=ROOT, check=True)
    assert pickle.loads((tmp_path / "out").read_bytes()) == expected


def test_a_model_with_a_cycle() -> None:
    class Parent(nn.Module):
        def __init__(self) -> None:
            self.child = nn.Linear(2, 2)
            self.child.parent = [self]
            self.child.weight_owner = {self.child.weight: self}

    net: Any = Parent()
    twin = copy.deepcopy(net)
    assert twin.child.parent[0] is twin and next(iter(twin.child.weight_owner)) is twin.child.weight
