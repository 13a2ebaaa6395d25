"""What users see follows from the declarations in the source: the files written from them, and nothing less."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any

import pytest
import surface
from surface_parts.declarations import declarations, declared
from surface_parts.methods import signature
from surface_parts.modules import namespace_text

import runnel as rn
from runnel import nn
from runnel.core.dtypes import ALL
from runnel.nn import functional
from runnel.tensor.function_methods import FunctionMethods

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "runnel"
HELPERS = {"runnel.ops.convolving": {"for_each_image"}, "runnel.compat.einops": {"Backend"}}  # for the package alone


@pytest.mark.suite
def test_what_is_written_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert surface.main(["--check"]) == 0, capsys.readouterr().err


def test_the_reference_says_something_of_every_name() -> None:
    page = (ROOT / "docs" / "reference.md").read_text("utf-8")
    assert [line for line in page.splitlines() if line.endswith(("|  |", "| |"))] == []
    modules = ("rn", "rn.nn.init", "rn.nn.utils.rnn", "rn.data.transforms", "rn.train", "rn.debug", "rn.passes")
    assert [m for m in modules if f"\n## `{m}`" not in page.replace("`runnel`, usually imported as `rn`", "`rn`")] == []


@pytest.mark.suite
def test_lists_of_names_that_are_kept_by_hand_lack_nothing() -> None:
    """Of a module with an ``__all__`` that is not written by the script: all that it defines, or that a package takes
    from its files, and no name besides."""
    paths = [p for p in PACKAGE.rglob("*.py") if "\n__all__ = " in p.read_text("utf-8")]
    by_hand = [p for p in paths if "Written by scripts/surface.py" not in p.read_text("utf-8")]
    assert PACKAGE / "nn" / "init.py" in by_hand and PACKAGE / "nn" / "utils" / "rnn.py" in by_hand
    for path in by_hand:
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


def read(text: str) -> list[Any]:
    return [d for node in ast.parse(text).body for d in declared(node, "runnel.ops.some")]


def test_places_names_and_options_are_read() -> None:
    text = (
        '@offered("rn: asin arcsin", "Tensor", views=True)\ndef asin(x: Array) -> Array:\n    """The arc sine. More."""'
    )
    (d,) = read(text)
    assert (d.name, d.summary, d.options) == ("asin", "The arc sine.", {"views": True})
    assert d.names_in("rn") == ("asin", "arcsin") and d.names_in("Tensor") == ("asin",) and d.names_in("nn") == ()
    assert [d.name for d in read('offered_names("rn", "a", "b")')] == ["a", "b"]
    assert read("def hidden(x):\n    pass") == []


def test_aliases_are_names_of_one_thing() -> None:
    text = namespace_text("linalg", read('@offered("linalg: inv inverse")\ndef inv(x): ...'))
    assert "from runnel.ops.some import inv, inv as inverse\n" in text and '__all__ = ["inv", "inverse"]' in text


def test_a_name_that_is_offered_twice_is_refused() -> None:
    text = '@offered("linalg")\ndef inv(x): ...\n@offered("linalg: inv")\ndef inverse(x): ...'
    with pytest.raises(SystemExit, match="linalg is offered inv more than once"):
        namespace_text("linalg", read(text))


def test_methods_have_the_parameters_of_their_functions() -> None:
    node = ast.parse("def f(x, a: int, b: float = 1.0, *, c: bool = False): ...").body[0]
    parts = signature(node, False)
    assert parts.parameters == ["a: int", "b: float = 1.0", "*", "c: bool = False"]
    assert parts.arguments == ["a", "b", "c=c"] and parts.names == {"int", "float", "bool"}


@pytest.mark.suite
def test_every_declared_name_is_there() -> None:
    modules = {"rn": rn, "fft": rn.fft, "linalg": rn.linalg, "functional": functional, "nn": nn, "optim": rn.optim}
    for d in declarations():
        for name, module in modules.items():
            assert set(d.names_in(name)) <= set(module.__all__), d
        for kind in (rn.Tensor, rn.Variable):
            names = {*d.names_in("Tensor"), *(f"{n}_" for n in d.names_in("Tensor_"))}
            assert [n for n in names if not callable(getattr(kind, n, None))] == [], d


def test_every_dtype_is_offered() -> None:
    assert all(getattr(rn, "bool_" if d.name == "bool" else d.name) is d for d in ALL)


def layers() -> list[type[nn.Module]]:
    """The classes of ``runnel.nn`` that are modules, and not there for others to inherit from."""
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
    return sorted((k for k in kinds if k not in bases or k.__name__ in nn.__all__), key=lambda k: k.__name__)


def layers_declared() -> dict[str, Any]:
    return {d.name: d for d in declarations() if d.names_in("nn")}


def test_every_layer_is_offered() -> None:
    assert [kind.__name__ for kind in layers() if kind.__name__ not in layers_declared()] == []


@pytest.mark.parametrize("name", [kind.__name__ for kind in layers()])
def test_every_layer_has_a_function_or_a_reason(name: str) -> None:
    options = layers_declared()[name].options
    assert bool(options.get("function")) != bool(options.get("alone"))
    if options.get("function"):
        assert options["function"] in functional.__all__


def test_all_functions_of_networks_are_offered() -> None:
    path = ROOT / "runnel" / "nn" / "functions.py"
    defined = [n.name for n in ast.parse(path.read_text("utf-8")).body if isinstance(n, ast.FunctionDef)]
    helpers = {"require_variance"}
    assert {n for n in defined if not n.startswith("_")} - helpers <= set(functional.__all__)


def test_methods_show_what_they_take() -> None:
    assert str(inspect.signature(rn.Tensor.sum)).startswith("(self, axis: 'Axis' = None, keepdims: 'bool' = False")
    assert inspect.getdoc(rn.Tensor.sum) == inspect.getdoc(FunctionMethods.sum) != ""


@pytest.mark.suite
def test_everything_public_shows_its_arguments_and_says_what_it_does() -> None:
    """``inspect.signature`` and ``help`` of names that are loaded late or written by the script, too."""
    modules = [rn, nn, functional, nn.init, nn.utils, rn.optim, rn.optim.lr_scheduler, rn.data, rn.data.transforms]
    modules += [
        rn.data.text,
        rn.train,
        rn.linalg,
        rn.special,
        rn.fft,
        rn.random,
        rn.distributions,
        rn.autograd,
        rn.tree,
    ]
    named = [(f"{m.__name__}.{n}", getattr(m, n)) for m in modules for n in m.__all__]
    named += [(f"Tensor.{n}", getattr(rn.Tensor, n)) for n in dir(rn.Tensor) if not n.startswith("_")]
    called = [(name, value) for name, value in named if callable(value)]
    assert [name for name, value in called if str(inspect.signature(value)).startswith("(*args, **kwargs)")] == []
    assert [name for name, value in called if not inspect.getdoc(value) and name != "Tensor.apply_op"] == []


def test_variables_can_be_made_contiguous() -> None:
    v = rn.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert v.contiguous().strides == (2, 1) and v.mT.contiguous().tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_every_namespace_answers_for_names_that_it_has_not() -> None:
    for module in (rn, rn.linalg, rn.nn, functional, rn.optim):
        with pytest.raises(AttributeError, match=rf"\[{module.__name__}\] there is no 'nowhere'"):
            _ = module.nowhere
