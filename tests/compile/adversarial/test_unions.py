"""Unions of classes, whose parts decide for themselves what is an instance of them, and change their minds."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

UNIONS: Final = stories("""
## union_checked, traces: 17
u, v = int | str, 2
def step(x): return x * (2.0 if isinstance(v, u) else 3.0)
#> u = str | list
#> v = 'a'
#> u = int | None
#> v = None
#> u = typing.Optional[str]
#> u = typing.Union[int, list]; v = [1]
## union_on_object
class A: pass
class B: pass
class K:
    kinds = A | B
k, v = K(), A()
def step(x): return x * (2.0 if isinstance(v, k.kinds) else 3.0) + issubclass(type(v), k.kinds)
#> K.kinds = B | int
#> v = B()
#> k.kinds = A | int
## union_of_user_metaclass
class Meta(type):
    ok = True
    def __instancecheck__(cls, o): return cls.ok
class M(metaclass=Meta): pass
u, v = int | M, 'text'
def step(x): return x * (2.0 if isinstance(v, u) else 3.0)
#> Meta.ok = False
#> Meta.ok = True
## union_of_abstract_class
class Base(abc.ABC): pass
class Own: pass
u, v = int | Base, Own()
def step(x): return x * (2.0 if isinstance(v, u) else 3.0)
#> Base.register(Own)
## typing_union_of_a_user_metaclass
class Meta(type):
    ok = True
    def __instancecheck__(cls, o): return cls.ok
    def __subclasscheck__(cls, k): return cls.ok
class M(metaclass=Meta): pass
u, v = typing.Union[int, M], 'text'
def step(x): return x * (2.0 if isinstance(v, u) else 3.0) + issubclass(str, u)
#> Meta.ok = False
#> Meta.ok = True
## classes_by_name_of_their_own
class Kinds:
    known = (int,)
    def __instancecheck__(self, o): return type(o) in self.known
kinds, v = Kinds(), 2.0
def step(x): return x * (2.0 if isinstance(v, kinds) else 3.0)
#> Kinds.known = (float,)
#> kinds.known = ()
## subclass_of_a_union
class Base(abc.ABC): pass
class Own: pass
u = int | Base
def step(x): return x * (2.0 if issubclass(Own, u) else 3.0)
#> Base.register(Own)
## protocol_in_union
@typing.runtime_checkable
class HasGain(typing.Protocol):
    gain: float
class O: pass
u, v = HasGain | int, O()
def step(x): return x * (2.0 if isinstance(v, u) else 3.0)
#> v.gain = 1.0
#> del v.gain
#> O.gain = 2.0
## generic_alias_refused
u, v = list[int], [1]
def step(x):
    try: return x * isinstance(v, u)
    except TypeError as e: return x, str(e)
#> u = list
""")


@pytest.mark.parametrize("story", UNIONS)
def test_unions(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
