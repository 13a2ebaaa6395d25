"""The interfaces of recorder, policy and hooks, for the files of an observed run."""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any, NoReturn

from runnel.compile.observe.effects import Effects
from runnel.compile.observe.not_capturable import NotCapturable
from runnel.compile.observe.plain import Call
from runnel.compile.observe.sources import Log, Source
from runnel.compile.observe.values import SYMBOLIC


class AbstractPolicy:
    """What a recorder asks about code it cannot observe."""

    answers: dict[int, Any]
    answers_by_key: dict[Any, Any]
    answers_by_code: dict[int, Any]  # of functions that are made again and again of one code
    passing_on: frozenset[int]  # functions whose answers do not look at numbers and texts they are given

    def leaf(self, kind: type) -> Any:
        """How a value of this kind is checked where it is first found; None: by its type."""
        return None

    def is_symbolic(self, rec: Recorder, kind: type, source: Source) -> bool:
        """Whether a number that is read here may be another one at later calls."""
        return False

    def is_looked_at(self, kind: type) -> bool:
        """Whether C code that iterates looks into a value of this kind."""
        return False

    def is_fixed_class(self, kind: type) -> bool:
        """Whether a class made in Python counts as one that never changes."""
        return False

    def takes_floats(self, symbol: str, value: Any) -> bool:
        """Whether an operator does with ``value`` and a whole number what it does with the float of that number."""
        return False

    def integer_beside(self, rec: Recorder, symbol: str, value: Any, other: Any) -> Any:
        """Return the operand in place of an int that may differ at later calls, beside ``other``; None for the int."""
        return None

    def as_number(self, rec: Recorder, value: Any) -> Any:
        """A number of another package's as Python's; other values as they are."""
        return value

    def is_transparent(self, kind: type) -> bool:
        """Whether objects of this class do what its bases do, as far as a run is concerned."""
        return False

    def on_fixed_attribute(self, rec: Recorder, kind: type, name: str) -> Source | None:
        """An attribute was found in a class that does not change as a rule. Where later calls find it, if it was given
        to the class by somebody else."""
        return None

    def on_absent_attribute(self, rec: Recorder, kind: type, name: str) -> None:
        """No class in the order of ``kind`` holds an attribute."""

    def advances_version(self, kind: type) -> bool:
        """Whether setting an attribute of such an object advances the state version."""
        return False

    def changes_by_version(self, value: Any) -> bool:
        """Whether what is checked of a value changes only when the state version changes."""
        return False

    def is_pinned_key(self, rec: Recorder, key: Any) -> bool:
        """Whether a key from outside is found in a dict by which object it is. Later calls must then find the same."""
        return False

    def counts_by_identity(self, function: FunctionType) -> bool:
        """Whether a function runs unobserved, so that another one of the same code is another function."""
        return False

    def kind_of(self, value: Any) -> Any:
        """What ``type(value)`` says."""
        return SYMBOLIC.get(type(value), type(value))

    def operator(self, kind: type, other: type) -> Any:
        """How operators on such values are applied; None: by the rules for Python's objects."""
        return None

    def item(self, kind: type) -> Any:
        """How items of such values are read and written; None: by the rules for Python's objects."""
        return None

    def attribute(self, kind: type, name: str) -> Any:
        """How an attribute of such values is read; None: by the rules for Python's objects."""
        return None

    def shows_unknown(self, text: str) -> bool:
        """Whether a text shows something that has a value only at later calls."""
        return False

    def makes_text(self, rec: Recorder, values: Iterable[Any]) -> None:
        """C code makes a text of these values."""

    def context_manager(self, kind: type) -> bool:
        """Whether entering and leaving a ``with`` block of such an object of C code is repeated safely."""
        return False

    def result(self, kind: type) -> Any:
        """How such a value that leaves the run is made at later calls; None: by the rules for Python's objects."""
        return None

    def copies_itself(self, kind: type) -> bool:
        """Whether a class made in Python copies its objects by what is known of them."""
        return False

    def refuse_leftover(self, value: Any) -> NoReturn:
        """A value of another run was found."""
        raise NotImplementedError

    def with_foreign_parts(self, rec: Recorder, value: Any) -> Any:
        """An object of code that runs unobserved, which holds things of the user's, is given to such code."""
        return value

    def user_object(self, rec: Recorder, value: Any) -> Any:
        """An object of the user's is given to code that runs unobserved."""
        return value

    def is_unobserved(self, module: str) -> bool:
        """Whether code of a module runs unobserved by contract."""
        return False

    def native_class(self, kind: type) -> Any:
        """How a class whose objects are made unobserved is called; None: observed."""
        return None

    def class_method(self, kind: type, name: str) -> Any:
        """How a method of a class written in C is called."""
        return None

    def callable(self, kind: type) -> Any:
        """How such an object is called; None: by its ``__call__``."""
        raise NotImplementedError

    def is_readable(self, kind: type, name: str) -> bool:
        """Whether a guard may read an attribute of an object of C code again."""
        raise NotImplementedError

    def look_into(self, rec: Recorder, value: Any, source: Source | None) -> None:
        """C code looks into an object that is no container."""
        raise NotImplementedError

    def is_constant(self, value: Any) -> bool:
        """Whether an object of C code never changes, so that it can be given at each call."""
        raise NotImplementedError

    def is_library(self, module: str) -> bool:
        """Whether a module is Python's own library: refusals name the line that called it."""
        raise NotImplementedError

    def native(self, function: FunctionType) -> Any:
        """How a Python function that runs unobserved is called; None: it is observed."""
        raise NotImplementedError

    def refuse_c(self, rec: Recorder, function: Any) -> Any:
        """A function written in C that is not known."""
        raise NotImplementedError

    def c_function(self, rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function of a module written in C."""
        raise NotImplementedError

    def c_class(self, rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An object of a class written in C is made."""
        raise NotImplementedError

    def method(self, kind: type, name: str) -> Any:
        """How a method of an object of C code is called; None: by the rules of its kind."""
        raise NotImplementedError

    def is_pure_method(self, kind: type, name: str) -> bool:
        """Whether a method of an object of C code depends on the object and its arguments alone."""
        raise NotImplementedError


class AbstractHooks:
    """What others than the observed code itself ask of the hooks."""

    rec: Recorder

    def load_attr(self, name: str, value: Any) -> Any:
        raise NotImplementedError

    def store_attr(self, name: str, value: Any, target: Any) -> None:
        raise NotImplementedError

    def get_item(self, value: Any, key: Any) -> Any:
        raise NotImplementedError

    def set_item(self, value: Any, target: Any, key: Any) -> None:
        raise NotImplementedError

    def delete_item(self, target: Any, key: Any) -> None:
        raise NotImplementedError

    def binary(self, symbol: str, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def unary(self, symbol: str, value: Any) -> Any:
        raise NotImplementedError

    def compare(self, what: tuple[str, bool], a: Any, b: Any) -> Any:
        raise NotImplementedError

    def identity(self, inverted: bool, a: Any, b: Any) -> bool:
        raise NotImplementedError

    def contains(self, inverted: bool, value: Any, container: Any) -> bool:
        raise NotImplementedError

    def truth(self, value: Any) -> bool:
        raise NotImplementedError

    def format(self, how: int, value: Any, spec: Any = "") -> str:
        raise NotImplementedError

    def build_set(self, members: tuple[Any, ...]) -> set[Any]:
        raise NotImplementedError

    def build_map(self, parts: tuple[Any, ...]) -> dict[Any, Any]:
        raise NotImplementedError

    def map_add(self, key: Any, value: Any, table: dict[Any, Any]) -> None:
        raise NotImplementedError

    def iterate(self, value: Any) -> Any:
        """What the loop goes over: items of a list from outside are read as the loop comes to them."""
        raise NotImplementedError

    def unpack(self, value: Any) -> Any:
        raise NotImplementedError

    def spread(self, value: Any) -> Any:
        """The items that the code takes apart."""
        raise NotImplementedError

    def listed(self, value: Any) -> Any:
        """The items that go into a list, for which C code asks how many there will be."""
        raise NotImplementedError

    def starred(self, value: Any) -> Any:
        """The arguments of a call ``f(*value)``, for which some versions of Python ask how many there will be."""
        raise NotImplementedError

    def unpack_mapping(self, value: Any) -> Any:
        raise NotImplementedError

    def call(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def call_with_names(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def call_unpacked(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        raise NotImplementedError


class Recorder:
    """One observed run: where each value from outside was found, and what was read."""

    policy: AbstractPolicy
    session: Any
    log: Log
    effects: Effects
    sources: dict[int, Source]
    computed: int
    symbols: dict[int, Source]
    stand_ins: dict[int, Source]
    cells: dict[int, Source]
    codes: set[int]
    originals: dict[int, CodeType]
    not_capturable: NotCapturable | None
    memo: dict[Any, Any]
    hooks: AbstractHooks
    actor: Any
    net: Any  # while C code is called
    settled: str

    def reach(self, value: Any, source: Source) -> Any:
        """``value`` was read at ``source``: check it, or remember where it was found. Gives the value."""
        raise NotImplementedError

    def reach_symbolic(self, value: Any, source: Source) -> Any:
        """The same for a value that the run gets from here alone: a number may be another one at later calls."""
        raise NotImplementedError

    def is_plain(self, value: Any, source: Source) -> None:
        """A later call must find an equal number or text at ``source``."""
        raise NotImplementedError

    def concrete_number(self, value: Any) -> Any:
        """A number that somebody looks at: a later call must find an equal one."""
        raise NotImplementedError

    def source_of(self, value: Any) -> Source | None:
        """Where a value from outside was found; None for what the run made."""
        raise NotImplementedError

    def class_space(self, kind: type) -> Source | None:
        """The source of a class's namespace; None for classes that cannot change or that the run made."""
        raise NotImplementedError

    def class_lookup(self, kind: type, name: str) -> tuple[Any, Source | None]:
        """What a class holds under ``name``, checked along its bases, and where; MISSING where it holds nothing."""
        raise NotImplementedError

    def class_attribute(self, kind: type, name: str) -> Any:
        """What a class holds under ``name``, remembered with its source."""
        raise NotImplementedError

    def followed(self, container: Any) -> Source | None:
        """Where the guard finds what a list of plain values holds now; None where it does not compute that."""
        raise NotImplementedError

    def pinned(self, value: Any) -> None:
        """Which object this is matters: a later call must find the same one."""
        raise NotImplementedError

    def twin(self, function: FunctionType) -> FunctionType:
        """A function like this one whose code tells this recorder what it does."""
        raise NotImplementedError

    def register(self, code: CodeType, original: CodeType) -> None:
        """Code made here, of ``original``, runs observed."""
        raise NotImplementedError

    def has_code(self, code: CodeType) -> bool:
        """Whether this is code that this recorder made."""
        raise NotImplementedError

    def is_own(self, function: Any) -> bool:
        """Whether a function runs code that this recorder made."""
        raise NotImplementedError

    def invoke(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function, observed. What it gives may be looked at."""
        raise NotImplementedError

    def passed(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """The same where what it gives goes to the observed code alone."""
        raise NotImplementedError

    def prepared(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """What to call in place of a function."""
        raise NotImplementedError

    def constructed(self, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """What to call in place of a class, as ``type.__call__`` does."""
        raise NotImplementedError

    def invoke_special(
        self, method: Any, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a special method that the class of ``value`` holds."""
        raise NotImplementedError

    def bind(self, attribute: Any, value: Any, kind: type) -> Any:
        """What a class holds, as a method of ``value``."""
        raise NotImplementedError

    def bound(self, function: Any, value: Any) -> Any:
        """A class method of the class ``value``."""
        raise NotImplementedError

    def callback(self, function: Any) -> Any:
        """A function for C code to call, observed. What it gives is passed on."""
        raise NotImplementedError

    def judged(self, function: Any) -> Any:
        """The same where C code looks at what it gives: compares keys, say."""
        raise NotImplementedError

    def calls_c(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function written in C that looks into its arguments."""
        raise NotImplementedError

    def makes_class(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A part of the interpreter that makes a class is called."""
        raise NotImplementedError

    def classes_in(self, values: Any) -> list[type]:
        """Classes with special methods written in Python of what C code can find in these values."""
        raise NotImplementedError

    def exposed(self, classes: list[type], called_from: CodeType | None = None) -> Any:
        """A block in which C code, and code that runs unobserved, calls the special methods of classes observed."""
        raise NotImplementedError

    def hashed(self, key: Any) -> None:
        """C code hashes and compares a key."""
        raise NotImplementedError

    def change(self, value: Any, symbol: str, other: Any) -> Any:
        """``value += other`` of a container from outside."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of everything; hooks and recorder refer to each other, and must not wait for the collector."""
        raise NotImplementedError

    def keep(self, value: Any) -> None:
        """Keep an object alive until the recording ends, so that its address means it."""
        raise NotImplementedError

    def constant(self, value: Any) -> Any:
        """One object for equal constants."""
        raise NotImplementedError

    def builtins_source(self, names: dict[str, Any], built: dict[str, Any]) -> Source:
        """Where built-in names are found."""
        raise NotImplementedError

    def importing(self, at: tuple[dict[str, Any], str], level: int, names: Any) -> Any:
        """``import name``: the module is found again by its name; a first import settles."""
        raise NotImplementedError

    def frame(self, level: int) -> Any:
        """The ``level``-th observed frame, the innermost first."""
        raise NotImplementedError

    def refuse(self, reason: str, remedy: str = "", is_intended: bool = False, is_passing: bool = False) -> NoReturn:
        """End the observation."""
        raise NotImplementedError

    def line(self) -> str:
        """``file:line`` of the innermost observed frame, outside the standard library where there is one."""
        raise NotImplementedError
