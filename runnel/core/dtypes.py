"""Element types. This is the lowest module: all others use these objects for dtypes."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np


class DType:
    """One element type: its name, its size in bytes, its kind and its NumPy twin.

    Instances are singletons, so they compare by identity. ``kind`` is one of
    ``"bool"``, ``"int"``, ``"uint"``, ``"float"``, ``"complex"``. Values of the dtypes that are ``is_inexact``, floats
    and complex numbers, have derivatives.
    """

    __slots__ = ("is_complex", "is_float", "is_inexact", "is_integer", "itemsize", "kind", "name", "numpy")

    def __init__(self, name: str, kind: str, numpy_type: Any) -> None:
        self.name: Final = name
        self.kind: Final = kind
        self.numpy: Final = np.dtype(numpy_type)
        self.itemsize: Final = self.numpy.itemsize
        self.is_float: Final = kind == "float"
        self.is_integer: Final = kind in ("int", "uint")
        self.is_complex: Final = kind == "complex"
        self.is_inexact: Final = self.is_float or self.is_complex

    def __repr__(self) -> str:
        return f"runnel.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (by_name, (self.name,))

    # PyTorch's names

    @property
    def is_floating_point(self) -> bool:
        """``is_float``."""
        return self.is_float

    @property
    def is_signed(self) -> bool:
        """True if the dtype has numbers below 0."""
        return self.kind not in ("bool", "uint")

    def to_real(self) -> DType:
        """Return the dtype of the parts of complex numbers; other dtypes return themselves."""
        return real_of(self)

    def to_complex(self) -> DType:
        """Return the dtype of complex numbers with parts of this dtype; complex dtypes return themselves."""
        return complex_of(self)


bool_ = DType("bool", "bool", np.bool_)
int8 = DType("int8", "int", np.int8)
int16 = DType("int16", "int", np.int16)
int32 = DType("int32", "int", np.int32)
int64 = DType("int64", "int", np.int64)
uint8 = DType("uint8", "uint", np.uint8)
uint16 = DType("uint16", "uint", np.uint16)
uint32 = DType("uint32", "uint", np.uint32)
uint64 = DType("uint64", "uint", np.uint64)
float16 = DType("float16", "float", np.float16)
bfloat16 = DType("bfloat16", "float", ml_dtypes.bfloat16)
float32 = DType("float32", "float", np.float32)
float64 = DType("float64", "float", np.float64)
complex64 = DType("complex64", "complex", np.complex64)
complex128 = DType("complex128", "complex", np.complex128)

REAL: Final = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,
)  # fmt: skip
"""The dtypes that machine code computes with. NumPy computes complex numbers (``ops.elementwise.complex_rules``)."""
COMPLEX: Final = (complex64, complex128)
ALL: Final = (*REAL, *COMPLEX)
FLOATS: Final = tuple(d for d in REAL if d.is_float)
INTEGERS: Final = tuple(d for d in REAL if d.is_integer)

_BY_NAME: Final = {d.name: d for d in ALL}
_BY_NUMPY: Final = {d.numpy: d for d in _BY_NAME.values()}
TYPES: Final = {
    f"torch.{kind}Tensor": name
    for kind, name in (
        ("Float", "float32"), ("Double", "float64"), ("Half", "float16"), ("BFloat16", "bfloat16"), ("Long", "int64"),
        ("Int", "int32"), ("Short", "int16"), ("Char", "int8"), ("Byte", "uint8"), ("Bool", "bool"),
        ("ComplexFloat", "complex64"), ("ComplexDouble", "complex128"),
    )
}  # fmt: skip
"""Dtypes by the names of PyTorch's types of tensors."""
_REAL: Final = {complex64: float32, complex128: float64}
_COMPLEX: Final = {float64: complex128}


def by_name(name: str) -> DType:
    """Return the dtype called ``name`` (``"float32"``); KeyError for an unknown one."""
    return _BY_NAME[name]


def names() -> tuple[str, ...]:
    """Return the names of all dtypes."""
    return tuple(_BY_NAME)


def from_numpy(dtype: Any) -> DType:
    """Return the dtype of a NumPy dtype; TypeError if Runnel does not support it (object, str)."""
    result = _BY_NUMPY.get(np.dtype(dtype).newbyteorder("="))
    if result is None:
        raise TypeError(
            f"[dtype] NumPy dtype {np.dtype(dtype)} has no counterpart; Runnel holds {', '.join(_BY_NAME)}."
        )
    return result


Dtype: TypeAlias = Any  # whatever as_dtype takes


def as_dtype(dtype: Dtype) -> DType:
    """Convert the name of a dtype, a NumPy dtype, ``complex``, ``float``, ``int``, ``bool``, or PyTorch's tensor type
    or its name ("torch.FloatTensor") to a DType."""
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, str):
        named = _BY_NAME.get(TYPES.get(dtype, dtype))
        if named is None:
            raise TypeError(f"[dtype] no dtype is called '{dtype}'; there are {', '.join(_BY_NAME)}.")
        return named
    if dtype is float:
        return float32
    if dtype is complex:
        return complex64
    kind = getattr(dtype, "kind", None)
    if isinstance(kind, DType):  # of tensors of one dtype
        return kind
    try:
        return from_numpy(np.dtype(dtype))
    except (TypeError, ValueError) as error:
        if str(error).startswith("["):
            raise
    got = f"{dtype!r}" if isinstance(dtype, (bool, int, float, complex)) else f"a {type(dtype).__name__}"
    raise TypeError(f"[dtype] a dtype must be one of {', '.join(_BY_NAME)}, or NumPy's; got {got}.")


def _promotion_table() -> dict[tuple[DType, DType], DType]:
    """Return the Array API's promotion lattice; float16 and bfloat16 meet in float32, and ints yield to any float."""
    table: dict[tuple[DType, DType], DType] = {}
    for a in ALL:
        for b in ALL:
            table[a, b] = _join(a, b)
    return table


def _join(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if a is bool_ or b is bool_:
        return b if a is bool_ else a
    if a.is_complex or b.is_complex:
        return complex128 if complex128 in (a, b) or float64 in (a, b) else complex64
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.is_float:
        if a.itemsize == b.itemsize:
            return float32  # float16 with bfloat16: neither holds the other
        return a if a.itemsize > b.itemsize else b
    if a.kind == b.kind:
        return a if a.itemsize > b.itemsize else b
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    wider = {1: int16, 2: int32, 4: int64}.get(unsigned.itemsize)
    return wider if wider is not None else float32  # uint64 with a signed type has no integer join


_PROMOTION: Final = _promotion_table()


def promote(a: DType, b: DType) -> DType:
    """Return the dtype that ``a`` and ``b`` promote to (Array API, "Type promotion rules"; mixed kinds as in
    PyTorch)."""
    return _PROMOTION[a, b]


def real_of(dtype: DType) -> DType:
    """Return the dtype of the real and imaginary parts of complex numbers; other dtypes are returned as they are."""
    return _REAL.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """Return the complex dtype with parts of ``dtype``: complex128 for float64, else complex64."""
    return dtype if dtype.is_complex else _COMPLEX.get(dtype, complex64)


def of_scalar(value: bool | int | float | complex, other: DType | None) -> DType:
    """Return the dtype of a Python scalar next to an array of dtype ``other``: the array's, unless the scalar's kind
    is higher."""
    if isinstance(value, bool):
        return other if other is not None else bool_
    if isinstance(value, int):
        return other if other is not None and other is not bool_ else int64
    if isinstance(value, complex):
        return complex64 if other is None else complex_of(other)
    return other if other is not None and other.is_inexact else float32
