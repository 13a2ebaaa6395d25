"""LLVM text to addresses of machine code: memo, code built with the package, disk cache, LLVM, linker, in that order.

A compiler is for one LLVM machine; it is independent of Runnel's targets. Any number of threads may use it: each module
belongs to one thread, and compiling a module twice is harmless. New modules that are needed together are compiled by as
many threads as programs run on.

A function stays in memory as long as a program refers to it. The most recently used code is kept alive up to ``KEPT``
bytes, so that the next program of the same kind need not load it again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from runnel.backends import context
from runnel.backends.cpu import emission, link, prebuilt
from runnel.backends.cpu.link import Function, Library
from runnel.backends.host import locks, objects
from runnel.core import switches
from runnel.core.errors import VerifierError
from runnel.core.records import record

if TYPE_CHECKING:
    import llvmlite.binding as llvm


KEPT: Final = 32 << 20  # bytes of pages, in use or not
K = TypeVar("K", bound=Hashable)


class _RecentLibraries:
    """The most recently used libraries, for all tables."""

    def __init__(self) -> None:
        self._libraries: dict[Library, None] = {}  # in order of last use
        self._nbytes = 0
        self._lock = locks.lock()  # never waited for: its holder may be an outer frame of this thread

    def use(self, library: Library) -> None:
        """Note its use, unless another thread holds the lock."""
        if not self._lock.acquire(blocking=False):
            return
        evicted: list[Library] = []  # freed after the lock is released
        try:
            if next(reversed(self._libraries), None) is library:
                return
            if library in self._libraries:
                del self._libraries[library]
            else:
                self._nbytes += library.pages.nbytes
            self._libraries[library] = None
            while self._nbytes > KEPT:
                evicted.append(next(iter(self._libraries)))
                del self._libraries[evicted[-1]]
                self._nbytes -= evicted[-1].pages.nbytes
        finally:
            self._lock.release()

    def clear(self) -> None:
        if self._lock.acquire(blocking=False):
            try:
                self._libraries, self._nbytes = {}, 0
            finally:
                self._lock.release()


_RECENT: Final = _RecentLibraries()


class Functions(Generic[K]):
    """A table of functions with weak references."""

    def __init__(self) -> None:
        self._items: dict[K, tuple[weakref.ref[Library], int]] = {}

    def get(self, key: K) -> Function | None:
        """Return the function of ``key``, if it is still alive."""
        item = self._items.get(key)
        library = None if item is None else item[0]()
        if item is None or library is None:
            return None
        _RECENT.use(library)
        return Function.of(library, item[1])

    def update(self, functions: Iterable[tuple[K, Function]]) -> None:
        """Add functions, each with its key."""
        for key, function in functions:
            self._items[key] = self._reference(key, function.library), int(function)
            _RECENT.use(function.library)

    def _reference(self, key: K, library: Library) -> weakref.ref[Library]:
        items = self._items
        return weakref.ref(library, lambda _: items.pop(key, None))

    def __len__(self) -> int:
        return len(self._items)


def clear() -> None:
    """Free all code that no program refers to."""
    _RECENT.clear()


ABI_VERSION: Final = 1  # of the interface of generated code beyond its text: thread words, records


@record
class Module:
    """LLVM text that is generated on demand: it defines the global ``symbol``, ``identity`` determines it, and ``text``
    generates it, if no machine code is cached under the identity. ``uses`` are the symbols it imports."""

    symbol: str
    identity: str
    text: Callable[[], str]
    uses: frozenset[str] = frozenset()


def of_text(symbol: str, text: str, imports: Iterable[str] = ()) -> Module:
    """Return a module whose identity is its text."""
    return Module(symbol, text, lambda: text, frozenset(name for name in imports if f"@{name}" in text))


class Compiler:
    """Compiles LLVM text for the machine that ``make_machine`` creates and ``identity`` describes in full."""

    def __init__(self, identity: str, make_machine: Callable[[], llvm.TargetMachine]) -> None:
        import llvmlite
        import llvmlite.binding as llvm

        llvm_version = ".".join(map(str, llvm.llvm_version_info))
        versions = f"runnel ABI {ABI_VERSION}, llvmlite {llvmlite.__version__}, LLVM {llvm_version}"
        self._salt = f"{versions}, {sys.platform}, {identity}\n".encode()
        self._machine_identity = f"runnel ABI {ABI_VERSION}, {identity}"
        self._make_machine = make_machine
        self._machine: llvm.TargetMachine | None = None
        self._machines: list[llvm.TargetMachine] = []  # that generate code now and then
        self._functions: Functions[tuple[str, str]] = Functions()
        self._claims = locks.Claims()

    def addresses(
        self, modules: Sequence[tuple[str, str]], imports: Mapping[str, Callable[[], Function]] | None = None
    ) -> list[Function]:
        """Return the address of each (symbol, LLVM text); see :meth:`link`."""
        functions = imports if imports is not None else {}
        return self.link([of_text(symbol, text, functions) for symbol, text in modules], functions)

    def link(self, modules: Sequence[Module], imports: Mapping[str, Callable[[], Function]]) -> list[Function]:
        """Return the function of each module's symbol. A known one costs a hash; all new ones are linked together.

        ``imports`` resolves the symbols that modules use; only those used are resolved.
        """
        keys = [(module.symbol, self.key(module.identity)) for module in modules]
        known = self._known(keys)
        if any(key not in known for key in keys):
            new = {key: module for key, module in zip(keys, modules, strict=True) if key not in known}
            mine, others = self._claims.take(new)
            try:
                known |= self._new_functions({key: module for key, module in new.items() if key not in others}, imports)
            finally:
                self._claims.give_back(mine)
            for claim in others.values():
                claim.done.wait(locks.LONGEST_WAIT)
            known |= self._known(others)
            known |= self._new_functions({key: module for key, module in new.items() if key not in known}, imports)
            objects.statistics.reused += len(keys) - len(new)
        else:
            objects.statistics.reused += len(keys)
        return [known[key] for key in keys]

    def _new_functions(
        self, new: Mapping[tuple[str, str], Module], imports: Mapping[str, Callable[[], Function]]
    ) -> dict[tuple[str, str], Function]:
        """Return the functions of new modules; those that other threads have linked meanwhile are reused."""
        functions = self._known(new)
        rest = {key: module for key, module in new.items() if key not in functions}
        if rest:
            symbols = frozenset().union(*(module.uses for module in rest.values()))
            used = {name: find() for name, find in imports.items() if name in symbols}
            linked = dict(zip(rest, self._linked(rest, used), strict=True))
            self._functions.update(linked.items())
            functions |= linked
        return functions

    def _known(self, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Function]:
        """Return the functions that are still alive; the result keeps them alive."""
        return {key: function for key in keys if (function := self._functions.get(key)) is not None}

    def key(self, identity: str) -> str:
        """Return the cache key of a module's object code, by its identity."""
        digest = hashlib.sha256(self._salt)
        digest.update(identity.encode())
        return digest.hexdigest()

    def object_code(self, text: str, name: str = "the module") -> bytes:
        """Return the object file of ``text``, compiled now."""
        with self._parsed(text, name) as module:
            return self._emitted(module)

    def joined_object_code(self, texts: Mapping[str, str], exported: Collection[str]) -> bytes:
        """Compile several modules' texts, by name, to one object file in which only ``exported`` symbols are
        visible."""
        (name, first), *rest = texts.items()
        with self._parsed(first, name, rest) as module:
            for value in (*module.functions, *module.global_variables):
                if not value.is_declaration and value.name not in exported:
                    value.linkage = "internal"
            return self._emitted(module)

    def assembly(self, text: str, name: str = "the module") -> str:
        """Return the assembly of ``text``, for people."""
        with self._parsed(text, name) as module:
            return str(self._target_machine().emit_assembly(module))

    def _linked(self, modules: Mapping[tuple[str, str], Module], imports: Mapping[str, Function]) -> list[Function]:
        """Return the addresses of new modules. Cached objects that cannot be linked are dropped and compiled again."""
        cache = objects.current()
        filed = self._filed({key: m for (_, key), m in modules.items()}, cache)
        object_codes = filed | self.compile({key: m for (_, key), m in modules.items() if key not in filed})
        try:
            functions = link.link([(symbol, object_codes[key]) for symbol, key in modules], imports)
        except VerifierError:
            if cache is None or not filed:
                raise
            for key in filed:
                cache.drop(key)
            object_codes |= self.compile({key: m for (_, key), m in modules.items() if key in filed})
            return link.link([(symbol, object_codes[key]) for symbol, key in modules], imports)
        objects.statistics.loaded += len(filed)
        return functions

    def _filed(self, modules: Mapping[str, Module], cache: objects.ObjectCache | None) -> dict[str, bytes]:
        """Return the object code, by key, of the modules that the package or the cache on disk has."""
        if not switches.cache.value:
            return {}
        codes = {key: prebuilt.get(prebuilt.key(self._machine_identity, m.identity)) for key, m in modules.items()}
        if cache is not None:
            codes |= {key: cache.get(key) for key, code in codes.items() if code is None}
        return {key: code for key, code in codes.items() if code is not None}

    def compile(self, modules: Mapping[str, Module]) -> dict[str, bytes]:
        """Compile modules, by key, without linking them; store their object code in the cache and return it."""
        if not modules:
            return {}
        begun = time.perf_counter()
        with contextlib.ExitStack() as parsed:
            tasks = [
                functools.partial(self._emitted, parsed.enter_context(self._parsed(m.text(), m.symbol)))
                for m in modules.values()
            ]
            codes = dict(zip(modules, emission.in_threads(tasks, context.current().threads), strict=True))
        objects.statistics.compiled += len(codes)
        if prebuilt.recording is not None:
            machine = self._machine_identity
            prebuilt.recording |= {prebuilt.key(machine, m.identity): codes[key] for key, m in modules.items()}
        if switches.debug.value >= 1:
            took, names = (time.perf_counter() - begun) * 1e3, ", ".join(m.symbol for m in modules.values())
            print(f"runnel: compiled {names} in {took:.1f} ms", file=sys.stderr)
        cache = objects.current()
        if cache:
            for key, code in codes.items():
                cache.put(key, code)
        return codes

    def _emitted(self, module: llvm.ModuleRef) -> bytes:
        """Return the object file of a module, generated by a machine that no other thread is using."""
        machine = self._free_machine()
        code = emission.emit(machine, module)
        self._machines.append(machine)
        return code

    def _free_machine(self) -> llvm.TargetMachine:
        try:
            return self._machines.pop()
        except IndexError:
            return self._make_machine()

    def _target_machine(self) -> llvm.TargetMachine:
        if self._machine is None:
            self._machine = self._make_machine()
        return self._machine

    @contextmanager
    def _parsed(self, text: str, name: str, more: Iterable[tuple[str, str]] = ()) -> Iterator[llvm.ModuleRef]:
        """Parse the module of ``text`` for the block, joined with ``more``: names and texts."""
        import llvmlite.binding as llvm

        # A separate context: the global one would keep every type and constant ever used.
        context = llvm.create_context()
        _CONTEXTS[id(context)] = context
        modules: list[llvm.ModuleRef] = []
        try:
            for part_name, part in ((name, text), *more):
                modules.append(self._module(part, part_name, context))
        except VerifierError:  # after anything else the context stays: see below
            for parsed in modules:
                parsed.close()
            del _CONTEXTS[id(context)]
            raise
        try:
            module = modules[0]
            while len(modules) > 1:
                module.link_in(modules.pop())  # which is gone then
            if switches.verify.value:
                _verify(module, name)
            yield module
        finally:
            for rest in modules:
                rest.close()
            del _CONTEXTS[id(context)]

    def _module(self, text: str, name: str, context: llvm.ContextRef) -> llvm.ModuleRef:
        import llvmlite.binding as llvm

        try:
            module = llvm.parse_assembly(text, context)
        except RuntimeError as error:
            raise VerifierError(f"LLVM refused the text of {name}: {error}") from error
        module.triple = self._target_machine().triple
        module.data_layout = str(self._target_machine().target_data)
        return module


# Contexts with modules in them. If an interrupt arrives while a module is parsed, its traceback refers to both, and the
# garbage collector would free them in any order; LLVM crashes when the context is freed first.
_CONTEXTS: Final[dict[int, Any]] = {}


def _verify(module: llvm.ModuleRef, name: str) -> None:
    try:
        module.verify()
    except RuntimeError as error:
        raise VerifierError(f"LLVM refused the text of {name}: {error}") from error
