"""LLVM text into addresses: memo, disk cache, LLVM, linker, in that order.

A compiler is for one LLVM machine; it knows nothing of Runnel's targets. Any number of threads may use it: llvmlite
lets one call into LLVM in at a time, modules are of one thread each, and what two threads compile twice is right twice.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from runnel.backends.cpu import link
from runnel.backends.cpu.functions import Functions
from runnel.backends.cpu.link import Function
from runnel.backends.host import claims, objects
from runnel.core import switches
from runnel.core.errors import VerifierError
from runnel.core.records import record

if TYPE_CHECKING:
    import llvmlite.binding as llvm

ABI_VERSION: Final = 1  # of what generated code and its callers agree on beyond the text: thread words, records


@record
class Module:
    """LLVM text that need not exist yet: it defines the global ``symbol``, ``identity`` determines it, and ``text``
    writes it, which is asked for only where no machine code is filed under the identity. ``uses`` are the symbols it
    takes from elsewhere."""

    symbol: str
    identity: str
    text: Callable[[], str]
    uses: frozenset[str] = frozenset()


def of_text(symbol: str, text: str, imports: Iterable[str] = ()) -> Module:
    """A module whose text is there already, and is its identity."""
    return Module(symbol, text, lambda: text, frozenset(name for name in imports if f"@{name}" in text))


class Compiler:
    """Compiles LLVM text for the machine that ``make_machine`` creates and ``identity`` describes in full."""

    def __init__(self, identity: str, make_machine: Callable[[], llvm.TargetMachine]) -> None:
        import llvmlite
        import llvmlite.binding as llvm

        llvm_version = ".".join(map(str, llvm.llvm_version_info))
        versions = f"runnel ABI {ABI_VERSION}, llvmlite {llvmlite.__version__}, LLVM {llvm_version}"
        self._salt = f"{versions}, {sys.platform}, {identity}\n".encode()
        self._make_machine = make_machine
        self._machine: llvm.TargetMachine | None = None
        self._functions: Functions[tuple[str, str]] = Functions()
        self._claims = claims.Claims()

    def addresses(
        self, modules: Sequence[tuple[str, str]], imports: Mapping[str, Callable[[], Function]] | None = None
    ) -> list[Function]:
        """The address of each (symbol, LLVM text); see :meth:`link`."""
        found = imports if imports is not None else {}
        return self.link([of_text(symbol, text, found) for symbol, text in modules], found)

    def link(self, modules: Sequence[Module], imports: Mapping[str, Callable[[], Function]]) -> list[Function]:
        """The function of each module's symbol. One already there costs a hash; all that is new is linked at once.

        ``imports`` says where the symbols that modules use are found; only those used are asked for.
        """
        keys = [(module.symbol, self.key(module.identity)) for module in modules]
        known = self._known(keys)
        if any(key not in known for key in keys):
            new = {key: module for key, module in zip(keys, modules, strict=True) if key not in known}
            mine, others = self._claims.take(new)
            try:
                known |= self._made({key: module for key, module in new.items() if key not in others}, imports)
            finally:
                self._claims.give_back(mine)
            for claim in others.values():
                claim.done.wait(claims.LONGEST_WAIT)
            known |= self._known(others)
            known |= self._made({key: module for key, module in new.items() if key not in known}, imports)
            objects.statistics.reused += len(keys) - len(new)
        else:
            objects.statistics.reused += len(keys)
        return [known[key] for key in keys]

    def _made(
        self, new: Mapping[tuple[str, str], Module], imports: Mapping[str, Callable[[], Function]]
    ) -> dict[tuple[str, str], Function]:
        """The functions of new modules, but of those that have come meanwhile the ones that are there."""
        made = self._known(new)
        rest = {key: module for key, module in new.items() if key not in made}
        if rest:
            wanted = frozenset().union(*(module.uses for module in rest.values()))
            used = {name: find() for name, find in imports.items() if name in wanted}
            linked = dict(zip(rest, self._linked(rest, used), strict=True))
            self._functions.update(linked.items())
            made |= linked
        return made

    def _known(self, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Function]:
        """Those that are there; whoever has them keeps them there."""
        return {key: function for key in keys if (function := self._functions.get(key)) is not None}

    def key(self, identity: str) -> str:
        """What the object code of a module (of a text, if that is its identity) is filed under."""
        digest = hashlib.sha256(self._salt)
        digest.update(identity.encode())
        return digest.hexdigest()

    def object_code(self, text: str, name: str = "the module") -> bytes:
        """The object file of ``text``, compiled now."""
        with self._parsed(text, name) as module:
            return bytes(self._target_machine().emit_object(module))

    def assembly(self, text: str, name: str = "the module") -> str:
        """The assembly of ``text``, for a reader."""
        with self._parsed(text, name) as module:
            return str(self._target_machine().emit_assembly(module))

    def _linked(self, modules: Mapping[tuple[str, str], Module], imports: Mapping[str, Function]) -> list[Function]:
        """The addresses of new modules. Objects from the disk that cannot be linked are dropped and compiled anew."""
        cache = objects.current()
        filed = {key: code for _, key in modules if cache and (code := cache.get(key)) is not None}
        made = filed | {key: self._compiled(key, m) for (_, key), m in modules.items() if key not in filed}
        try:
            found = link.link([(symbol, made[key]) for symbol, key in modules], imports)
        except VerifierError:
            if cache is None or not filed:
                raise
            for key in filed:
                cache.drop(key)
            made |= {key: self._compiled(key, m) for (_, key), m in modules.items() if key in filed}
            return link.link([(symbol, made[key]) for symbol, key in modules], imports)
        objects.statistics.loaded += len(filed)
        return found

    def _compiled(self, key: str, module: Module) -> bytes:
        begun = time.perf_counter()
        code = self.object_code(module.text(), module.symbol)
        objects.statistics.compiled += 1
        if switches.debug.value >= 1:
            took = (time.perf_counter() - begun) * 1e3
            print(f"runnel: compiled {module.symbol} in {took:.1f} ms", file=sys.stderr)
        cache = objects.current()
        if cache:
            cache.put(key, code)
        return code

    def _target_machine(self) -> llvm.TargetMachine:
        if self._machine is None:
            self._machine = self._make_machine()
        return self._machine

    @contextmanager
    def _parsed(self, text: str, name: str) -> Iterator[llvm.ModuleRef]:
        """The module of ``text`` for the block."""
        import llvmlite.binding as llvm

        # A context of its own: the global one would keep every type and constant ever seen.
        context = llvm.create_context()
        _CONTEXTS[id(context)] = context
        try:
            module = llvm.parse_assembly(text, context)
        except RuntimeError as error:
            del _CONTEXTS[id(context)]
            raise VerifierError(f"LLVM refused the text of {name}: {error}") from error
        try:
            module.triple = self._target_machine().triple
            module.data_layout = str(self._target_machine().target_data)
            if switches.verify.value:
                _verify(module, name)
            yield module
        finally:
            module.close()
            del _CONTEXTS[id(context)]


# Contexts with modules in them. If an interrupt comes while a module is made, its traceback holds both of them, and the
# garbage collector would end them in any order; LLVM crashes when the context is the first.
_CONTEXTS: Final[dict[int, Any]] = {}


def _verify(module: llvm.ModuleRef, name: str) -> None:
    try:
        module.verify()
    except RuntimeError as error:
        raise VerifierError(f"LLVM refused the text of {name}: {error}") from error


def _llvm_lock() -> Any:
    """llvmlite's lock around its calls; None while llvmlite is not loaded, or if it has another one."""
    ffi = sys.modules.get("llvmlite.binding.ffi")
    return getattr(getattr(ffi, "lib", None), "_lock", None)


_HELD: Final[list[Any]] = []  # by forks that are under way


def _before_fork() -> None:
    """LLVM has locks of its own, which a child would find as they are: nobody may be in LLVM at a fork."""
    lock = _llvm_lock()
    if lock is not None:
        lock.__enter__()
    _HELD.append(lock)


def _after_fork() -> None:
    lock = _HELD.pop()
    if lock is not None:
        lock.__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
