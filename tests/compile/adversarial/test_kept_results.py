"""Functions that keep results, which are or hold tensors."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

CASES: Final = """
## cache_tensor
class B:
    pass
b = B()
b.k = 1
@functools.cache
def g(v):
    return rn.ones(v) * b.k
def step(x):
    return g(3) * x
#> g.cache_clear()
#> b.k = 5
#> g.cache_clear()
## cache_tensor_inplace
class B:
    pass
b = B()
b.k = 1
@functools.cache
def g(v):
    return rn.ones(v) * b.k
def step(x):
    return g(3) * x
#> g(3).add_(1)
#> g.cache_clear()
#> g(3).mul_(2)
## cache_tuple
class B:
    pass
b = B()
b.k = 1
@functools.cache
def g(v):
    return rn.ones(v) * b.k, {"k": [rn.zeros(v)]}
def step(x):
    return g(3)[0] * x + g(3)[1]["k"][0]
#> g.cache_clear()
#> g(3)[0].add_(1)
#> g.cache_clear(); b.k = 4
## cache_mask
class B:
    pass
b = B()
b.c = True
@functools.lru_cache(maxsize=None)
def mask(n, causal):
    return rn.tril(rn.ones((n, n)))[-1] if causal else rn.ones(n)
def step(x):
    return x * mask(len(x), b.c)
#> b.c = False
#> b.c = True
#> mask.cache_clear()
## cache_arrays
class B:
    pass
b = B()
b.k = 1
@functools.cache
def g(v):
    return np.ones(v, np.float32) * b.k
def step(x):
    return x * rn.asarray(g(3))
#> g.cache_clear(); b.k = 3
#> g(3)[0] = 9
## cache_method, eager: C.g keeps results for objects
class B:
    pass
b = B()
class C:
    k = 1
    @functools.lru_cache
    def g(s, v):
        return rn.ones(v) * s.k
b.o = C()
def step(x):
    return x * b.o.g(3)
#> b.o.k = 5
#> C.g.cache_clear()
#> b.o = C(); b.o.k = 2
## cache_grad, eager: a function that keeps results gives a tensor that requires a gradient
class B:
    pass
def X(n=3):
    return tensor(*range(1, n + 1))
b = B()
w = rn.Parameter(X())
@functools.cache
def g(v):
    return w * 2
def step(x):
    return (x * g(3)).sum()
#> g.cache_clear()
"""


@pytest.mark.parametrize("story", stories(CASES))
def test_a_story(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
