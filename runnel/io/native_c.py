"""The C code of an exported program: a header, functions that load the weights and call the program, and a main."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from runnel.core import dtypes
from runnel.core.avals import ShapedArray
from runnel.core.dtypes import DType

_C: Final = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while"""
_CPP: Final = """
alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t char8_t class co_await co_return co_yield
compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export false friend
mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast
requires static_assert static_cast template this thread_local throw true try typeid typename using virtual wchar_t
xor xor_eq"""
_OWN: Final = """
FILE NULL argc argv calloc exit fclose file fgetc fopen fprintf fread free fseek ftell fwrite init_places main malloc
memcpy parts places prepare read_weights size_t stderr stdin stdout transfer status"""
_RESERVED: Final = frozenset(f"{_C} {_CPP} {_OWN}".split())
_TYPES: Final[Mapping[DType, str]] = {
    dtypes.bool_: "uint8_t", dtypes.float16: "uint16_t", dtypes.bfloat16: "uint16_t",
    dtypes.float32: "float", dtypes.float64: "double", dtypes.complex64: "float", dtypes.complex128: "double",
}  # fmt: skip


class Array(NamedTuple):
    """An argument of the C function."""

    name: str
    aval: ShapedArray

    @property
    def type(self) -> str:
        """The C type of the elements, or of the parts of complex elements."""
        return _TYPES.get(self.aval.dtype) or f"{self.aval.dtype.name}_t"

    def parameter(self, constant: bool) -> str:
        return f"{'const ' if constant else ''}{self.type} *{self.name}"

    def __str__(self) -> str:
        return f"{self.name}: {self.aval}"


class Part(NamedTuple):
    """A range of bytes in the file of weights, and its place in memory."""

    start: int
    nbytes: int
    place: int


class Layout(NamedTuple):
    """The layout of a model's memory.

    Attributes:
        nbytes: the size of the memory.
        scratch: the place of the scratch memory.
        parts: the parts of the file of weights.
        places: the place of each slot of the program; -1 for a slot that each call sets.
        init_places: the place of each slot of the program that prepares constants, if there is one.
    """

    nbytes: int
    scratch: int
    parts: Sequence[Part]
    places: Sequence[int]
    init_places: Sequence[int] | None


class Weights(NamedTuple):
    """A file of weights: the length and the hash of its header, and the length of its data."""

    header: int
    hash: int
    data: int


def is_identifier(name: str) -> bool:
    """Return whether C and C++ programs can define ``name``."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and name not in _RESERVED


def identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return different names for C that resemble ``names``."""
    used = {*taken, *_RESERVED}
    chosen: list[str] = []
    for name in names:
        base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "x"
        base = f"x{base}" if base[0].isdigit() else base
        own, number = base, 0
        while own in used:
            number += 1
            own = f"{base}_{number}"
        used.add(own)
        chosen.append(own)
    return chosen


def fnv(content: bytes) -> int:
    """Return the FNV-1a hash of 64 bits (G. Fowler, L. Noll, K.-P. Vo; RFC 9923), as the C code computes it."""
    value = 0xCBF29CE484222325
    for byte in content:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def header(name: str, function: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> str:
    """Return ``name.h``."""
    listed = "\n".join(f" *   {x}" for x in inputs) or " *   none"
    results = "\n".join(f" *   {x}" for x in outputs)
    return f"""/* The function '{function}' as a program without Python, exported by Runnel.
 *
 * Arrays are dense, the last axis fastest. float16 and bfloat16 are their bits, complex numbers pairs of parts. Inputs:
{listed}
 * outputs:
{results}
 */
#ifndef RUNNEL_{name.upper()}_H
#define RUNNEL_{name.upper()}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

typedef struct {name} {name};

/* Load the weights and compute constants from them. *model is NULL unless the result is 0. */
int {name}_init({name} **model, const char *weights);

/* Make one call. The model keeps the state of the function between calls, and makes one call at a time.
 * Return 0, or the status of an error, after which the model is unchanged. */
int {name}_predict({_parameters(name, inputs, outputs)});

/* Return the message of a status. */
const char *{name}_error(int status);

void {name}_free({name} *model);

#ifdef __cplusplus
}}
#endif
#endif
"""


def source(
    name: str,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    slots: tuple[Sequence[int], Sequence[int]],
    same: Mapping[int, int],
    layout: Layout,
    weights: Weights,
    errors: Mapping[int, str],
) -> str:
    """Return ``name.c``.

    Args:
        name: the name of the program.
        inputs: the inputs of a call.
        outputs: the outputs of a call.
        slots: the slots of the inputs and of the outputs.
        same: for each output that is equal to an earlier one, the number of that one.
        layout: the layout of the memory.
        weights: the file of weights.
        errors: the messages by the status of the program.
    """
    parts = "\n".join(f"    {{{p.start}, {p.nbytes}, {p.place}}}," for p in layout.parts)
    lines = [
        f"    model->bases[{slot}] = (void *){x.name};"
        for x, slot in [*zip(inputs, slots[0], strict=True), *zip(outputs, slots[1], strict=True)]
        if x not in [outputs[i] for i in same]
    ]
    lines.append(f"    status = (int){name}_run(model->bases, model->memory + {layout.scratch});")
    lines += [
        f"    if (!status) memcpy({outputs[i].name}, {outputs[first].name}, {outputs[i].aval.nbytes});"
        for i, first in same.items()
    ]
    call = "\n".join(lines)
    cases = "".join(f"    case {code}: return {_text(said)};\n" for code, said in errors.items())
    declared = "" if layout.init_places is None else f"extern int64_t {name}_run_init(void **bases, void *scratch);\n"
    return f"""/* The weights and the memory of '{name}'; the program itself is in {name}.o. Exported by Runnel. */
#include "{name}.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int64_t {name}_run(void **bases, void *scratch);
{declared}
enum {{ CANNOT_READ = -1, OTHER_WEIGHTS = -2, NO_MEMORY = -3 }};

struct {name} {{
    char *whole, *memory;
    void *bases[{len(layout.places)}];
}};

static const struct {{ int64_t start, nbytes, place; }} parts[] = {{
{parts}
    {{0, 0, 0}},
}};
static const int64_t places[] = {_table(layout.places)};

static int read_weights({name} *model, FILE *file) {{
    unsigned char length[8], *header;
    uint64_t stated = 0, hash = UINT64_C({weights.hash});
    long behind;
    if (fread(length, 1, 8, file) != 8) return OTHER_WEIGHTS;
    for (int i = 7; i >= 0; i--) stated = stated << 8 | length[i];
    if (stated != {weights.header}) return OTHER_WEIGHTS;
    header = malloc({weights.header});
    if (!header) return NO_MEMORY;
    if (fread(header, 1, {weights.header}, file) == {weights.header}) {{
        uint64_t value = UINT64_C({fnv(b"")}); /* FNV-1a */
        for (size_t i = 0; i < {weights.header}; i++) value = (value ^ header[i]) * UINT64_C(0x100000001b3);
        stated = value;
    }}
    free(header);
    if (stated != hash) return OTHER_WEIGHTS;
    behind = 8 + {weights.header};
    if (fseek(file, 0, SEEK_END) || ftell(file) != behind + {weights.data}) return OTHER_WEIGHTS;
    for (size_t i = 0; i + 1 < sizeof parts / sizeof *parts; i++) {{
        size_t nbytes = (size_t)parts[i].nbytes;
        if (fseek(file, behind + (long)parts[i].start, SEEK_SET)) return CANNOT_READ;
        if (fread(model->memory + parts[i].place, 1, nbytes, file) != nbytes) return CANNOT_READ;
    }}
    return 0;
}}
{_prepare(name, layout)}
int {name}_init({name} **result, const char *weights) {{
    {name} *model = calloc(1, sizeof *model);
    FILE *file = NULL;
    int status = NO_MEMORY;
    *result = NULL;
    if (!model) return status;
    model->whole = calloc(1, {layout.nbytes + 128});
    if (model->whole) {{
        model->memory = model->whole + (128 - (uintptr_t)model->whole % 128) % 128;
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            if (places[i] >= 0) model->bases[i] = model->memory + places[i];
        file = fopen(weights, "rb");
        status = file ? read_weights(model, file) : CANNOT_READ;
    }}
    if (file) fclose(file);
    if (!status) status = prepare(model);
    if (status) {name}_free(model);
    else *result = model;
    return status;
}}

int {name}_predict({_parameters(name, inputs, outputs)}) {{
    int status;
{call}
    return status;
}}

const char *{name}_error(int status) {{
    switch (status) {{
    case 0: return "no error";
    case CANNOT_READ: return "the file of weights cannot be read";
    case OTHER_WEIGHTS: return "the file of weights belongs to another program";
    case NO_MEMORY: return "there is not enough memory";
{cases}    default: return "an unknown error";
    }}
}}

void {name}_free({name} *model) {{
    if (model) free(model->whole);
    free(model);
}}
"""


def _prepare(name: str, layout: Layout) -> str:
    """Return the C function that computes constants from the weights."""
    if layout.init_places is None:
        return f"""
static int prepare({name} *model) {{
    (void)model;
    return 0;
}}
"""
    return f"""
static const int64_t init_places[] = {_table(layout.init_places)};

static int prepare({name} *model) {{
    void *bases[sizeof init_places / sizeof *init_places];
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) bases[i] = model->memory + init_places[i];
    return (int){name}_run_init(bases, model->memory + {layout.scratch});
}}
"""


def main(name: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> str:
    """Return ``main.c``, which makes one call with arrays in files."""
    arrays = [*inputs, *outputs]
    count = len(arrays)
    declared = "\n".join(f"    {x.type} *{x.name} = calloc(1, {x.aval.nbytes} + 1);" for x in arrays)
    usage = " ".join(["WEIGHTS", *[x.name.upper() for x in arrays]])
    transfers = "\n".join(
        f'    if (!{x.name} || transfer(argv[{i}], "{mode}", {x.name}, {x.aval.nbytes})) return 1;'
        for i, (x, mode) in enumerate([*[(x, "rb") for x in inputs], *[(x, "wb") for x in outputs]], 2)
    )
    lines = transfers.splitlines()
    before, after = "\n".join(lines[: len(inputs)]), "\n".join(lines[len(inputs) :])
    passed = ", ".join(["model", *[x.name for x in arrays]])
    return f"""/* A call of '{name}': {name} {usage}. The arrays are the bytes of files. Exported by Runnel. */
#include "{name}.h"

#include <stdio.h>
#include <stdlib.h>

static int transfer(const char *path, const char *mode, void *array, size_t nbytes) {{
    FILE *file = fopen(path, mode);
    size_t count = !file ? 0 : *mode == 'r' ? fread(array, 1, nbytes, file) : fwrite(array, 1, nbytes, file);
    int is_wrong = !file || count != nbytes || (*mode == 'r' && fgetc(file) != EOF);
    if (file && fclose(file)) is_wrong = 1;
    if (is_wrong) fprintf(stderr, "%s: %zu bytes could not be %s\\n", path, nbytes, *mode == 'r' ? "read" : "written");
    return is_wrong;
}}

int main(int argc, char **argv) {{
    {name} *model;
    int status;
{declared}
    if (argc != {count + 2}) {{
        fprintf(stderr, "usage: %s {usage}\\n", argv[0]);
        return 2;
    }}
{before}
    status = {name}_init(&model, argv[1]);
    if (!status) status = {name}_predict({passed});
    if (status) {{
        fprintf(stderr, "{name}: %s\\n", {name}_error(status));
        return 1;
    }}
{after}
    {name}_free(model);
    return 0;
}}
"""


def _parameters(name: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> str:
    return ", ".join([f"{name} *model", *[x.parameter(True) for x in inputs], *[x.parameter(False) for x in outputs]])


def _table(numbers: Sequence[int]) -> str:
    return f"{{{', '.join(map(str, numbers))}}}"


def _text(said: str) -> str:
    """Return a string literal."""
    plain = [chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in said.encode()]
    return f'"{"".join(plain)}"'
