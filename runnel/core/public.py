"""Wrapping of public functions: other libraries' keyword names are accepted, and errors name the function.

An error raised on purpose says what is wrong by itself. For any other error, the first argument that is not of the kind
its annotation declares is named; if all are, the error is a bug, and goes through with its traceback. This costs
nothing while nothing fails. Errors from functions that users pass in go through untouched.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from types import FunctionType
from typing import Any, Final, ParamSpec, TypeVar, cast

from runnel.core import tracebacks
from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, MissingRuleError, NonFiniteError, VerifierError
from runnel.core.kinds import Kind, kind_of
from runnel.core.missing import known_keywords, known_positions, missing
from runnel.core.overrides import Override, by_protocol, overridden
from runnel.core.recall import Plain, Recalled, is_pure, makes, passes
from runnel.core.tables import Op

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE: Final = __name__.partition(".")[0]
_COMPOSING: Final = tuple(f"{_PACKAGE}.{part}." for part in ("ops", "tensor"))  # functions that others are composed of
_PUBLIC: Final[dict[Any, Any]] = {}  # a function to its public form: the same one wherever it is offered
_OFFERED: Final[set[str]] = set()  # the names under which users call functions and methods


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Return the public form of ``function``, which users call."""
    known = _PUBLIC.get(function)
    if known is not None:
        return cast(Callable[P, R], known)
    plain = _plain(function)
    parameters = _parameters(plain)
    places = _places(plain)
    name = function.__name__

    def translated(*args: Any, **kwargs: Any) -> Any:
        if kwargs and parameters is not None and not kwargs.keys() <= parameters:
            if kwargs.get("out") is not None:
                out = kwargs.pop("out")
                return _put_into(out, name, call(*args, **kwargs))
            writes, is_leaf = kwargs.get("inplace"), kwargs.get("requires_grad")
            kwargs = known_keywords(name, kwargs, parameters)
            if writes:
                return in_place(name, call, *args, **kwargs)
            if is_leaf and "requires_grad" not in parameters:
                return call(*args, **kwargs).requires_grad_()
        return function(*args, **kwargs)

    recalled = Recalled(translated, passes(plain), makes=makes(plain)) if is_pure(plain) else Plain(translated)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return recalled.call(*args, **kwargs)
        except Override as override:
            if parameters is not None and not kwargs.keys() <= parameters:
                kwargs = known_keywords(name, kwargs, parameters)
            return overridden(override, function, args, kwargs)
        except Exception as error:
            handled = by_protocol(call, args, kwargs)
            if handled:
                return handled[0]
            if places is None or len(args) <= len(places) or tracebacks.is_sentence(error):
                answer = explained(name, plain, args, kwargs, error)
                if answer is error:
                    raise
                try:
                    raise answer from answer.__cause__
                except Exception:
                    tracebacks.shorten(answer)
                    raise
        try:
            args, kwargs = _moved(name, plain, args, kwargs, places)
        except ArgumentError as error:
            tracebacks.shorten(error)
            raise
        return call(*args, **kwargs)

    _PUBLIC[function] = _PUBLIC[call] = call
    return cast(Callable[P, R], call)


def method(name: str, function: Callable[P, R]) -> Callable[P, R]:
    """Return the public form of ``function``, which users call as a method ``name``."""
    _OFFERED.add(name)
    return public(function)


def constructor(kind: type) -> None:
    """Make ``kind``'s own ``__init__`` public, with all its arguments checked before it runs."""
    initialize = kind.__dict__.get("__init__")
    if not isinstance(initialize, FunctionType) or initialize in _PUBLIC:
        return
    parameters = _parameters(initialize)
    places = _places(initialize)

    @functools.wraps(initialize)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        own = type(self).__name__
        args = (self, *args)
        try:
            if places is not None and len(args) > len(places):
                args, kwargs = _moved(kind.__name__, initialize, args, kwargs, places)
            if kwargs and parameters is not None and not kwargs.keys() <= parameters:
                kwargs = known_keywords(own, kwargs, parameters)
            if len(args) > 1 or kwargs:
                args, kwargs = converted_arguments(own, initialize, args, kwargs)
            initialize(*args, **kwargs)
        except Exception as error:
            answer = explained(own, initialize, args, kwargs, error)
            if answer is error:
                raise
            try:
                raise answer from answer.__cause__
            except Exception:
                tracebacks.shorten(answer)
                raise

    _PUBLIC[initialize] = _PUBLIC[call] = call
    kind.__init__ = call  # type: ignore[misc]


def offer(namespace: dict[str, Any], names: Iterable[str], inner: frozenset[str] = frozenset()) -> None:
    """Put the public form of each function among ``names`` into ``namespace``, of the module that defines them; classes
    keep their identity and get public constructors. ``inner`` are classes that the package makes instances of at every
    turn: their constructors stay as they are."""
    owner = namespace["__name__"]
    for name in names:
        if name not in inner:
            namespace[name] = offered(owner, name, namespace[name])

    def getattr_of_module(name: str) -> Any:
        try:
            raise missing(owner, name, lambda: names)
        except AttributeError as error:
            tracebacks.end_at_user(error)
            raise

    namespace["__getattr__"] = getattr_of_module


def offered(owner: str, name: str, value: Any) -> Any:
    """Return the public form of ``value``, which the module ``owner`` offers as ``name``."""
    if isinstance(value, FunctionType):
        _OFFERED.add(name)
        offered = public(value)
        if offered is not value and offered.__module__ == value.__module__:  # found there again by pickle
            offered.__module__, offered.__qualname__ = owner, name
        return offered
    if isinstance(value, type):
        for base in value.__mro__:
            if base.__module__.partition(".")[0] == _PACKAGE:
                constructor(base)
    return value


def _put_into(out: Any, name: str, result: Any) -> Any:
    """Write ``result`` into ``out``, one array or several, and return it: for ``function(..., out=out)``."""
    several = isinstance(result, tuple)
    arrays, values = (out, result) if several else ((out[0] if isinstance(out, tuple) else out,), (result,))
    if not isinstance(arrays, (tuple, list)) or len(arrays) != len(values):
        raise ArgumentError(f"[{name}] out must be a tuple of {len(values)} arrays; got {short_repr(out)}.")
    for array in arrays:
        if not hasattr(array, "update"):
            raise ArgumentError(f"[{name}] out must be an array; got {short_repr(array)}.")
    for array, value in zip(arrays, values, strict=True):
        array.update(name, lambda _, value=value: value)
    return out if several else arrays[0]


def _moved(
    name: str, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], places: Sequence[str]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with more positions than ``places``; ArgumentError if nobody takes so many."""
    moved = known_positions(name, args, kwargs, places, _parameters(function) or ())
    if moved is None:
        _bound(name, _signature(function), args, kwargs)
        raise AssertionError(f"{name} has places for all arguments")
    return moved


def in_place(name: str, function: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> Any:
    """Give ``x`` the values of ``function(x, ...)``, and return it: for ``function(x, ..., inplace=True)``."""
    if not hasattr(x, "update"):
        raise ArgumentError(f"[{name}] x must be an array that inplace=True changes; got {short_repr(x)}.")
    return x.update(name, lambda before: function(before, *args, **kwargs))


def methods(kind: type[R]) -> type[R]:
    """Decorate a class: its methods without a leading underscore become public."""
    for name, value in list(vars(kind).items()):
        if isinstance(value, FunctionType) and not name.startswith("_"):
            setattr(kind, name, public(value))
    return kind


def converted_arguments(
    name: str, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments in their plain form; ArgumentError for one that is not of the declared kind."""
    needed, positional = _positional(function)
    if not kwargs and needed <= len(args) <= len(positional):  # nothing to bind, as for the nodes of many small trees
        return tuple([_settled(name, parameter, value) for parameter, value in zip(positional, args, strict=False)]), {}
    signature = _signature(function)
    bound = _bound(name, signature, args, kwargs)
    for parameter, value in _each(signature, bound):
        settled = _settled(name, parameter, value)
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            bound.arguments[parameter.name] = settled
    return bound.args, bound.kwargs


def _settled(name: str, parameter: inspect.Parameter, value: Any) -> Any:
    kind = kind_of(parameter)
    if kind is None:
        return value
    if not kind.fits(value):
        raise _unfit(name, parameter, kind, value)
    return kind.settle(value)


def explained(
    name: str, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Exception:
    """Return what a call that ended with ``error`` raises: an error that names the first argument of a wrong kind, or
    ``error`` itself, if it was raised on purpose or by the user, or no argument explains it: a bug looks like a bug."""
    if tracebacks.is_users(error):
        return error
    if tracebacks.is_sentence(error):
        if is_pure(function) and "." not in function.__qualname__:  # users know a layer's function, not its forward
            _name(error, name)
        tracebacks.shorten(error)
        return error
    if isinstance(error, FileNotFoundError):
        tracebacks.shorten(error)
        return error
    if isinstance(error, (OSError, MemoryError, ImportError)):
        return error
    signature = _signature(function)
    try:
        bound = _bound(name, signature, args, kwargs)
    except ArgumentError as unbound:
        return unbound.with_traceback(None)
    for parameter, value in _each(signature, bound):
        kind = kind_of(parameter)
        if kind is not None and not kind.fits(value):
            return _unfit(name, parameter, kind, value)
    return error


def _name(error: Exception, name: str) -> None:
    """Let a sentence about an op, or about a function of arrays, begin with the function that is composed of it, if
    users call that one by ``name``. Other beginnings were chosen on purpose."""
    text = error.args[0] if error.args else None
    if name not in _OFFERED or not isinstance(text, str) or not text.startswith("["):
        return
    inner, _, rest = text[1:].partition("]")
    is_about_ops = isinstance(error, (MissingRuleError, NonFiniteError, VerifierError))
    if not is_about_ops and (inner in Op.registry or tracebacks.passed(error, inner, _COMPOSING)):
        error.args = (f"[{name}]{rest}", *error.args[1:])


def _unfit(name: str, parameter: inspect.Parameter, kind: Kind, value: Any) -> ArgumentError:
    remedy = kind.remedy(value)
    hint = f"; {remedy}" if remedy else ""
    return ArgumentError(f"[{name}] {parameter.name} must be {kind.description}; got {short_repr(value)}{hint}.")


def _bound(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> inspect.BoundArguments:
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        takes = ", ".join(p for p in signature.parameters if p != "self") or "none"
        raise ArgumentError(f"[{name}] {error}; its arguments are {takes}.") from None


def _each(signature: inspect.Signature, bound: inspect.BoundArguments) -> Iterable[tuple[inspect.Parameter, Any]]:
    """Yield each argument with its parameter; arguments of a starred parameter one by one."""
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from ((parameter, one) for one in value)
        elif parameter.kind is not parameter.VAR_KEYWORD:
            yield parameter, value


@functools.cache
def _signature(function: FunctionType) -> inspect.Signature:
    return inspect.signature(function)


@functools.cache
def _positional(function: FunctionType) -> tuple[int, tuple[inspect.Parameter, ...]]:
    """Return the number of required positional parameters, and all of them; (1, ()) if the function also requires
    keywords or takes any number."""
    parameters = tuple(_signature(function).parameters.values())
    places = tuple(p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    if any(p.kind is not p.KEYWORD_ONLY or p.default is p.empty for p in parameters[len(places) :]):
        return 1, ()
    return sum(p.default is p.empty for p in places), places


def _plain(function: Any) -> FunctionType:
    """Return the function with the parameters; wrappers (``functools.wraps``) take the parameters of the wrapped
    function."""
    return cast(FunctionType, inspect.unwrap(function))


def _places(function: FunctionType) -> Sequence[str] | None:
    """Return the names of parameters that can be passed by position; None if the function takes any number."""
    if "__signature__" in vars(function):
        parameters = inspect.signature(function).parameters.values()
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return None
        return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    code = function.__code__
    return None if code.co_flags & inspect.CO_VARARGS else code.co_varnames[: code.co_argcount]


def _parameters(function: FunctionType) -> KeysView[str] | None:
    """Return the names of parameters that can be passed by name, in order; None if any name is accepted."""
    if "__signature__" in vars(function):
        return {
            p.name: p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD
        }.keys()
    code = function.__code__
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return None
    return dict.fromkeys(code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]).keys()
