"""``observe``: run a function once under observation; the result says how later calls do without running it."""

from __future__ import annotations

import collections
import functools
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any, Final, NamedTuple

from runnel.compile.observe import closures, lifetimes, records, texts
from runnel.compile.observe.changes import Later, call_of
from runnel.compile.observe.classes import MISSING, instance_dict, is_python_class, is_slot, lookup, mro, namespace
from runnel.compile.observe.containers import require_lookup_by_value
from runnel.compile.observe.effects import Effect
from runnel.compile.observe.guard import Guard, NotGuarded
from runnel.compile.observe.not_capturable import NotCapturable
from runnel.compile.observe.policy import Policy
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.recording import Recording
from runnel.compile.observe.sources import Source, is_immortal
from runnel.compile.observe.values import FIXED, PLAIN, SETS, container_of, described, is_class
from runnel.core.pytree import flatten, unflatten

Values = Sequence[Any]  # of the wanted sources, at a later call
Recipe = Callable[[Values, dict[int, Any]], Any]  # a value made anew; the dict holds what was made already


class Change(NamedTuple):
    """An effect as later calls repeat it."""

    apply: Callable[[Any, Any, Any], Any]
    target: Recipe
    key: Recipe
    value: Recipe
    label: str
    advances_version: bool = False  # whether it advances the state version

    def call(self, values: Values, objects: dict[Any, Any]) -> tuple[Any, ...]:
        """The change as a function and its arguments."""
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
    """What goes on around an observed run. Packages with programs of their own inherit from it."""

    varying: frozenset[str] = frozenset()  # labels of numbers that have changed from call to call

    def begin(self, rec: Recorder) -> None:
        """A run is about to begin."""

    def end(self) -> None:
        """The run is over: let go of everything."""

    def running(self, over: Callable[[], None]) -> Any:
        """The context in which the function runs; ``over`` takes back what it did, and is called at the end."""
        return _Running(over)

    def returned(self, rec: Recorder) -> None:
        """The function has returned; changes may be added to those it made."""

    def apart(self, rec: Recorder) -> Any:
        """The context of code that runs as it would outside of the observed call."""
        return nullcontext()

    def found(self, rec: Recorder, value: Any) -> None:
        """Such code gave a value, which later calls find where it keeps it."""

    def complete(self, recipes: Recipes) -> Any:
        """What else later calls need, and where its parts are found (``recipes.place``)."""
        return None


class _Running:
    """A block, and what is called at its end."""

    def __init__(self, over: Callable[[], None]) -> None:
        self._over = over

    def __enter__(self) -> None:
        """The run begins."""

    def __exit__(self, *error: object) -> None:
        self._over()


class Observation:
    """What one run was found to be: its guard, its changes of things outside, and its result, as recipes."""

    reads_results = False  # whether changes need Python's values that a run computes

    def __init__(self, guard: Guard, effects: list[Change], result: Recipe, settled: str, program: Any) -> None:
        self.guard = guard
        self.effects = effects
        self.result = result
        self.unsettled_by = settled  # what it prepared, so that it holds for no later call; "" for most
        self.program = program

    def replay(self, values: Values) -> Any:
        """Do the changes again, and give the result."""
        objects: dict[Any, Any] = {}
        self.repeat(values, objects)
        return self.result(values, objects)

    def repeat(self, values: Values, objects: dict[Any, Any]) -> None:
        """Do the changes again."""
        for function, *args in self.calls(values, objects):
            function(*args)

    def calls(self, values: Values, objects: dict[Any, Any]) -> Iterator[tuple[Any, ...]]:
        """The changes as calls, made out now."""
        return iter([change.call(values, objects) for change in self.effects])

    def calls_later(self, values: Values, objects: dict[Any, Any]) -> Iterator[tuple[Any, ...]]:
        """The same, each made out when its turn comes: for those that depend on what a run has computed."""
        return Later([partial(change.call, values, objects) for change in self.effects])


def observe(
    function: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    policy: Policy,
    session: Session | None = None,
) -> Observation:
    """Run ``function`` observed, take back what it changed, and give the observation.

    Raises NotCapturable where the call cannot be known, and whatever the function raises: everything is as before
    either way.
    """
    session = session or Session()
    rec = Recording(policy, session)
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
            except NotCapturable as refused:
                if not refused.is_passing:
                    with suppress(NotGuarded):
                        refused.guard = Guard(log, [], rec.effects)
                raise
    except NotGuarded as problem:
        raise NotCapturable(str(problem), "at the call") from None


def _reached(
    rec: Recorder, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as the run sees them, and the function itself, with their sources."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    values: list[Any] = []
    for i, value in enumerate(args):
        label = names[i] if i < len(names) else f"argument {i}"
        values.append(rec.reach_symbolic(value, _argument(rec, f"args[{i}]", label, value)))
    named = {
        name: rec.reach_symbolic(value, _argument(rec, f"kwargs[{name!r}]", name, value))
        for name, value in kwargs.items()
    }
    # Whoever asks the guard has looked at the code: what is made for it is filed under it, and must not keep it alive.
    source = rec.sources[id(function)] = rec.log.source(None, "fn", function.__name__, function)
    code = weakref.ref(function.__code__)
    rec.log.check(source, "{v}.__code__ is not {0}()", f"code of {source}", (code,))
    rec.keep(function)
    return values, named


def _argument(rec: Recorder, text: str, label: str, value: Any) -> Source:
    source = rec.log.source(None, text, label, value)
    source.is_argument = True
    return source


def _finished(rec: Recorder, result: Any) -> Observation:
    lifetimes.require_no_callbacks(rec)
    records.require_unread(rec)
    rec.effects.open_keys.clear()  # nobody reads these containers any more
    recipes = Recipes(rec)
    _changed_by_value(rec)
    effects = [_change(recipes, effect) for effect in rec.effects.lasting()]
    answer = recipes.result(result)
    program = rec.session.complete(recipes)
    _stay_distinct(rec)
    guard = Guard(rec.log, recipes.read_sources, rec.effects)
    observation = Observation(guard, effects, answer, rec.settled, program)
    observation.reads_results = recipes.reads_results
    return observation


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


def _changed_by_value(rec: Recorder) -> None:
    """What is put into dicts and sets from outside, or taken out, is found there by its value at later calls, too."""
    changed = {id(e.target): e.target for e in rec.effects.done if issubclass(type(e.target), (dict, *SETS))}
    for target in changed.values():
        base = container_of(type(target))
        for members in (target, rec.effects.before(target)):
            require_lookup_by_value(rec, base.__iter__(members))


def _stay_distinct(rec: Recorder) -> None:
    """Objects that were distinct stay so, where one of them is changed."""
    changed = {id(effect.target) for effect in rec.effects.done if effect.target is not None}
    read = [s for s in rec.sources.values() if s.index >= 0 and s.value is not MISSING]
    for key in changed:
        one = rec.sources.get(key)
        if one is None:
            continue
        for other in read:
            if other is not one and type(other.value) is type(one.value) and other.value is not one.value:
                rec.log.check(None, "{s0} is {s1}", f"{one} is {other}", (), (one, other))


_DEEPEST: Final = 100  # levels of containers that are written down one by one


class _TooDeep(Exception):
    """Containers are nested deeper than Python's calls may be."""


class Recipes:
    """Writes down how values that leave the run are made at later calls."""

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        self.read_sources: list[Source] = []
        self.is_shown = False  # whether they are texts for somebody to read
        self.reads_results = False  # whether Python's values among them are computed by the run
        self._depth = 0
        self._places: dict[int, int] = {}

    def target(self, value: Any) -> Recipe:
        """Something from outside that was changed."""
        if value is None:
            return _constant(None)
        rec = self.rec
        source = rec.source_of(value)
        if source is None and is_class(value) and is_immortal(value):
            return _constant(value)
        if source is None:
            rec.refuse(f"{described(value)} is changed, and cannot be found again")
        return self._read(source)

    def cell(self, value: CellType) -> Recipe:
        """A cell from outside."""
        return self._read(self.rec.sources[id(value)])

    def place(self, source: Source) -> int:
        """The number of a source among the values that the guard gives."""
        place = self._places.get(id(source))
        if place is None:
            place = self._places[id(source)] = len(self.read_sources)
            self.read_sources.append(source)
        return place

    def _read(self, source: Source) -> Recipe:
        return GuardValue(self.place(source))

    def part(self, value: Any) -> Recipe:
        """What something that leaves the run holds; it may hold that in turn."""
        return part_of(self, value)

    def once(self, key: int, make: Any, fill: Any) -> Recipe:
        """One object a call, which is made empty, and filled."""
        return once(key, make, fill, True)

    def result(self, value: Any) -> Recipe:
        """What the function returns, however deep it is nested."""
        try:
            return self.of(value)
        except _TooDeep:
            leaves, structure = flatten(value)
            for key in [key for key in self.rec.memo if key[0] == "recipe"]:
                del self.rec.memo[key]
            parts = [self.of(leaf) for leaf in leaves]
            return lambda values, objects: unflatten(structure, [part(values, objects) for part in parts])

    def of(self, value: Any) -> Recipe:
        """Any value."""
        rec, kind = self.rec, type(value)
        if not self.is_shown and texts.shows_unknown(rec, value):
            texts.refuse(rec, "kept")
        source = rec.source_of(value)
        if source is None:
            source = rec.symbols.get(id(value))
        if source is not None:
            return self._read(source)
        leaf = rec.policy.result(kind)
        if leaf is not None:
            return leaf(self, value)
        if kind in PLAIN or kind in FIXED or value is MISSING or (is_class(value) and is_immortal(value)):
            return _constant(value)
        if kind is slice:
            return self._call(slice, (value.start, value.stop, value.step))
        base, key = container_of(kind), id(value)
        rec.keep(value)
        if base is not None and not is_python_class(kind):
            return self._container(value, kind, base, key)
        if kind is types.BuiltinFunctionType and is_immortal(value):
            return _constant(value)
        if kind is MethodType and not rec.is_own(value.__func__):
            return self._call(MethodType, (value.__func__, value.__self__))
        if kind is functools.partial:
            return self._call(functools.partial, (value.func, *value.args), value.keywords)
        if kind is FunctionType:
            return closures.recipe_of(self, value)
        if kind is MethodType:
            rec.refuse("a method of a class made in the function leaves it", "define it outside")
        if is_class(value):
            rec.refuse(f"{described(value)}, made in the function, leaves it", "define it outside")
        if is_python_class(kind) and not issubclass(kind, BaseException):
            return self._object(value, kind, base, key)
        if rec.policy.is_constant(value):
            return _constant(value)
        rec.refuse(f"{described(value)} made in the function leaves it")

    def _call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Recipe:
        parts, named = [self.of(x) for x in args], {name: self.of(x) for name, x in (kwargs or {}).items()}
        return lambda values, objects: function(
            *[part(values, objects) for part in parts],
            **{name: part(values, objects) for name, part in named.items()},
        )

    def _container(self, value: Any, kind: Any, base: Any, key: int) -> Recipe:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._depth = 0
            raise _TooDeep
        recipe = self._container_of_parts(value, kind, base, key)
        self._depth -= 1
        return recipe

    def _container_of_parts(self, value: Any, kind: Any, base: Any, key: int) -> Recipe:
        if kind in (dict, collections.OrderedDict):
            items = [(self.of(k), part_of(self, v)) for k, v in value.items()]
            return once(
                key,
                kind,
                lambda d, values, objects: d.update({k(values, objects): v(values, objects) for k, v in items}),
            )
        if kind is collections.defaultdict:
            factory, items = self.of(value.default_factory), [(self.of(k), part_of(self, v)) for k, v in value.items()]
            return once(
                key,
                lambda values, objects: collections.defaultdict(factory(values, objects)),
                lambda d, values, objects: d.update({k(values, objects): v(values, objects) for k, v in items}),
                True,
            )
        if kind is bytearray:
            content = bytes(value)
            return once(key, bytearray, lambda b, values, objects: b.extend(content))
        parts = [part_of(self, x) for x in base.__iter__(value)]
        if kind is list:
            return once(key, list, lambda x, values, objects: x.extend([part(values, objects) for part in parts]))
        if kind is collections.deque:
            limit = value.maxlen
            return once(
                key,
                lambda values, objects: collections.deque(maxlen=limit),
                lambda x, values, objects: x.extend([part(values, objects) for part in parts]),
                True,
            )
        if kind is tuple:
            return Row(key, parts)
        if kind in SETS:
            return _built_whole(key, kind, parts)
        self.rec.refuse(f"{described(value)} made in the function leaves it")

    def _object(self, value: Any, kind: Any, base: Any, key: int) -> Recipe:
        """An object of a class of the user's: made empty, and filled."""
        rec = self.rec
        if rec.source_of(kind) is None and rec.class_space(kind) is None and not is_immortal(kind):
            rec.refuse(f"{described(value)}, whose class was made in the function, leaves it")
        if base is tuple:
            whole = self.of(kind)
            parts = [part_of(self, x) for x in tuple.__iter__(value)]
            return _built_whole(
                key, None, parts, lambda items, values, objects: tuple.__new__(whole(values, objects), items)
            )
        make, pour = self._content(value, kind)
        whole = self.of(kind)
        space = instance_dict(value)
        if space is not None and rec.source_of(space) is not None:
            rec.refuse(f"{described(value)} made in the function, whose __dict__ was made outside, leaves it")
        fields = [(name, part_of(self, x)) for name, x in (space or {}).items()]
        slots: list[tuple[Any, Recipe]] = []
        for owner in mro(kind):
            for attribute in namespace(owner).values():
                if is_slot(attribute) and is_python_class(owner):
                    try:
                        content = attribute.__get__(value, kind)
                    except AttributeError:
                        continue
                    slots.append((attribute, part_of(self, content)))

        def fill(instance: Any, values: Values, objects: dict[int, Any]) -> None:
            pour(instance, values, objects)
            if fields:
                instance.__dict__.update({name: part(values, objects) for name, part in fields})
            for place, part in slots:
                place.__set__(instance, part(values, objects))

        return once(key, lambda values, objects: make(whole(values, objects)), fill, True)

    def _content(self, value: Any, kind: Any) -> tuple[Any, Any]:
        """How an object of a class of the user's is made, and gets what the built-in class that it inherits holds."""
        root = next(base for base in mro(kind) if not is_python_class(base))
        if root in _EXACT_VALUES:
            exact = _EXACT_VALUES[root](value)
            return lambda whole: root.__new__(whole, exact), _nothing
        if root is dict:
            items = [(self.of(k), part_of(self, v)) for k, v in dict.items(value)]
            return dict.__new__, lambda made, values, objects: dict.update(
                made, {k(values, objects): v(values, objects) for k, v in items}
            )
        if root in (list, set):
            parts, add = [part_of(self, x) for x in root.__iter__(value)], _EXTENDING[root]
            return root.__new__, lambda made, values, objects: add(made, [part(values, objects) for part in parts])
        if root is not object or (lookup(kind, "__new__") is not object.__new__ and _has_c_state(kind)):
            self.rec.refuse(f"{described(value)} made in the function leaves it")
        return object.__new__, _nothing


# The value of an object of a class that inherits a built-in one, whatever the class has put in place of its methods.
_EXACT_VALUES: Final[dict[type, Callable[[Any], Any]]] = {
    int: int.__pos__, float: float.__pos__, complex: complex.__pos__, str: str.__str__,
}  # fmt: skip
_EXTENDING: Final[dict[type, Callable[[Any, list[Any]], None]]] = {list: list.extend, set: set.update}


def _nothing(*_: Any) -> None:
    """Nothing is put into what is made."""


def _has_c_state(kind: type) -> bool:
    return any(not is_python_class(base) and base is not object for base in mro(kind))


def _constant(value: Any) -> Recipe:
    return Constant(value)


def part_of(recipes: Recipes, value: Any) -> Recipe:
    """A part of a container: written down when first asked for would be too late, and at once may never end."""
    known = recipes.rec.memo.get(("recipe", id(value)))
    if known is not None:
        return known[0] if known else lambda values, objects: known[0](values, objects)
    place: list[Recipe] = []
    recipes.rec.memo["recipe", id(value)] = place
    recipes.rec.keep(value)
    place.append(recipes.of(value))
    return place[0]


def once(key: int, make: Any, fill: Any, takes_values: bool = False) -> Recipe:
    """One object a replay, however often it is referred to; it may hold itself."""

    def recipe(values: Values, objects: dict[int, Any]) -> Any:
        if key not in objects:
            objects[key] = value = make(values, objects) if takes_values else make()
            fill(value, values, objects)
        return objects[key]

    return recipe


def _built_whole(key: int, kind: Any, parts: list[Recipe], make: Any = None) -> Recipe:
    def recipe(values: Values, objects: dict[int, Any]) -> Any:
        if key not in objects:
            items = [part(values, objects) for part in parts]
            objects[key] = kind(items) if make is None else make(items, values, objects)
        return objects[key]

    return recipe
