"""Functions that change at each call what they, or other compiled functions, read of the same Modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from tests.compile.adversarial.worlds import Case, call, tensor


class Net(nn.Module):
    def __init__(self) -> None:
        self.count = 0
        self.mode: float | None = None
        self.linear = nn.Linear(3, 3)
        self.drop = nn.Sequential(nn.Identity(), nn.Dropout(0.0))
        self.deep = nn.Sequential(nn.Sequential(nn.Sequential(nn.Dropout(0.0))))


def count_through_dict(m: Any, x: Any) -> Any:
    out = x * m.count
    m.__dict__["count"] = m.count + 1
    return out


def count_read_through_dict(m: Any, x: Any) -> Any:
    out = x * m.__dict__["count"]
    m.count += 1
    return out


def count_through_vars(m: Any, x: Any) -> Any:
    out = x * vars(m)["count"]
    vars(m)["count"] += 1
    return out


def count_through_get(m: Any, x: Any) -> Any:
    attributes = m.__dict__
    out = x * attributes.get("count")
    attributes["count"] = attributes["count"] + 1
    return out


def count_through_update(m: Any, x: Any) -> Any:
    out = x * m.count
    m.__dict__.update(count=m.count + 1)
    return out


def count_through_merge(m: Any, x: Any) -> Any:
    attributes = m.__dict__
    attributes |= {"count": m.count + 1}
    return x * attributes["count"]


def count_past_the_class(m: Any, x: Any) -> Any:
    object.__setattr__(m, "count", m.count + 1)
    return x * m.__dict__["count"]


def more_attributes(m: Any, x: Any) -> Any:
    out = x * len(m.__dict__)
    setattr(m, f"a{m.count}", 1)
    m.count += 1
    return out


def names_counted(m: Any, x: Any) -> Any:
    number = sum(1 for name in vars(m) if name.startswith("a"))
    setattr(m, f"a{number % 3}", number)
    return x * number


def number_of_another_type(m: Any, x: Any) -> Any:
    if m.mode is None:
        m.mode = 1.0
        return x
    m.mode = None
    return x * 2


def int_that_becomes_float(m: Any, x: Any) -> Any:
    out = x * m.count
    m.count = 1.5 if m.count == 0 else 0
    return out


def there_and_gone_through_vars(m: Any, x: Any) -> Any:
    if "extra" in vars(m):
        del m.extra
        return x * 2
    m.extra = 1
    return x


def there_and_gone(m: Any, x: Any) -> Any:
    if hasattr(m, "extra"):
        del m.extra
        return x * 2
    m.extra = 1
    return x


def popped_and_set(m: Any, x: Any) -> Any:
    if m.__dict__.pop("extra", None) is None:
        m.__dict__.setdefault("extra", 2)
        return x
    return x * 3


def layer_changed_before(m: Any, x: Any) -> Any:
    m.drop[1].p = 0.0 if m.drop[1].p else 1.0
    return m.drop(x)


def layer_changed_after(m: Any, x: Any) -> Any:
    out = m.drop(x)
    m.drop[1].p = 0.0 if m.drop[1].p else 1.0
    return out


def layer_changed_through_dicts(m: Any, x: Any) -> Any:
    attributes = m.drop.__dict__["1"].__dict__
    out = m.drop(x)
    attributes["p"] = 1.0 - attributes["p"]
    return out


def deep_layer_changed(m: Any, x: Any) -> Any:
    out = m.deep(x)
    layer = m.deep[0][0][0]
    layer.p = 1.0 - layer.p
    return out


def deep_layer_found_by_modules(m: Any, x: Any) -> Any:
    out = m.deep(x)
    for module in m.modules():
        if isinstance(module, nn.Dropout):
            module.p = 1.0 - module.p
    return out


def layer_found_by_getattr(m: Any, x: Any) -> Any:
    out = m.drop(x) + m.linear(x)
    layer = getattr(getattr(m, "drop"), "1")
    setattr(layer, "p", 1.0 - layer.p)
    return out


def mode_of_the_tree(m: Any, x: Any) -> Any:
    out = m.drop(x) if m.count % 2 else x * 3
    m.count += 1
    m.train(bool(m.count % 3))
    return out


def layer_added_by_state(m: Any, x: Any) -> Any:
    out = x * len(list(m.children())) + m.drop.__dict__.get("note", 0)
    m.drop.__dict__["note"] = m.count
    m.count += 1
    return out


PROGRAMS = [value for value in list(globals().values()) if getattr(value, "__module__", "") == __name__]
PROGRAMS = [value for value in PROGRAMS if not isinstance(value, type)]


def state_of(m: Net) -> Any:
    return lambda: (
        [(k, v) for k, v in vars(m).items() if isinstance(v, (int, float))] + [m.drop[1].p, m.deep[0][0][0].p]
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("reached", ["as argument", "by closure"])
def test_own_write_is_seen(program: Any, reached: str) -> None:
    def make() -> Any:
        m, x = Net(), tensor(1.0, 2.0, 3.0)
        if reached == "as argument":
            return program, [call(m, x)] * 8, state_of(m)
        return (lambda x: program(m, x)), [call(x)] * 8, state_of(m)

    Case(make, None, None, None).run()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_own_write_is_seen_by_another_function(program: Any) -> None:
    """What a call changes unsettles the programs of others that look at the same Module."""

    def reader(m: Any, x: Any) -> Any:
        parts = [vars(m)["count"], len(vars(m)), m.mode is None, hasattr(m, "extra"), m.drop[1].p]
        total = x
        for i, part in enumerate(parts):
            total = total + 10**i * part
        return total + m.drop(x) + m.deep(x)

    x = tensor(1.0, 2.0, 3.0)
    rn.manual_seed(0)
    plain = Net()
    rn.manual_seed(0)
    ours = Net()
    write, read = rn.compile(program), rn.compile(reader)
    for turn in range(6):
        assert np.array_equal(write(ours, x).numpy(), program(plain, x).numpy()), turn
        for _ in range(2):
            assert np.array_equal(read(ours, x).numpy(), reader(plain, x).numpy()), turn
