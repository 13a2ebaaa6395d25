"""Texts of tensors: printed they show shape and dtype; kept or looked into they must be those of a run without a program."""

from __future__ import annotations

import io
import logging
import warnings

import pytest

import runnel as rn
from tests.compile.adversarial.stories import Story, stories

LOOKED_INTO = "the text of a tensor is looked into"
KEPT = "the text of a tensor is kept"

USES: dict[str, tuple[str, str]] = {
    "returned": ("return f'{y}'", KEPT),
    "returned_in_a_dict": ("return {'a': (str(y),)}", KEPT),
    "of_a_list": ("return repr([y, {'a': y}])", KEPT),
    "by_percent": ("return '%s and %r' % (y, y)", KEPT),
    "by_format": ("return '{} {a}'.format(y, a=y)", KEPT),
    "padded": ("return f'{y!r:>40}' + 'a'", KEPT),
    "repeated": ("return str(y) * 2", KEPT),
    "joined": ("lines = ['a']; lines.append(f'{y}'); return '\\n'.join(lines)", KEPT),
    "of_a_dataclass": ("return repr(Point(y))", KEPT),
    "in_an_own_buffer": ("b = io.StringIO(); b.write(f'{y}'); return b.getvalue()", KEPT),
    "of_a_caught_error": ("try: raise ValueError(f'bad {y}')\n    except ValueError as e: return str(e)", KEPT),
    "in_a_closure": ("s = f'{y}'; return (lambda: s)()", KEPT),
    "of_a_class": ("return Name(f'{y}')", KEPT),
    "by_setdefault": ("d = {}; d.setdefault('a', f'{y}'); return d", KEPT),
    "appended_outside": ("log.append(f'{y}'); return y", KEPT),
    "attribute_outside": ("box.text = str(y); return y", KEPT),
    "item_outside": ("table['a'] = str(y); return y", KEPT),
    "global": ("global last; last = str(y); return y", KEPT),
    "of_a_parameter": ("return str(w)", KEPT),
    "searched": ("return y * (2 if 'nan' in str(y) else 3)", LOOKED_INTO),
    "length": ("return y * len(str(y))", LOOKED_INTO),
    "compared": ("return str(y) == 'Tensor([1., 2., 3.], dtype=float32)'", LOOKED_INTO),
    "ordered": ("return str(y) < 'Tensor([2'", LOOKED_INTO),
    "hashed": ("return hash(str(y))", LOOKED_INTO),
    "member": ("return len({str(y), str(y + 1)})", LOOKED_INTO),
    "key": ("return len({str(y): 1, str(y + 1): 2})", LOOKED_INTO),
    "key_outside": ("table[str(y)] = 1; return y", LOOKED_INTO),
    "found": ("return table.get(str(y), 5)", LOOKED_INTO),
    "letters": ("return [c for c in str(y)]", LOOKED_INTO),
    "taken_apart": ("a, *b = str(y); return a", LOOKED_INTO),
    "piece": ("return str(y)[8:10]", LOOKED_INTO),
    "words": ("return str(y).split()", LOOKED_INTO),
    "upper": ("return str(y).upper()", LOOKED_INTO),
    "begins": ("return str(y).startswith('Tensor([1')", LOOKED_INTO),
    "encoded": ("return len(str(y).encode())", LOOKED_INTO),
    "pattern": ("return re.findall(r'\\d', str(y))", LOOKED_INTO),
    "matched": ("match str(y):\n        case 'a': return 1\n        case _: return 2", LOOKED_INTO),
    "sorted": ("return sorted([str(y), 'a']).index('a')", LOOKED_INTO),
    "greatest": ("return max('a', str(y)) == 'a'", LOOKED_INTO),
    "zipped": ("return list(zip(str(y)))", LOOKED_INTO),
    "counted": ("return list(enumerate(str(y)))", LOOKED_INTO),
    "set_of_letters": ("return len(set(str(y)))", LOOKED_INTO),
    "tuple_of_letters": ("return tuple(str(y))", LOOKED_INTO),
    "backwards": ("return list(reversed(str(y)))", LOOKED_INTO),
    "letters_joined": ("return '-'.join(str(y))", LOOKED_INTO),
    "letters_joined_by_class": ("return str.join('-', str(y))", LOOKED_INTO),
    "bytes": ("return bytes(str(y), 'utf8')", LOOKED_INTO),
    "replaced": ("return str(y).replace('(', '')", LOOKED_INTO),
    "replaced_by_class": ("return str.replace(str(y), 'traced', 'x')", LOOKED_INTO),
    "replaced_and_kept": ("return str(y).replace('T', 't')", KEPT),
    "stripped": ("return str(y).lstrip('Tensor(rcd')", LOOKED_INTO),
    "stripped_behind": ("return str(y).rstrip(')0123456789[]floatdyep=, .')", LOOKED_INTO),
    "attribute_name": ("return getattr(box, str(y), 5)", LOOKED_INTO),
}  # fmt: skip
WORLD = """
class Box: pass
class Name(str): pass
@dataclasses.dataclass
class Point: x: object
box, log, table = Box(), [], {}
w = nn.Parameter(rn.ones(3), name="w")
"""
STORIES = stories(
    "".join(
        f"## {name}, eager: {why}\n{WORLD}\ndef step(x):\n    y = x * 2\n    {use}\n"
        for name, (use, why) in USES.items()
    )
)


@pytest.mark.parametrize("story", STORIES)
def test_a_text_is_that_of_a_run_without_a_program(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)


def test_what_is_shown_has_shape_and_dtype(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    buffer = io.StringIO()

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        print(f"a {x * 2}", [x])
        buffer.write(f"b {x}")
        logging.warning("c %s", x)
        warnings.warn(f"d {x}", stacklevel=1)
        return x * 2

    for _ in range(3):
        with pytest.warns(UserWarning, match=r"^d Tensor\(traced, float32\[2\]\)$"):
            assert step(rn.ones(2)).tolist() == [2, 2]
    assert capsys.readouterr().out == "a Tensor(traced, float32[2]) [Tensor(traced, float32[2])]\n" * 3
    assert buffer.getvalue() == "b Tensor(traced, float32[2])" * 3
    assert caplog.messages == ["c Tensor(traced, float32[2])"] * 3
