"""Functions that C code calls: it looks at what they give, which may be made of numbers that change; and imports."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

USES: Final = {
    "sorted": "sorted(_items, key=lambda v: scale * v)",
    "sort": "(lambda a: (a.sort(key=lambda v: scale * v), a))(list(_items))",
    "sort_outside": "(_items.sort(key=lambda v: scale * v), list(_items))",
    "compared": "sorted(_items, key=functools.cmp_to_key(lambda a, b: scale * (a - b)))",
    "min": "min(_items, key=lambda v: scale * v)",
    "max": "max(3, 1, 2, key=lambda v: (scale * v, v))",
    "insort": "(lambda a: (bisect.insort(a, 2, key=lambda v: scale * v), a))([1])",
    "bisect": "bisect.bisect([-3, -1, 2], 0, key=lambda v: scale * v)",
    "groupby": "[(key, len(list(part))) for key, part in itertools.groupby(_items, key=lambda v: v * scale // 2)]",
    "sentinel": "list(itertools.islice(iter(lambda: scale, 1), 2))",
    "sub": "re.sub('a', lambda _: str(scale), 'xax')",
    "pattern_sub": "re.compile('a').sub(lambda _: str(scale), 'xax')",
    "pattern_subn": "re.compile('a').subn(repl=lambda _: f'{scale}', string='xax')",
    "found_sub": "_pattern.sub(_shown, 'xax')",
    "objects": "sorted(_items, key=_Key)",
    "tuples": "sorted(_items, key=lambda v: _Pair(scale * v, v))",
}
FOUND: Final = """
scale = 1
_items = [3, 1, 2]
_pattern = re.compile('a')
_shown = lambda _: str(scale)
_Pair = collections.namedtuple('_Pair', 'a b')
class _Key:
    def __init__(self, v):
        self.v = v
    def __lt__(self, other):
        return scale * self.v < scale * other.v
def step(x):
    return x * scale, {use}
"""
GIVEN: Final = FOUND.replace("def step(x):", "def step(x, scale):") + (
    "def arguments(i):\n    return tensor(1.0, 2.0), [1.0, 1.0, -1.0, 2.5, 1, True, -1, 3, -0.5][i % 9]\n"
)
CHANGES: Final = [f"scale = {number}" for number in (-1, -2, 2, -3, 1.5, 1)]


@pytest.mark.parametrize("use", USES)
def test_of_what_a_function_found(use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Story(FOUND.replace("{use}", USES[use]), CHANGES, "", 100).run(monkeypatch)


@pytest.mark.parametrize("use", [name for name in USES if name not in ("found_sub", "objects")])
def test_of_an_argument(use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Story(GIVEN.replace("{use}", USES[use]), ["_items.append(5)", "_items.reverse()"], "", 100).run(monkeypatch)


IMPORTS: Final = """
## module_of_another_name
sys.modules["_imported"] = types.ModuleType("_imported")
sys.modules["_imported"].k = 2.0
_other = types.ModuleType("_another")
_other.k = 7.0
_first = sys.modules["_imported"]
def step(x):
    import _imported
    return x * _imported.k
#> sys.modules["_imported"] = _other
#> _other.k = 3.0
#> sys.modules["_imported"] = _first
#> _first.k = 5.0
## part_of_a_package, eager: perhaps
_package, _part, _new = [types.ModuleType(name) for name in ("_package", "_package.part", "elsewhere")]
_package.__path__ = []
_package.part, _part.k, _new.k = _part, 2.0, 3.0
sys.modules["_package"], sys.modules["_package.part"] = _package, _part
def step(x):
    import _package.part
    from _package.part import k
    return x * _package.part.k + k
#> _part.k = 4.0
#> _package.part = _new
#> sys.modules["_package.part"] = _new
#> _new.k = 1.0
#> sys.modules["_package.part"] = None
#> sys.modules["_package.part"] = _part
"""


@pytest.mark.parametrize("story", stories(IMPORTS))
def test_modules_found_again(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
