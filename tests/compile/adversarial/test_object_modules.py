"""Modules, optimizers and objects of the user's in use, changed between calls."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

CASES: Final = r"""
## except_types
class B:
    pass
b = B()
b.d = {}
b.i = 1
b.ex = KeyError
def step(x):
    try:
        b.d["q"]
        [][b.i]
    except b.ex as e:
        return x * len(type(e).__name__)
    return x
#> b.ex = (IndexError,)
#> b.ex = (KeyError, IndexError)
#> b.d['q'] = 1
## raise_premade
class B:
    pass
b = B()
b.e = ValueError("v")
b.r = False
def step(x):
    if b.r:
        raise b.e
    return x
#> b.r = True
#> b.e = KeyError('k')
#> b.r = False
#> b.e.args = (5,); b.r = True
## dict_replaced
class B:
    pass
b = B()
b.o = B()
b.o.n = 0
b.o.k = 2
def step(x):
    b.o.n += 1
    return x * b.o.n + b.o.k
#> b.o.__dict__ = {'n': 50, 'k': 1}
#> b.o.__dict__['k'] = 7
#> b.o.__dict__.clear(); b.o.n = 0; b.o.k = 0
## dict_replaced_inside, eager: <string>:7:
class B:
    pass
b = B()
b.o = B()
b.o.n = 0
def step(x):
    b.o.__dict__ = {"n": b.o.n + 1}
    return x * b.o.n
#> b.o.n = 10
## class_attr_written
class B:
    pass
b = B()
class K:
    n = 0
b.o = K()
def step(x):
    K.n += 1
    b.o.n2 = b.o.n
    setattr(K, "q", K.n * 2)
    return x * b.o.n + b.o.q
#> K.n = 50
#> b.o.n = 3
#> del b.o.n
## class_attr_deleted, eager: <string>:8:
class B:
    pass
b = B()
class K:
    pass
def step(x):
    if "z" in K.__dict__:
        del K.z
    else:
        K.z = 5
    return x * getattr(K, "z", 1)
#> K.z = 9
## object_setattr
class B:
    pass
b = B()
b.o = B()
b.o.n = 0
def step(x):
    object.__setattr__(b.o, "n", b.o.n + 1)
    return x * object.__getattribute__(b.o, "n") + b.o.__getattribute__("n")
#> b.o.n = 5
## func_made_inside
class B:
    pass
b = B()
b.k = 2
def step(x):
    k = b.k
    def g(v, d=b.k):
        return v * d + k
    b.fn = g
    return g(x), b.fn(x, 3)
#> b.k = 5
#> b.k = 1.5
## func_made_then_called
class B:
    pass
def X(n=3):
    return tensor(*range(1, n + 1))
b = B()
b.fn = None
def step(x):
    if b.fn is None:
        n = 0
        def g(v):
            nonlocal n
            n += 1
            return v * n
        b.fn = g
    return b.fn(x)
#> b.fn(X())
#> b.fn = None
#> b.fn(X())
## method_bound_inside, eager: a method of a class made in the function leaves it
class B:
    pass
b = B()
b.k = 2
def step(x):
    m = types.MethodType(lambda s, v: v * s.k, b)
    b.mm = m
    return m(x)
#> b.k = 5
## namespace_made_inside, eager: a SimpleNamespace made in the function leaves it.
class B:
    pass
b = B()
b.k = 1
def step(x):
    b.ns = types.SimpleNamespace(y=x * 2, k=b.k)
    b.o = B()
    b.o.q = b.ns
    return b.o.q.y + b.ns.k
#> b.k = 4
#> b.ns.k = 7
## class_made_inside
class B:
    pass
b = B()
b.k = 1
def step(x):
    K = type("K", (B,), {"z": b.k})
    return x * K().z
#> b.k = 4
## cell_objects
class B:
    pass
b = B()
def mk():
    n = 0
    def f1():
        return n
    def f2(k):
        nonlocal n
        n += k
        return n
    return f1, f2
f1, f2 = mk()
def step(x):
    return x * f1() + f2(1)
#> f2(5)
#> f1.__closure__[0].cell_contents = 9
## print_tensor
class B:
    pass
b = B()
b.n = 0
b.s = [1, {"k": 2.5}]
def step(x):
    b.n += 1
    print(b.n, b.s)
    return x
#> b.s = 'q'
## param_flags
class B:
    pass
def net():
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
b = B()
b.m = net()
def step(x):
    return (
        x * sum(p.requires_grad for p in b.m.parameters())
        + len(list(b.m.named_modules()))
        + sum(p.numel() for p in b.m.parameters()) % 7
    )
#> b.m[0].weight.requires_grad = False
#> b.m.append(nn.ReLU())
#> b.m[2].bias = None
## module_meta
class B:
    pass
def net():
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
b = B()
b.m = net()
def step(x):
    return (
        x * b.m.training
        + isinstance(b.m[1], nn.Tanh)
        + len(b.m)
        + (b.m[0].bias is None)
        + b.m[0].out_features
        + len(repr(b.m))
        + len(b.m.state_dict())
    )
#> b.m.eval()
#> b.m[1] = nn.ReLU()
#> b.m[0] = nn.Linear(3, 5, bias=False)
#> b.m[0].out_features = 99
#> b.m[2].register_buffer('q', rn.ones(1))
## modulelist_reorder
class B:
    pass
b = B()
b.m = nn.ModuleList([nn.Linear(3, 3), nn.ReLU()])
def step(x):
    for l in b.m:
        x = l(x)
    return x
#> b.m[0], b.m[1] = b.m[1], b.m[0]
#> b.m.append(nn.Tanh())
#> b.m.pop(0)
#> b.m.extend([nn.ReLU()])
#> b.m.insert(0, nn.Sigmoid())
## moduledict
class B:
    pass
b = B()
b.m = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.ReLU()})
def step(x):
    for k, l in b.m.items():
        x = l(x) * len(k)
    return x
#> b.m['zz'] = nn.Tanh()
#> b.m.pop('a')
#> b.m.update({'q': nn.ReLU()})
#> b.m.clear()
## parameterlist
class B:
    pass
def X(n=3):
    return tensor(*range(1, n + 1))
b = B()
b.p = nn.ParameterList([rn.Parameter(X())])
def step(x):
    for p in b.p:
        x = x * p
    return x
#> b.p.append(rn.Parameter(X()))
#> b.p[0] = rn.Parameter(X() * 3)
#> b.p[0].data.mul_(2)
## grad_meta
class B:
    pass
def X(n=3):
    return tensor(*range(1, n + 1))
b = B()
b.w = rn.Parameter(X())
def step(x):
    return x * (b.w.grad is None) + (0 if b.w.grad is None else b.w.grad.sum()) + b.w.requires_grad
#> b.w.sum().backward()
#> b.w.grad.mul_(3)
#> b.w.grad = X()
#> b.w.requires_grad = False
#> b.w.grad = None
## rng_in_layer
class B:
    pass
b = B()
b.d = nn.Dropout(0.5)
def step(x):
    return b.d(x) + b.d(x)
#> b.d.p = .9
#> b.d.eval()
#> b.d.train(); rn.manual_seed(4)
#> b.d.inplace = True
## lambda_module
class B:
    pass
b = B()
class L(nn.Module):
    def __init__(s, fn):
        super().__init__()
        s.fn = fn
    def forward(s, x):
        return s.fn(x)
b.m = L(lambda x: x * 2)
def step(x):
    return b.m(x)
#> b.m.fn = lambda x: x * 5
#> L.forward = lambda s, x: x
## module_state_counter
class B:
    pass
b = B()
class L(nn.Module):
    def __init__(s):
        super().__init__()
        s.n = 0
        s.hist = []
        s.best = None
    def forward(s, x):
        s.n += 1
        if s.training:
            s.hist.append(s.n)
        y = x * s.n + len(s.hist)
        s.best = y if s.best is None else rn.maximum(s.best, y)
        return s.best
b.m = L()
def step(x):
    return b.m(x)
#> b.m.n = 50
#> b.m.hist.clear()
#> b.m.eval()
## module_call_override
class B:
    pass
b = B()
class L(nn.Module):
    k = 2
    def __call__(s, x):
        return super().__call__(x) + s.k
    def forward(s, x):
        return x * s.k
b.m = L()
def step(x):
    return b.m(x)
#> L.__call__ = lambda s, x: x * 5
#> del L.__call__
#> L.k = 9
## functional_swap
class B:
    pass
b = B()
F_ = types.SimpleNamespace(relu=nn.functional.relu)
b.act = rn.exp
def step(x):
    return F_.relu(x - 2) + b.act(x)
#> b.act = nn.functional.tanh
#> b.act = nn.Sigmoid()
#> F_.relu = lambda x: x * 100
## ref_cycle_state, traces: 8
class B:
    pass
b = B()
b.cur = None
def step(x):
    n = B()
    n.prev = b.cur
    n.v = x.sum()
    n.k = (b.cur.k if b.cur else 0) + 1
    b.cur = n
    return x * n.k
#> b.cur = None
#> b.cur.k = 50
## tree_made
class B:
    pass
b = B()
def step(x):
    r = B()
    r.l = B()
    r.r = r.l
    r.l.up = r
    r.k = [r, r.l]
    b.t = r
    return x, r.l is r.r, r.l.up is r
## mutate_arg_default
class B:
    pass
b = B()
def step(x, l={"n": 0}):
    l["n"] += 1
    return x * l["n"]
#> step.__defaults__[0]['n'] = 50
## args_tuple_attr, traces: 6
class B:
    pass
b = B()
b.hist = ()
b.n = 0
def step(x):
    b.hist += ((b.n, x.shape),)
    b.n += 1
    return x * len(b.hist)
#> b.hist = ()
## extended_del
class B:
    pass
b = B()
b.l = []
b.n = 0
def step(x):
    b.l.append(b.n)
    b.n += 1
    if len(b.l) >= 4:
        del b.l[::2]
    return x * sum(b.l), list(b.l)
#> b.l = [9] * 5
## nested_fn_global
class B:
    pass
b = B()
K1 = 2
def g2(x):
    return x * K1
def g1(x):
    return g2(x) + K1
def step(x):
    return g1(x)
#> K1 = 3
#> def g2(x): return x + K1
#> g1.__globals__['K1'] = 8
## star_import_ns
class B:
    pass
b = B()
NS = types.ModuleType("NS")
exec("K = 2\ndef fn(x): return x * K", NS.__dict__)
def step(x):
    return NS.fn(x)
#> NS.K = 4
#> NS.fn.__globals__['K'] = 9
## callable_class_attr
class B:
    pass
b = B()
class C:
    k = 4
    fn = rn.exp
    @staticmethod
    def fn(x):
        return x * 2
b.o = C()
def step(x):
    return b.o.fn(x)
#> C.fn = staticmethod(lambda x: x * 9)
#> b.o.fn = lambda x: x
#> del b.o.fn
#> C.fn = classmethod(lambda cls, x: x * cls.k)
"""


@pytest.mark.parametrize("story", stories(CASES))
def test_a_story(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
