"""Expressions of the loop IR to LLVM text, inside one function.

A value that does not depend on the vec loop's variable stays a scalar and is broadcast where lanes need it. ``memory``
emits single accesses, ``loops`` statements.
"""

from __future__ import annotations

from collections.abc import Iterable

from runnel.backends.cpu.codegen import memory
from runnel.backends.cpu.codegen.accumulators import Accumulator
from runnel.backends.cpu.codegen.lanes import Lanes, apply, constant, widen
from runnel.backends.cpu.codegen.memory import Active
from runnel.backends.cpu.codegen.text import Emitter, element, vector
from runnel.core.dtypes import DType, int64
from runnel.core.errors import VerifierError
from runnel.core.records import field, record, replace
from runnel.loops import uses
from runnel.loops.ir import Apply, Const, Expr, Index, Load, Param, Position, RangeBound, Ref, Store, Stride, Var


@record
class Vec:
    """The current vec loop: its variable and the lanes that are in range."""

    var: Var
    active: Active


@record(frozen=False)
class Scope:
    """The scope of one block of statements. ``pointers`` hold each access's address as far as the variables of this
    scope determine it (in a vec loop: the address of lane 0); ``loads`` and ``results`` are reused until a Store.
    """

    variables: dict[Var, str] = field(default_factory=dict)
    names: dict[str, Lanes] = field(default_factory=dict)
    accumulators: dict[str, Accumulator] = field(default_factory=dict)
    pointers: dict[uses.Access, str] = field(default_factory=dict)
    hoisted: dict[int, Lanes] = field(default_factory=dict)
    loads: dict[uses.Access, Lanes] = field(default_factory=dict)
    results: dict[int, Lanes] = field(default_factory=dict)
    vec: Vec | None = None

    def inner(self) -> Scope:
        """Return the scope of a block inside this one, which does not reuse loads."""
        return replace(
            self,
            variables=dict(self.variables),
            names=dict(self.names),
            accumulators=dict(self.accumulators),
            pointers=dict(self.pointers),
            hoisted=dict(self.hoisted),
            loads={},
            results={},
        )

    def forget_loads(self) -> None:
        self.loads.clear()
        self.results.clear()


class Values:
    """The expressions of one function: ``params`` are the operands of its params, ``bases`` each buffer's pointer.
    ``words`` are the params that expressions read from ``args`` where they use them, with their positions there."""

    def __init__(
        self,
        em: Emitter,
        bases: dict[str, str],
        dtypes: dict[str, DType],
        params: dict[str, str],
        words: dict[str, int],
        tiles: frozenset[str],
    ) -> None:
        self.em = em
        self.dtypes = dtypes
        self.bases = bases
        self.params = params
        self.words = words
        self.tiles = tiles  # the buffers that are one block of a product
        self.scope = Scope()

    # positions

    def stride(self, stride: Stride) -> str:
        """Return a stride, offset or extent as an i64 operand."""
        return str(stride) if isinstance(stride, int) else self.params[stride.name]

    def _scaled(self, operand: str, stride: Stride) -> str:
        if stride in (0, 1) or operand == "0":
            return operand if stride == 1 else "0"
        return self.em.value(f"mul i64 {operand}, {self.stride(stride)}")

    def start_pointers(self, accesses: Iterable[uses.Access]) -> None:
        """Set each access to its buffer's base and constant offset."""
        for buffer, index in accesses:
            start = memory.advance(self.em, self.dtypes[buffer], self.bases[buffer], self.stride(index.offset))
            self.scope.pointers[buffer, index] = start

    def bind_variable(self, var: Var, operand: str, accesses: Iterable[uses.Access]) -> None:
        """Set a loop variable in this scope and move the pointers of the accesses that depend on it."""
        self.scope.variables[var] = operand
        products: dict[Stride, str] = {}
        for buffer, index in accesses:
            for term, stride in index.terms:
                if term == var:
                    if stride not in products:
                        products[stride] = self._scaled(operand, stride)
                    pointer = self.scope.pointers[buffer, index]
                    moved = memory.advance(self.em, self.dtypes[buffer], pointer, products[stride])
                    self.scope.pointers[buffer, index] = moved

    # expressions

    def evaluate(self, expr: Expr) -> Lanes:
        """Emit the instructions of an expression, or return its value if they are emitted already."""
        scope = self.scope
        known = scope.hoisted.get(id(expr)) or scope.results.get(id(expr))
        if known is None:
            known = self._evaluate(expr)
            if isinstance(expr, Apply | Position):
                scope.results[id(expr)] = known
        return known

    def _evaluate(self, expr: Expr) -> Lanes:
        if isinstance(expr, Const):
            return constant(expr.value, expr.dtype)
        if isinstance(expr, Ref):
            value = self.scope.names.get(expr.name)
            return self.scope.accumulators[expr.name].result(self.em) if value is None else value
        if isinstance(expr, Position):
            return self._position(expr)
        if isinstance(expr, Load):
            return self._load(expr)
        if isinstance(expr, Param):
            return self._word(expr, int64) if expr.name in self.words else Lanes(self.params[expr.name], 1)
        if isinstance(expr, RangeBound):
            return Lanes(f"%{expr.value}", 1)
        number = self.read_at_use(expr)
        if number is not None:
            return self._word(number, expr.dtype)
        arguments = [self.evaluate(x) for x in expr.args]
        lanes = max((x.lanes for x in arguments), default=1)
        dtypes = [x.dtype for x in expr.args]
        texts = [widen(self.em, x, dtype, lanes) for x, dtype in zip(arguments, dtypes, strict=True)]
        return Lanes(apply(self.em, expr.op, texts, dtypes, expr.dtype, lanes), lanes)

    def read_at_use(self, expr: Expr) -> Param | None:
        """Return the param of a constant that is not kept in a register; None for other expressions."""
        param = uses.of_bits(expr) if self.words else None
        return param if param is not None and param.name in self.words else None

    def _word(self, param: Param, dtype: DType) -> Lanes:
        """Return the low bytes of a word of ``args``."""
        pointer = self.em.value(f"getelementptr i64, ptr %args, i64 {self.words[param.name]}")
        return Lanes(memory.load(self.em, dtype, pointer), 1)

    def _position(self, expr: Position) -> Lanes:
        if not expr.dtype.is_integer:
            raise VerifierError(f"Position({expr.var.name}) has dtype {expr.dtype.name}; it is an integer.")
        operand = self.scope.variables[expr.var]
        kind = element(expr.dtype)
        if kind != "i64":
            operand = self.em.value(f"trunc i64 {operand} to {kind}")
        vec = self.scope.vec
        if vec is None or vec.var != expr.var:
            return Lanes(operand, 1)
        width = vec.active.width
        start = self.em.broadcast(operand, expr.dtype, width)
        lanes = memory.ascending(kind, width)
        return Lanes(self.em.value(f"add {vector(expr.dtype, width)} {start}, {lanes}"), width)

    # memory

    def _load(self, expr: Load) -> Lanes:
        key = (expr.buffer, expr.index)
        known = self.scope.loads.get(key)
        if known is None:
            known = self.scope.loads[key] = self._new_load(expr)
        return known

    def _new_load(self, expr: Load) -> Lanes:
        em, dtype = self.em, self.dtypes[expr.buffer]
        pointer, offsets = self._place(expr.buffer, expr.index)
        if offsets is None:
            return Lanes(memory.load(em, dtype, pointer), 1)
        active = self._active()
        if not offsets:
            return Lanes(memory.load_lanes(em, dtype, pointer, active), active.width)
        return Lanes(memory.gather(em, dtype, pointer, offsets, active), active.width)

    def store(self, stmt: Store) -> None:
        em, dtype = self.em, self.dtypes[stmt.buffer]
        value = self.evaluate(stmt.value)
        pointer, offsets = self._place(stmt.buffer, stmt.index)
        if offsets is None:
            one = value.operand
            if value.lanes > 1:
                one = memory.last_active(em, dtype, one, self._active())
            memory.store(em, dtype, pointer, one)
        else:
            active = self._active()
            lanes = widen(self.em, value, dtype, active.width)
            if offsets:
                memory.scatter(em, dtype, pointer, offsets, lanes, active)
            else:
                memory.store_lanes(em, dtype, pointer, lanes, active)
        self.scope.forget_loads()

    def place(self, buffer: str, index: Index) -> str:
        """Return the pointer of an access outside vec loops."""
        return self._place(buffer, index)[0]

    def _active(self) -> Active:
        if self.scope.vec is None:
            raise VerifierError("A value of many lanes is used outside a vec loop.")
        return self.scope.vec.active

    def _place(self, buffer: str, index: Index) -> tuple[str, list[str] | None]:
        """Return the pointer of an access and each lane's offset from it: None where all lanes share one element, empty
        where they are adjacent."""
        em, dtype = self.em, self.dtypes[buffer]
        pointer = self.scope.pointers[buffer, index]
        computed: list[str] = []  # the offsets of lanes from integer expressions, as vectors
        for expr, stride in index.gathered:
            value = self.evaluate(expr)
            wide = self._as_int64(value, expr.dtype)
            if value.lanes == 1:
                pointer = memory.advance(em, dtype, pointer, self._scaled(wide, stride))
            elif stride != 0:
                computed.append(self._scaled_lanes(wide, stride, value.lanes))
        vec = self.scope.vec
        strides = [s for var, s in index.terms if vec is not None and var == vec.var and s != 0]
        if not computed:
            if vec is None or not strides:
                return pointer, None
            if strides == [1]:
                return pointer, []
            return pointer, self._steps(strides, vec.active.width)
        width = self._active().width
        kind = f"<{width} x i64>"
        total = computed[0]
        for more in computed[1:]:
            total = em.value(f"add {kind} {total}, {more}")
        offsets = [em.value(f"extractelement {kind} {total}, i32 {lane}") for lane in range(width)]
        if strides:
            steps = self._steps(strides, width)
            offsets = [x if s == "0" else em.value(f"add i64 {x}, {s}") for x, s in zip(offsets, steps, strict=True)]
        return pointer, offsets

    def _steps(self, strides: list[Stride], width: int) -> list[str]:
        """Return the offset of each lane from lane 0."""
        fixed = sum(s for s in strides if isinstance(s, int))
        if all(isinstance(s, int) for s in strides):
            return [str(lane * fixed) for lane in range(width)]
        step = str(fixed)
        for stride in strides:
            if not isinstance(stride, int):
                operand = self.params[stride.name]
                step = operand if step == "0" else self.em.value(f"add i64 {step}, {operand}")
        steps = ["0", step]
        while len(steps) < width:
            steps.append(self.em.value(f"add i64 {steps[-1]}, {step}"))
        return steps

    def _as_int64(self, value: Lanes, dtype: DType) -> str:
        if not dtype.is_integer:
            raise VerifierError(f"An index has dtype {dtype.name}; it is an integer.")
        if dtype.itemsize == 8 or value.is_literal:
            return value.operand
        how = "sext" if dtype.kind == "int" else "zext"
        wide = vector(int64, value.lanes)
        return self.em.value(f"{how} {vector(dtype, value.lanes)} {value.operand} to {wide}")

    def _scaled_lanes(self, operand: str, stride: Stride, lanes: int) -> str:
        if stride == 1:
            return operand
        factor = widen(self.em, Lanes(self.stride(stride), 1, isinstance(stride, int)), int64, lanes)
        return self.em.value(f"mul {vector(int64, lanes)} {operand}, {factor}")
