"""State that does not fit: one clear error, and nothing has changed. The same for what constructors are given."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.core.errors import GradientError, RunnelError, StateError
from tests.tensor.copying.described import described

pytestmark = pytest.mark.suite


State = dict[str, Any]


def parameters() -> list[nn.Parameter]:
    return [nn.Parameter(np.ones((2, 3), np.float32), name="a"), nn.Parameter(np.ones(3, np.float32), name="b")]


def stepped(optimizer: optim.Optimizer) -> optim.Optimizer:
    for group in optimizer.param_groups:
        for p in group.params:
            p.grad = rn.ones(p.shape)
    optimizer.step()
    return optimizer


def adam() -> optim.Adam:
    return stepped(optim.Adam(parameters(), lr=0.1))


def group(**values: Any) -> Callable[[State], None]:
    return lambda state: state["param_groups"][0].update(values)


def without(place: Callable[[State], Any], key: Any) -> Callable[[State], None]:
    return lambda state: place(state).pop(key)


def moment(value: Any) -> Callable[[State], None]:
    return lambda state: state["state"][1].update(exp_avg=value)


WRONG: dict[str, tuple[Callable[[State], Any], str]] = {
    "negative lr": (group(lr=-5), "group 0: .*lr must be at least 0; got -5"),
    "lr in words": (group(lr="abc"), "lr must be a number; got 'abc'"),
    "no lr": (group(lr=None), "lr must be a number; got None"),
    "lr that is none": (group(lr=math.nan), "lr must be finite; got nan"),
    "endless lr": (group(lr=math.inf), "lr must be finite"),
    "truth for lr": (group(lr=True), "lr must be a number; got True"),
    "rates in a row": (group(lr=[0.1, 0.2]), "lr must be a number"),
    "one beta": (group(betas=(0.9,)), r"betas must be 2 numbers; got \(0.9,\)"),
    "betas in words": (group(betas=("a", "b")), "betas must be a number"),
    "a beta of 1": (group(betas=(0.9, 1.0)), r"betas must be in \[0, 1\)"),
    "a flag in words": (group(amsgrad="yes"), "amsgrad must be True or False; got 'yes'"),
    "a misspelt key": (group(weigth_decay=0.1), "group 0: .*has no hyper-parameter weigth_decay"),
    "a missing key": (without(lambda s: s["param_groups"][0], "lr"), "group 0 of Adam lacks 'lr'"),
    "two groups": (lambda s: s["param_groups"].append(s["param_groups"][0]), r"have \[2\] .*got \[2, 2\]"),
    "no groups": (lambda s: s["param_groups"].clear(), r"got \[\]"),
    "fewer": (group(params=[0]), r"have \[2\] Parameters; got \[1\]"),
    "numbers in words": (group(params=["0", "1"]), "list with the indices"),
    "one number twice": (group(params=[1, 1]), r'"state" has 0'),
    "state for nobody": (lambda s: s["state"].update({7: {}}), '"state" has 7'),
    "another shape": (moment(rn.ones((4,))), r"'b\.exp_avg' of Adam must have shape \(3,\); got \(4,\)"),
    "another dtype": (moment(np.ones(3, np.int64)), "must be float32; got int64"),
    "words for state": (moment("abc"), r"'b\.exp_avg' of Adam must be an array of numbers; got str"),
    "complex state": (moment(np.ones(3, complex)), "complex128"),
    "nothing for state": (moment(None), "must be an array of numbers; got NoneType"),
    "ragged state": (moment([[1.0], [2.0, 3.0]]), "must be an array of numbers; got list"),
    "an unknown slot": (lambda s: s["state"][0].update(momentum=rn.ones(3)), "'a' .number 0. in Adam has an unknown"),
    "a missing slot": (without(lambda s: s["state"][0], "exp_avg_sq"), "lacks 'exp_avg_sq'"),
    "a missing step": (without(lambda s: s["state"][0], "step"), "lacks 'step'"),
    "half a step": (lambda s: s["state"][0].update(step=1.5), "step of Parameter 'a' must be a whole number"),
    "steps backwards": (lambda s: s["state"][0].update(step=-1), "step of Parameter 'a' must be a whole number"),
    "steps in words": (lambda s: s["state"][0].update(step="two"), "step of Parameter 'a' must be a whole number"),
    "a list for a Parameter": (lambda s: s["state"].update({0: []}), "must be a dict; got list"),
    "no state": (without(lambda s: s, "state"), "the state of Adam lacks 'state'"),
    "an unknown part": (lambda s: s.update(extra=1), "the state of Adam has an unknown 'extra'"),
    "a list of state": (lambda s: s.update(state=[]), "got list and list"),
    "a word for groups": (lambda s: s.update(param_groups=3), "got int and dict"),
    "a list for a group": (lambda s: s.update(param_groups=[[]]), '"params" of a group must be a list'),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_state_changes_nothing(name: str) -> None:
    spoil, message = WRONG[name]
    source, target = adam(), optim.Adam(parameters(), lr=0.7)
    stepped(stepped(target))
    saved = source.state_dict()
    spoil(saved)
    before = described(target)
    with pytest.raises(RunnelError, match=rf"^\[load_state_dict\] .*{message}.*Nothing was loaded"):
        target.load_state_dict(saved)
    assert described(target) == before


@pytest.mark.parametrize("received", [None, 5, "abc", [], [("state", {})]])
def test_values_that_are_not_a_state(received: Any) -> None:
    optimizer = adam()
    with pytest.raises(StateError, match=f"the state of Adam must be a dict; got {type(received).__name__}"):
        optimizer.load_state_dict(received)


def test_combinations_are_checked_whole_and_set_whole() -> None:
    """Neither the old values nor the new ones are wrong, but some of each would be."""
    with_nesterov = stepped(optim.SGD(parameters(), lr=0.1, momentum=0.9, nesterov=True))
    plain = stepped(optim.SGD(parameters(), lr=0.1, dampening=0.5))
    one, two = with_nesterov.state_dict(), plain.state_dict()
    plain.load_state_dict(one)
    with_nesterov.load_state_dict(two)
    assert described(plain.state_dict()) == described(one) and described(with_nesterov.state_dict()) == described(two)
    one["param_groups"][0]["momentum"] = 0.0
    with pytest.raises(StateError, match="nesterov must have a positive momentum"):
        plain.load_state_dict(one)
    with pytest.raises(ValueError, match="nesterov must have a positive momentum"):
        plain.param_groups[0]["momentum"] = 0.0
    assert plain.param_groups[0]["momentum"] == 0.9


def test_parameters_that_have_not_stepped_may_be_left_out() -> None:
    saved = adam().state_dict()
    del saved["state"][1]
    target = adam()
    target.load_state_dict(saved)
    p, q = target.param_groups[0].params
    assert target._steps[0].tolist() == [1, 0]
    assert (target.state[q]["exp_avg"].numpy() == 0).all() and (target.state[p]["exp_avg"].numpy() != 0).all()


def test_numbers_of_other_libraries_become_plain_ones() -> None:
    optimizer = optim.Adam(parameters(), lr=np.float32(0.5), betas=[np.float64(0.5), 0.75], eps=rn.asarray(0.25))
    values = optimizer.param_groups[0]
    assert [type(values[name]) for name in ("lr", "betas", "eps")] == [float, tuple, float]
    assert values["betas"] == (0.5, 0.75) and type(values["betas"][0]) is float
    values["amsgrad"] = np.bool_(True)
    assert values["amsgrad"] is True and "max_exp_avg_sq" in optimizer.state[values.params[0]]


ARGUMENTS: list[tuple[Callable[[], Any], str]] = [
    (lambda: optim.SGD(parameters(), lr="abc"), "lr .* number; .* 'abc'"),
    (lambda: optim.SGD(parameters(), lr=None), "lr .* number; .* None"),
    (lambda: optim.SGD(parameters(), momentum=math.nan), "momentum must be finite"),
    (lambda: optim.SGD(parameters(), nesterov="no"), "nesterov .* True or False"),
    (lambda: optim.Adam(parameters(), betas=0.9), "betas must be two numbers; got 0.9"),
    (lambda: optim.Adam(parameters(), eps=-1.0), "eps must be at least 0"),
    (lambda: optim.RMSprop(parameters(), alpha=1.5), r"alpha must be in \[0, 1\]"),
    (lambda: optim.Adagrad(parameters(), lr_decay=-1), "lr_decay must be at least 0"),
    (lambda: optim.SparseAdam(parameters(), betas=(0.9,)), "betas must be two numbers"),
    (lambda: optim.SGD(None), "params must be Parameters.*got None"),
    (lambda: optim.SGD(nn.Linear(2, 2)), r"model\.parameters\(\); got a runnel Linear"),
    (lambda: optim.SGD("abc"), "must be Parameters; got str"),
    (lambda: optim.SGD([rn.ones((2,))]), "must be Parameters, or tensors .* has requires_grad=False"),
    (lambda: optim.SGD([rn.Variable([1j, 2])]), "params must be floating-point; .* holds complex128"),
    (lambda: optim.SGD([{"lr": 0.1}]), 'a group must be a dict with "params"'),
    (lambda: optim.SGD([{"params": parameters()}, parameters()[0]]), 'a group must be a dict with "params"'),
    (lambda: optim.StepLR("abc", 2), "optimizer must be an Optimizer; got 'abc'"),
    (lambda: optim.StepLR(adam(), 0), "step_size must be at least 1; got 0"),
    (lambda: optim.StepLR(adam(), 1.5), "step_size must be an int; got 1.5"),
    (lambda: optim.StepLR(adam(), 2, "abc"), "gamma must be a number; got 'abc'"),
    (lambda: optim.StepLR(adam(), 2, -0.5), "gamma must be at least 0"),
    (lambda: optim.CosineAnnealingLR(adam(), 0), "T_max must be at least 1"),
    (lambda: optim.CosineAnnealingLR(adam(), 5, None), "eta_min must be a number"),
    (lambda: optim.LinearLR(adam(), total_iters=0), "total_iters must be at least 1"),
    (lambda: optim.LinearLR(adam(), end_factor=math.inf), "end_factor must be finite"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), ARGUMENTS)
def test_constructors_refuse_nonsense(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError, GradientError), match=rf"^\[\w+\] .*{message}"):
        make()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: o.param_groups[0].__setitem__("lr", -1), "lr must be at least 0"),
        (lambda o: o.param_groups[0].__setitem__("lr", "abc"), "lr must be a number"),
        (lambda o: o.param_groups[0].__setitem__("momentun", 1.0), "has no hyper-parameter momentun; it has lr"),
        (lambda o: o.param_groups[0].__setitem__("params", []), "add_param_group"),
        (lambda o: o.param_groups[0].__delitem__("lr"), "'lr' cannot be removed"),
        (lambda o: o.param_groups[0].update(lr=0.5, eps=-1.0), "eps must be at least 0"),
        (lambda o: o.add_param_group({"params": [nn.Parameter(np.ones(2)), None]}), "got NoneType"),
        (lambda o: o.add_param_group({"params": parameters(), "lr": -1}), "lr must be at least 0"),
        (lambda o: o.add_param_group({"params": parameters(), "weigth_decay": 1}), "no hyper-parameter weigth_decay"),
        (lambda o: o.add_param_group({"params": list(nn.Embedding(2, 2, sparse=True).parameters())}), "sparse"),
    ],
)
def test_a_refused_change_of_groups_changes_nothing(change: Callable[[Any], Any], message: str) -> None:
    optimizer = adam()
    before = described(optimizer)
    with pytest.raises((TypeError, ValueError), match=message):
        change(optimizer)
    assert described(optimizer) == before
    stepped(optimizer)


# Schedules ------------------------------------------------------------------------------------------------------------


def schedule() -> optim.StepLR:
    result = optim.StepLR(optim.SGD(parameters(), lr=1.0), 2, 0.5)
    result.step()
    return result


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"last_epoch": -1}, "last_epoch must be at least 0"),
        ({"last_epoch": "two"}, "last_epoch must be a number"),
        ({"last_epoch": 1.5}, "last_epoch must be a whole number"),
        ({"base_lrs": [1.0, 2.0]}, '"base_lrs" of StepLR must have a number for each of 1 groups'),
        ({"base_lrs": ["abc"]}, "a learning rate must be a number"),
        ({"base_lrs": 1.0}, '"base_lrs" of StepLR must have a number for each of 1 groups'),
        ({"_last_lr": [-1.0]}, "a learning rate must be at least 0"),
        ({"step_size": 0}, "step_size must be at least 1"),
        ({"gamma": None}, "gamma must be a number"),
        ({"T_max": 3}, "the state of StepLR has an unknown 'T_max'"),
    ],
)
def test_a_wrong_state_of_a_schedule_changes_nothing(change: State, message: str) -> None:
    target = schedule()
    before = described(target)
    with pytest.raises(StateError, match=rf"^\[load_state_dict\] .*{message}.*Nothing was loaded"):
        target.load_state_dict({**schedule().state_dict(), **change})
    for received in (None, {}, [], {"last_epoch": 1}):
        with pytest.raises(StateError, match="the state of StepLR"):
            target.load_state_dict(received)  # type: ignore[arg-type]
    assert described(target) == before


def test_a_schedule_takes_its_hyper_parameters_and_rates_along() -> None:
    one, two = schedule(), optim.StepLR(optim.SGD(parameters(), lr=9.0), 7, 0.1)
    one.optimizer.param_groups[0]["lr"] = 0.3  # by hand: the schedule goes on from there
    saved = one.state_dict()
    retained = copy.deepcopy(saved)
    two.load_state_dict(saved)
    assert two.get_last_lr() == [0.3] and (two.step_size, two.gamma) == (2, 0.5)
    one.step()
    two.step()
    assert one.get_last_lr() == two.get_last_lr() == [0.15] and saved == retained


def test_momentum_that_is_off_for_a_step_continues_where_it_was() -> None:
    """As in PyTorch: the buffer stays. The same eagerly, compiled, and resumed while it is off."""

    def trained(wrap: Any, resumed_before: int | None) -> tuple[list[float], list[float]]:
        p = rn.Parameter(np.ones(1, np.float32))
        optimizer = optim.SGD([p], lr=0.1, momentum=0.9)

        def step() -> None:
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()

        run, recorded = wrap(step), []
        for number, momentum in enumerate((0.9, 0.0, 0.5, 0.5)):
            optimizer.param_groups[0]["momentum"] = momentum
            if number == resumed_before:
                saved = optimizer.state_dict()
                optimizer = optim.SGD([p], lr=0.1)
                optimizer.load_state_dict(saved)
            run()
            recorded.append(round(p.item(), 4))
        return recorded, optimizer.state_dict()["state"][0]["momentum_buffer"].tolist()

    expected = trained(lambda f: f, None)
    assert expected[0] == [0.8, 0.64, 0.412, 0.2156]
    assert expected[1] == pytest.approx([1.964])
    assert trained(rn.compile, None) == expected
    assert trained(lambda f: f, 1) == expected
    assert trained(rn.compile, 1) == expected


@pytest.mark.parametrize("wrap", [lambda f: f, rn.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("remove", ["all", "of one", "replaced"])
def test_state_that_is_removed_begins_again(wrap: Any, remove: str) -> None:
    def losses(resets: bool) -> list[float]:
        p, q = rn.Parameter(np.ones(2, np.float32)), rn.Parameter(np.full(2, 2.0, np.float32))
        optimizer = optim.Adam([p, q], lr=0.1)

        def step() -> Any:
            optimizer.zero_grad()
            loss = (p * p).sum() + (q * q * q).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run, recorded = wrap(step), []
        for number in range(6):
            if number == 3 and resets:
                if remove == "all":
                    optimizer.state.clear()
                elif remove == "of one":
                    optimizer.state[p].clear()
                    optimizer.state.pop(q)
                else:
                    optimizer.state = {}
            elif number == 3:
                optimizer = optim.Adam([p, q], lr=0.1)
            recorded.append(run().item())
        return recorded

    assert losses(True) == losses(False)


def test_variables_show_their_values_after_they_were_read() -> None:
    p = rn.Parameter(np.ones((2, 2), np.float32))
    text = repr(p)
    p.numpy()
    assert repr(p) == text
