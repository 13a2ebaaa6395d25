"""``observe``: run a function once under observation; the result says how later calls do without running it."""

from __future__ import annotations

import builtins
import collections
import dis
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple

from runnel.compile.observe.effects import Effect, call_of
from runnel.compile.observe.guard import Guard, NotGuarded
from runnel.compile.observe.hooks import Hooks
from runnel.compile.observe.recorder import NotCapturable, Recorder
from runnel.compile.observe.sources import Source, is_immortal
from runnel.compile.observe.table import Policy
from runnel.compile.observe.values import (
    FIXED,
    MISSING,
    PLAIN,
    SETS,
    container_of,
    described,
    has_usual_builtins,
    instance_dict,
    is_class,
    is_python_class,
    is_slot,
    lookup,
    mro,
    namespace,
)
from runnel.core.errors import TracedValueError

_PACKAGE: Final = __name__.partition(".")[0]
Values = Sequence[Any]  # of the wanted sources, at a later call
Recipe = Callable[[Values, dict[int, Any]], Any]  # makes a value; the dict holds what was made already
_BUILT_IN: Final = [(name, x) for name, x in vars(builtins).items() if name[0] != "_"]  # used here


class Change(NamedTuple):
    """An effect as later calls repeat it."""

    apply: Callable[[Any, Any, Any], Any]
    target: Recipe
    key: Recipe
    value: Recipe
    label: str
    advances_version: bool = False  # whether it advances the state version

    def call(self, values: Values, objects: dict[Any, Any]) -> tuple[Any, ...]:
        """Return the change as a function and its arguments."""
        return call_of(self.apply, self.target(values, objects), self.key(values, objects), self.value(values, objects))


class GuardValue:
    """A value that the guard reads at each call."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __call__(self, values: Values, objects: dict[Any, Any]) -> Any:
        return values[self.place]


class Constant:
    """The same object at each call."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, values: Values, objects: dict[Any, Any]) -> Any:
        return self.value


class Row:
    """A tuple of parts."""

    def __init__(self, key: int, parts: list[Recipe]) -> None:
        self.key = key
        self.parts = parts

    def __call__(self, values: Values, objects: dict[Any, Any]) -> Any:
        if self.key not in objects:
            objects[self.key] = tuple([part(values, objects) for part in self.parts])
        return objects[self.key]


class Session:
    """The surroundings of an observed run. Packages that make programs inherit from it."""

    varying: frozenset[str] = frozenset()  # labels of numbers that differed between calls

    def begin(self, rec: Recorder) -> None:
        """Prepare a run."""

    def end(self) -> None:
        """Release everything after the run."""

    def running(self, over: Callable[[], None]) -> Any:
        """Return the context in which the function runs. At its end it calls ``over``, which undoes all changes."""
        return _Running(over)

    def returned(self, rec: Recorder) -> None:
        """Add changes after the function has returned."""

    def calculated(self, sign: str, a: Any, b: Any, number: Any) -> None:
        """Note that ``number`` was computed from numbers."""

    def complete(self, recipes: Recipes) -> Any:
        """Return what else later calls need. ``recipes.place`` says where its parts are found."""
        return None


class _Running:
    """A block, and what is called at its end."""

    def __init__(self, over: Callable[[], None]) -> None:
        self._over = over

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self._over()


class Observation:
    """One run as later calls repeat it: a guard, the changes of outside state and the result, as recipes."""

    def __init__(self, guard: Guard, effects: list[Change], result: Recipe, settled: str, program: Any) -> None:
        self.guard = guard
        self.effects = effects
        self.result = result
        self.unsettled_by = settled  # what the run prepared, so that its record holds for no later call; usually ""
        self.program = program

    def replay(self, values: Values) -> Any:
        """Repeat the changes and return the result."""
        objects: dict[Any, Any] = {}
        self.repeat(values, objects)
        return self.result(values, objects)

    def repeat(self, values: Values, objects: dict[Any, Any]) -> None:
        """Repeat the changes."""
        for function, *args in self.calls(values, objects):
            function(*args)

    def calls(self, values: Values, objects: dict[Any, Any]) -> Iterator[tuple[Any, ...]]:
        """Return the changes as calls, made out now."""
        return iter([change.call(values, objects) for change in self.effects])


def observe(
    function: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    policy: Policy,
    session: Session | None = None,
) -> Observation:
    """Run ``function`` observed, undo what it changed, and return the observation.

    Raises NotCapturable where the call cannot be known, and whatever the function raises. Either way nothing has
    changed.
    """
    session = session or Session()
    for name, known in _BUILT_IN:
        if builtins.__dict__.get(name) is not known and not sys.is_finalizing():  # which takes them away
            raise NotCapturable(f"the built-in {name} was replaced", "at the call", "put it back")
    rec = Recorder(policy, session, Hooks)
    log = rec.log
    log.check(None, f"len(args) != {len(args)}", "the number of arguments")
    if kwargs:
        log.check(None, "tuple(kwargs) != {0}", "the names of arguments", (tuple(kwargs),))
    else:
        log.check(None, "kwargs", "the names of arguments")
    try:
        with session.running(rec.take_back):
            try:
                session.begin(rec)
                values, named = _reached(rec, function, args, kwargs)
                result = rec.passed(function, tuple(values), named)
                session.returned(rec)
                if rec.not_capturable is not None:  # though the function caught it
                    raise rec.not_capturable
                return _finished(rec, result)
            except (NotCapturable, TracedValueError) as refused:
                if not (isinstance(refused, NotCapturable) and refused.is_passing):
                    with suppress(NotGuarded):
                        refused.guard = Guard(log, [], rec.effects)
                raise
    except NotGuarded as problem:
        raise NotCapturable(str(problem), "at the call") from None


def _reached(
    rec: Recorder, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments as the run sees them, with their sources."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    values: list[Any] = []
    for i, value in enumerate(args):
        label = names[i] if i < len(names) else f"argument {i}"
        values.append(rec.reach_symbolic(value, _argument(rec, f"args[{i}]", label, value)))
    named = {
        name: rec.reach_symbolic(value, _argument(rec, f"kwargs[{name!r}]", name, value))
        for name, value in kwargs.items()
    }
    # The programs of a code are filed under it, and must not keep it alive.
    source = rec.sources[id(function)] = rec.log.source(None, "fn", function.__name__, function)
    code = weakref.ref(function.__code__)
    rec.log.check(source, "{v}.__code__ is not {0}()", f"code of {source}", (code,))
    if not has_usual_builtins(function):
        rec.refuse("the function has custom built-in names")
    rec.keep(function)
    return values, named


def _argument(rec: Recorder, text: str, label: str, value: Any) -> Source:
    source = rec.log.source(None, text, label, value)
    source.is_argument = True
    return source


def _finished(rec: Recorder, result: Any) -> Observation:
    _require_quiet_release(rec)
    _require_finished(rec)
    recipes = Recipes(rec)
    effects = [_change(recipes, effect) for effect in rec.effects.lasting()]
    answer = recipes.of(result)
    program = rec.session.complete(recipes)
    _stay_distinct(rec)
    guard = Guard(rec.log, recipes.read_sources, rec.effects)
    return Observation(guard, effects, answer, rec.settled, program)


def _require_quiet_release(rec: Recorder) -> None:
    """Refuse where the run releases an object whose death runs code: nobody would observe that."""
    for value in rec.effects.released():
        callbacks = [reference.__callback__ for reference in weakref.getweakrefs(value)]
        named = [getattr(x, "__module__", None) or type(x).__module__ for x in callbacks if x is not None]
        if lookup(type(value), "__del__") is not MISSING or not all(name.startswith(_PACKAGE) for name in named):
            rec.refuse(f"{described(value)} from outside is released, and code may run when it dies", "do it outside")


def _require_finished(rec: Recorder) -> None:
    """Refuse a run that leaves a generator open in a block whose end runs code, which nobody would observe."""
    for generator in [made for made in (reference() for reference in rec.generators) if made is not None]:
        if generator.gi_suspended and any(i.opname == "PUSH_EXC_INFO" for i in dis.get_instructions(generator.gi_code)):
            rec.refuse(f"the generator {generator.__name__} is left open in a try or with block", "close it")


def _change(recipes: Recipes, effect: Effect) -> Change:
    policy, kind = recipes.rec.policy, type(effect.target)
    recipes.is_shown = effect.shows
    try:
        return Change(
            effect.apply,
            recipes.target(effect.target),
            recipes.of(effect.key),
            recipes.of(effect.value),
            effect.label,
            policy.advances_version(kind) or policy.is_transparent(kind),
        )
    finally:
        recipes.is_shown = False


def _stay_distinct(rec: Recorder) -> None:
    """Require that objects that were distinct stay so, where one of them is changed."""
    changed = {id(effect.target) for effect in rec.effects.done if effect.target is not None}
    read = [s for s in rec.sources.values() if s.index >= 0 and s.value is not MISSING]
    for key in changed:
        one = rec.sources.get(key)
        if one is None:
            continue
        for other in read:
            if other is not one and type(other.value) is type(one.value) and other.value is not one.value:
                rec.log.check(None, "{s0} is {s1}", f"{one} is {other}", (), (one, other))


# Recipes --------------------------------------------------------------------------------------------------------------

_DEEPEST: Final = 100  # levels of containers that are written down one by one


class Recipes:
    """Writes down how later calls make the values that leave the run."""

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        self.read_sources: list[Source] = []
        self.is_shown = False  # whether they are texts that are shown
        self._depth = 0
        self._places: dict[int, int] = {}

    def target(self, value: Any) -> Recipe:
        """Return the recipe of something from outside that was changed."""
        if value is None:
            return Constant(None)
        rec = self.rec
        source = rec.source_of(value)
        if source is None and is_class(value) and is_immortal(value):
            return Constant(value)
        if source is None:
            rec.refuse(f"{described(value)} is changed, and cannot be found again")
        return GuardValue(self.place(source))

    def place(self, source: Source) -> int:
        """Return the number of a source among the values that the guard gives."""
        place = self._places.get(id(source))
        if place is None:
            place = self._places[id(source)] = len(self.read_sources)
            self.read_sources.append(source)
        return place

    def part(self, value: Any) -> Recipe:
        """Return the recipe of a part of a container, which may hold the container in turn."""
        known = self.rec.memo.get(("recipe", id(value)))
        if known is not None:
            return known[0] if known else lambda values, objects: known[0](values, objects)
        place: list[Recipe] = []
        self.rec.memo["recipe", id(value)] = place
        self.rec.keep(value)
        place.append(self.of(value))
        return place[0]

    def of(self, value: Any) -> Recipe:
        """Return the recipe of any value."""
        rec, kind = self.rec, type(value)
        if not self.is_shown and kind is str:
            rec.concrete_number(value)  # no text of a tensor
        source = rec.source_of(value)
        if source is None:
            source = rec.symbols.get(id(value))
        if source is not None:
            return GuardValue(self.place(source))
        leaf = rec.policy.result(kind)
        if leaf is not None:
            return leaf(self, value)
        is_fixed = kind in PLAIN or kind in FIXED or value is MISSING
        if is_fixed or ((is_class(value) or kind is types.BuiltinFunctionType) and is_immortal(value)):
            return Constant(value)
        rec.keep(value)
        if kind is slice:
            return self._call(slice, (value.start, value.stop, value.step))
        if container_of(kind) is not None and not is_python_class(kind):
            return self._container(value, kind)
        if kind is MethodType and not rec.is_own(value.__func__):
            return self._call(MethodType, (value.__func__, value.__self__))
        if kind is functools.partial and type(value.func) is not kind and not vars(value):
            return self._call(functools.partial, (value.func, *value.args), value.keywords)
        if is_python_class(kind) and not issubclass(kind, BaseException) and not is_class(value):
            return self._object(value, kind)
        if rec.policy.is_constant(value):
            return Constant(value)
        rec.refuse(f"{described(value)} made in the function leaves it", "make it outside")

    def _call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Recipe:
        parts, named = [self.of(x) for x in args], {name: self.of(x) for name, x in (kwargs or {}).items()}
        return lambda values, objects: function(
            *[part(values, objects) for part in parts],
            **{name: part(values, objects) for name, part in named.items()},
        )

    def _container(self, value: Any, kind: Any) -> Recipe:
        self._depth += 1
        if self._depth > _DEEPEST:
            self.rec.refuse(f"a result is nested more than {_DEEPEST} deep", "return a flat list")
        recipe = self._container_of_parts(value, kind)
        self._depth -= 1
        return recipe

    def _container_of_parts(self, value: Any, kind: Any) -> Recipe:
        key = id(value)
        if issubclass(kind, dict):
            if kind not in (dict, collections.OrderedDict, collections.defaultdict):
                self.rec.refuse(f"{described(value)} made in the function leaves it")
            factory = self.of(getattr(value, "default_factory", None))
            items = [(self.of(k), self.part(v)) for k, v in value.items()]
            return once(
                key,
                lambda values, objects: kind(factory(values, objects)) if kind is collections.defaultdict else kind(),
                lambda d, values, objects: d.update({k(values, objects): v(values, objects) for k, v in items}),
            )
        parts = [self.part(x) for x in value]
        if kind is tuple:
            return Row(key, parts)
        if kind in SETS:
            return _whole(key, lambda items, values, objects: kind(items), parts)
        limit = (value.maxlen,) if kind is collections.deque else ()
        return once(
            key,
            lambda values, objects: kind((), *limit),
            lambda x, values, objects: x.extend([part(values, objects) for part in parts]),
        )

    def _object(self, value: Any, kind: Any) -> Recipe:
        """Return the recipe of an object of a Python class: it is made empty and filled."""
        rec, key, whole = self.rec, id(value), self.of(kind)
        space = instance_dict(value)
        if space is not None and rec.source_of(space) is not None:
            rec.refuse(f"{described(value)} made in the function, whose __dict__ was made outside, leaves it")
        if issubclass(kind, tuple):
            parts = [self.part(x) for x in tuple.__iter__(value)]
            return _whole(key, lambda items, values, objects: tuple.__new__(whole(values, objects), items), parts)
        root = next(base for base in mro(kind) if not is_python_class(base))
        if root is dict:
            pairs = [(self.of(k), self.part(v)) for k, v in dict.items(value)]
        elif root is list:
            items = [self.part(x) for x in list.__iter__(value)]
        elif root is not object or (lookup(kind, "__new__") is not object.__new__ and _has_c_state(kind)):
            rec.refuse(f"{described(value)} made in the function leaves it")
        fields = [(name, self.part(x)) for name, x in (space or {}).items()]
        slots: list[tuple[Any, Recipe]] = []
        for owner in mro(kind):
            for attribute in namespace(owner).values():
                if is_slot(attribute) and is_python_class(owner):
                    with suppress(AttributeError):
                        slots.append((attribute, self.part(attribute.__get__(value, kind))))

        def fill(instance: Any, values: Values, objects: dict[int, Any]) -> None:
            if root is dict:
                dict.update(instance, {k(values, objects): v(values, objects) for k, v in pairs})
            elif root is list:
                list.extend(instance, [part(values, objects) for part in items])
            if fields:
                instance.__dict__.update({name: part(values, objects) for name, part in fields})
            for place, part in slots:
                place.__set__(instance, part(values, objects))

        return once(key, lambda values, objects: root.__new__(whole(values, objects)), fill)


def _has_c_state(kind: type) -> bool:
    return any(not is_python_class(base) and base is not object for base in mro(kind))


def once(key: int, make: Any, fill: Any) -> Recipe:
    """Return the recipe of one object a call, however often it is referred to. It may hold itself."""

    def recipe(values: Values, objects: dict[int, Any]) -> Any:
        if key not in objects:
            objects[key] = value = make(values, objects)
            fill(value, values, objects)
        return objects[key]

    return recipe


def _whole(key: int, make: Any, parts: list[Recipe]) -> Recipe:
    """Return the recipe of an immutable object."""

    def recipe(values: Values, objects: dict[int, Any]) -> Any:
        if key not in objects:
            objects[key] = make([part(values, objects) for part in parts], values, objects)
        return objects[key]

    return recipe
