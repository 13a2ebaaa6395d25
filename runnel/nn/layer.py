"""Layers that store the options of a function: ``ELU = layer("ELU", ops.elu, "alpha, inplace=False")``."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter
from typing import Any, ClassVar

from runnel.core.functions import from_text
from runnel.core.public import in_place
from runnel.nn.module import Module


class Layer(Module):
    """The base of layers that call a function with stored options."""

    _options: ClassVar[tuple[Parameter, ...]] = ()  # those that repr shows
    _shows_numbers: ClassVar[bool] = True  # also when they are the defaults

    def _check(self) -> None:
        """Raise an error if the options do not fit together."""

    def extra_repr(self) -> str:
        """Return the options that differ from their default, and in most layers all numbers, as PyTorch shows them."""
        values = [(option, getattr(self, option.name)) for option in self._options]
        shown = (int, float) if self._shows_numbers else ()
        return ", ".join(f"{p.name}={x!r}" for p, x in values if type(x) in shown or x != p.default)


def layer(
    name: str,
    function: Callable[..., Any],
    options: str | None = None,
    *,
    inputs: str = "",
    base: type[Layer] = Layer,
    doc: str = "",
) -> Any:
    """Return the class of a layer that calls ``function`` with its inputs and with options that it stores.

    Options are attributes; those that are annotated as arrays are buffers. A parameter ``training`` of the function
    receives the mode of the layer.

    Args:
        name: the name of the class, and of the variable that it is assigned to.
        function: a function of arrays and options.
        options: names of parameters of the function, such as ``"p, inplace=False"``; by default all after the inputs.
            A default value replaces the function's. With ``inplace``, the layer can write the result into its input.
        inputs: the names of the parameters that a call takes; by default the first ones, as far as they are arrays.
        base: a base class, whose ``_check`` may refuse options.
        doc: text to put after the docstring of the function.
    """
    signature = inspect.signature(function)
    parameters = signature.parameters
    taken = [parameters[n] for n in inputs.split(", ")] if inputs else list(_arrays(parameters.values()))
    others = {n: p for n, p in parameters.items() if p not in taken and n != "training"}
    stored = list(others.values() if options is None else _chosen(options, others))
    module = sys._getframe(1).f_globals["__name__"]
    values = {**{p.name: p.name for p in taken}, **{n: f"self.{n}" for n in (*(p.name for p in stored), "training")}}
    setting = [
        f"self.register_buffer({p.name!r}, {p.name})" if _is_array(p) else f"self.{p.name} = {p.name}" for p in stored
    ]
    arguments = _arguments(parameters.values(), values)
    calls = [f"return function({arguments})"]
    if any(p.name == "inplace" for p in stored):
        calls[:0] = ["if self.inplace:", f"    return in_place({name!r}, function, {arguments})"]
    space = {
        "__module__": module,
        "__doc__": _documented(function, doc, any(p.name == "inplace" for p in stored)),
        "__init__": _method(f"{name}.__init__", stored, [*setting, "self._check()"], {"__name__": module}, "None"),
        "forward": _method(
            f"{name}.forward",
            taken,
            calls,
            {"__name__": module, "function": function, "in_place": in_place},
            signature.return_annotation,
        ),
        "_options": tuple(p for p in stored if not _is_array(p)),
    }
    return type(name, (base,), space)


def _arrays(parameters: Iterable[Parameter]) -> Iterator[Parameter]:
    """Iterate over the first parameters, as far as they must be given and may be arrays."""
    for parameter in parameters:
        kind = parameter.annotation
        if parameter.default is not parameter.empty or not (
            kind in (parameter.empty, "Operand") or "Array" in str(kind)
        ):
            return
        yield parameter


def _is_array(parameter: Parameter) -> bool:
    return str(parameter.annotation).startswith("Array")


def _chosen(options: str, parameters: Mapping[str, Parameter]) -> Iterator[Parameter]:
    """Iterate over the parameters that a text such as ``"*, p, inplace=False"`` names."""
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for item in options.split(", ") if options else ():
        name, _, text = item.partition("=")
        default = ast.literal_eval(text) if text else Parameter.empty
        if name == "*":
            kind = Parameter.KEYWORD_ONLY
        elif name not in parameters:
            yield Parameter(name, kind, default=default, annotation=type(default).__name__)
        else:
            known = parameters[name]
            yield known.replace(kind=kind, default=default if text else known.default)


def _arguments(parameters: Iterable[Parameter], values: Mapping[str, str]) -> str:
    """Return the arguments of a call as text: by position as long as no parameter is left out, then by name."""
    arguments, by_position = [], True
    for parameter in parameters:
        by_position &= parameter.name in values and parameter.kind is not parameter.KEYWORD_ONLY
        if parameter.name in values:
            value = values[parameter.name]
            arguments.append(value if by_position else f"{parameter.name}={value}")
    return ", ".join(arguments)


def _method(
    name: str, parameters: Sequence[Parameter], lines: Iterable[str], space: dict[str, Any], returns: Any
) -> Any:
    """Return a method, whose signature has ``parameters``, with a body of ``lines``."""
    signature = inspect.Signature([Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *parameters])
    named = [p.replace(default=Parameter.empty, annotation=Parameter.empty) for p in signature.parameters.values()]
    head = f"def {name.rpartition('.')[2]}{signature.replace(parameters=named)}:\n"
    function = from_text(head + "".join(f"    {line}\n" for line in lines), __file__, space)
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    by_name = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    function.__defaults__ = tuple(x for n, x in defaults.items() if n not in by_name)
    function.__kwdefaults__ = {n: x for n, x in defaults.items() if n in by_name}
    kinds = {p.name: "Any" if _is_array(p) and p.default is None else p.annotation for p in parameters}
    function.__annotations__ = {
        n: kind for n, kind in {**kinds, "return": returns}.items() if kind is not Parameter.empty
    }
    function.__qualname__ = name
    return function


def _documented(function: Callable[..., Any], doc: str, has_inplace: bool) -> str:
    in_place_form = "With ``inplace`` the input gets the values of the result." if has_inplace else ""
    return "\n\n".join(filter(None, [inspect.getdoc(function) or "", in_place_form, inspect.cleandoc(doc)]))
