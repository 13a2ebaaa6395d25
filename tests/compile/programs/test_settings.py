"""Settings as practitioners keep them: enums of texts, numbers and flags, and every expression that reads them."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.stories import Story, stories

STEP: Final = """
def plain(value):
    return str(value) if isinstance(value, enum.Enum) else value
def step(x):
    results = [{}]
    return x, [list(map(str, r)) if isinstance(r, (list, tuple)) else plain(r) for r in results]
"""
TEXTS: Final = (
    "len(s), s[0], s + 'x', s * 2, f'{s}', f'{s:>5}', '%s' % s, s.upper(), s.startswith('s'), s == 'sum', 'sum' == s, "
    "s != 'sum', s in ('sum', 'z'), s in ['z', 'mean'], 'sum' in (s,), S('sum') is s, ','.join([s, 'q']), s < 'n', "
    "sorted([S.B, S.A]), min(S.B, S.A), s is S.A, str(s), s.value, s.name, isinstance(s, str), [c for c in s], "
    "s.replace('m', 'q'), s.split('u'), 1 if s else 2, s or 'd', type(s) is S, s.value + s.name"
)
NUMBERS: Final = (
    "range(l)[-1:], [1, 2, 3][l], l == 1, l in (1,), l & 1, f'{l}', f'{l:03d}', L(1) is l, L['B'] is l, int(l), "
    "float(l), bool(l - 1), max(L), sum(L), list(L), len(L), l.name, l + 1, 1 + l, l * 2.5, -l, ~l, l // 2, l ** 2, "
    "l < 2, 2 > l, divmod(l, 2), round(l), abs(l), '%d' % l, [0] * l, 'ab' * l, min(l, 5), sorted([L.C, l]), "
    "l.bit_length(), l << 1, l | 4, 1 if l else 2, l is L.B, type(l)(2), l / 2"
)
TENSORS: Final = (
    "x[l], x * l, x[l:], x[:l], x.reshape(l, -1), rn.ones(l), rn.zeros((l, 2)), rn.full((2,), l), rn.arange(l), "
    "x ** l, x > l, rn.asarray(l), rn.roll(x, l), x.sum(l - l)"
)
FLAGS: Final = (
    "F.A in f, f == F.A, [m.name for m in F if m in f], f is F.A, len(F), (f | F.B).value, 1 if f & F.B else 2, "
    "not (f & F.B), bool(f & F.A), f.value & 2"
)
ENUMS: Final = stories(f"""
## enum_of_texts
class S(str, enum.Enum): A = 'sum'; B = 'mean'; C = ''
s = S.A
{STEP.format(TEXTS.replace("s[0], ", "s[:1], "))}
#> s = S.B
#> s = S.C
## name_of_a_method, traces: 3
class S(str, enum.Enum): A = 'sum'; B = 'mean'
s = S.A
def step(x): return getattr(x, s.value)()
#> s = S.B
## enum_of_numbers
class L(enum.IntEnum): B = 1; C = 2; N = 0
l = L.B
{STEP.format(NUMBERS)}
#> l = L.C
#> l = L.N
## enum_of_numbers_in_tensors
class L(enum.IntEnum): B = 1; C = 2
l = L.B
def step(x): return [{TENSORS}]
def arguments(i): return (tensor(1.0, 2.0, 3.0, 4.0),)
#> l = L.C
## flags
class F(enum.Flag): A = 1; B = 2
f = F.A
{STEP.format(FLAGS)}
#> f = F.B
#> f = F.A | F.B
#> f = F(0)
## flags_that_are_numbers, eager: perhaps
class F(enum.IntFlag): A = 1; B = 2
f = F.A
def step(x): return x * (2 if f & F.B else 3) + (5 if F.A in f else 7) + int(f)
#> f = F.B
#> f = F(0)
## characters_of_a_text
class S(str, enum.Enum): A = 'sum'; B = 'mean'
s = S.A
def step(x): return x, 'su' in s, '' in s
#> s = S.B
## switched_on_inside, traces: 4
class F(enum.Flag): A = 1; B = 2
f = F.A
def step(x):
    global f
    f = F.B if f is F.A else F.A
    return x * f.value
#> f = F.B
""")


@pytest.mark.parametrize("story", ENUMS)
def test_like_eager(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
