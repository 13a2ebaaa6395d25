"""Namespaces: every name that their data list is there, shows its arguments and says what it does."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stubs
from public_names import NAMESPACES, public_names

import runnel as rn
from runnel import methods, nn, ops
from runnel.core import namespaces
from runnel.core.dtypes import ALL
from runnel.core.namespaces import imported, namespace
from runnel.nn import functional

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "runnel"
HELPERS = {
    "runnel.ops.convolution.layers": {"for_each_image"},
    "runnel.compat.einops": {"Backend"},
    "runnel.nn.init": {"fan"},
}  # for the package alone


def listed() -> Iterator[Any]:
    """The modules whose names are data."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "namespace(__name__, NAMES" in path.read_text("utf-8"):
            yield importlib.import_module(
                ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            )


@pytest.mark.suite
def test_every_listed_name_is_there_and_the_list_is_sorted() -> None:
    for module in listed():
        assert set(module.NAMES) <= set(dir(module)), module
        for name, place in module.NAMES.items():
            value, found = imported(place), getattr(module, name)
            assert found is value or found.__wrapped__ is value, place
        own = [n for n in module.NAMES if n not in ops.PUBLIC]
        for names in [list(ops.PUBLIC), list(ops.INNER)] if module is ops else [own]:
            assert names == sorted(names, key=lambda n: (order(n), natural(n))), module


def order(name: str) -> int:
    """Constants come first, then classes."""
    return 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2


def natural(name: str) -> list[object]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def test_every_listed_method_is_there() -> None:
    assert list(methods.METHODS) == sorted(methods.METHODS)
    assert methods.METHODS.keys() >= {*f"{methods.IN_PLACE} {methods.COPIES} {methods.SPREAD}".split()}
    for kind in (rn.Tensor, rn.Variable):
        names = [*methods.METHODS, *methods.IN_PLACE_ONLY, *(f"{name}_" for name in methods.IN_PLACE.split())]
        assert [n for n in names if not callable(getattr(kind, n, None))] == []


def test_names_are_loaded_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = type(sys)("tests.a_namespace")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    sys.modules.pop("runnel.data.text.vocabulary", None)
    names = {"one_hot": "runnel.ops.indexing.gather:one_hot", "text": "runnel.data.text"}
    module.__all__, module.__getattr__, module.__dir__ = namespace(module.__name__, names, forwards=("runnel.fft",))
    assert module.__all__ == ["one_hot", "text"] and "one_hot" in vars(module)
    assert module.text is rn.data.text and module.fftfreq is rn.fft.fftfreq
    assert {"one_hot", "text", "fftfreq"} <= set(dir(module))
    with pytest.raises(AttributeError, match="did you mean one_hot"):
        _ = module.one_hat


@pytest.mark.suite
def test_lists_of_names_that_are_kept_by_hand_lack_nothing() -> None:
    """A module's ``__all__`` has all names that it defines, or that a package takes from its files, and no other."""
    paths = [p for p in PACKAGE.rglob("*.py") if "\n__all__ = " in p.read_text("utf-8")]
    assert PACKAGE / "nn" / "init.py" in paths and PACKAGE / "nn" / "utils" / "rnn.py" in paths
    for path in paths:
        module = importlib.import_module(
            ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        )
        defined = {
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and (inspect.isfunction(value) or inspect.isclass(value))
            and value.__module__ == module.__name__
        }
        assert defined - HELPERS.get(module.__name__, set()) <= set(module.__all__), module
        assert [n for n in module.__all__ if not hasattr(module, n)] == [], module
        assert len(set(module.__all__)) == len(module.__all__), module


def test_every_dtype_is_offered() -> None:
    assert all(getattr(rn, "bool_" if d.name == "bool" else d.name) is d for d in ALL)


def test_every_layer_is_offered() -> None:
    modules = [
        importlib.import_module(m.name)
        for m in pkgutil.walk_packages(nn.__path__, "runnel.nn.")
        if not m.name.startswith("runnel.nn.utils")
    ]
    kinds = {
        kind
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, nn.Module) and kind.__module__ == module.__name__
    }
    bases = {base for kind in kinds for base in kind.__bases__}
    assert [k.__name__ for k in kinds - bases if k.__name__ not in nn.__all__] == []


@pytest.mark.suite
def test_everything_public_shows_its_arguments_and_says_what_it_does() -> None:
    found = list(public_names())
    assert {name.namespace for name in found} == {*NAMESPACES, "runnel.Tensor"}
    assert [n[1] for n in found if str(n.signature).startswith("(*args, **kwargs)")] == ["Allocator"]  # a protocol
    assert [n[:2] for n in found if n.signature and not n.doc and n.name != "apply_op"] == []


def test_public_names_can_be_pickled() -> None:
    for value in (rn.add, rn.asinh, nn.Linear, functional.relu, functional.pad, rn.linalg.inv, rn.compile, rn.float32):
        assert pickle.loads(pickle.dumps(value)) is value


def test_variables_can_be_made_contiguous() -> None:
    v = rn.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert v.contiguous().strides == (2, 1) and v.mT.contiguous().tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_every_namespace_answers_for_names_that_it_has_not() -> None:
    for module in (rn, rn.linalg, rn.nn, functional, rn.optim):
        with pytest.raises(AttributeError, match=rf"\[{module.__name__}\] there is no 'nowhere'"):
            _ = module.nowhere


def test_stubs_have_every_name_and_method() -> None:
    texts = dict(stubs.stubs())
    top, network, tensor = (
        texts[f"runnel/{file}.pyi"] for file in ("__init__", "compat/torch/nn/__init__", "tensor/function_methods")
    )
    assert (
        "from runnel.ops.elementwise.arithmetic import add as add\n" in top and "from runnel import nn as nn\n" in top
    )
    assert (
        "from runnel.nn import *\n" in network
        and "from runnel.compat.torch.nn import functional as functional\n" in network
    )
    assert "    def sum(self, axis: Axis = None, keepdims: bool = False, dtype: Dtype = None) -> ResultT:\n" in tensor
    assert "    def add_(self, other: Operand, *, alpha: float | Array = 1) -> Self:\n" in tensor
    assert "    def reshape(self, *shape: Any, " in tensor and "*args: Any, **kwargs" not in tensor
    assert (
        "class CELU(Layer):\n    def __init__(self, alpha: float = 1.0, inplace: bool = False)"
        in texts["runnel/nn/__init__.pyi"]
    )
    for text in texts.values():
        compile(text, "stub", "exec")


@pytest.mark.suite
@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_checkers_understand_programs_with_the_stubs(checker: str, tmp_path: Path) -> None:
    """As an installed package has them: beside the sources."""
    pytest.importorskip(checker)
    for path in PACKAGE.rglob("*.py*"):
        if path.suffix in (".py", ".typed"):
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.symlink_to(path)
    stubs.main([str(tmp_path)])
    program = tmp_path / "typed_program.py"
    program.write_text((ROOT / "tests" / "suites" / "typed_program.py").read_text("utf-8"), "utf-8")
    options = (
        ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
        if checker == "mypy"
        else ["--level", "error"]
    )
    done = subprocess.run(
        [sys.executable, "-m", checker, *options, program.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["runnel.compat.torch", "runnel.compat.torch.autograd", "runnel.compat.torch.nn"])
def test_loaded_names_of_forwarded_modules_are_what_a_look_up_finds(module: str) -> None:
    importlib.import_module("runnel.compat.torch")
    space, members = namespaces._SPACES[module], vars(sys.modules[module])
    forwarded = {name for source in space.forwards for name in namespaces.names_of(source)} - space.names.keys()
    for name in forwarded & members.keys():
        assert members[name] is namespaces._looked_up(module, space, name), name
