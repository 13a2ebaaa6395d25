"""The layout of the structures through which machine code recalls calls (:mod:`runnel.backends.cpu.recall`).

state     what machine code knows of Python: objects, offsets of slots, the table, the slab that small results are cut
          from. Words, in the order of ``STATE``
table     MASK + 1 entries of HASH, the address of a key, the address of an action (0: run the function). HASH 0: none
key       COUNT and words: the function, the state of the switches, the number of arguments, the names of keywords, and
          for each argument a tag and what it says
action    OWNER (the Python object that holds the words), CONSTANTS and the tensors of that number; then steps, and an
          end. Tensors are named by registers: the tensors among the arguments, the constants, the results of steps
step      SIZE in words, KIND, and what follows in ``recall`` of the backend
end       0, KIND, the number of registers, and these; MAKE has the function that makes the result first
"""

from __future__ import annotations

from typing import Final

STATE: Final = (
    "UNUSUAL", "NONE", "TRUE", "FALSE", "ELLIPSIS", "TENSOR", "INT", "FLOAT", "TUPLE", "LIST", "SLICE", "STR", "DTYPE",
    "DEVICE", "VARIABLE", "PARAMETER", "NDARRAY", "RECORD", "VIEW", "EXCEPTION", "FLOAT32", "FLOAT64", "INT64", "INT32",
    "BOOL", "RESOLVED", "SERIALS", "RECORDING", "ALLOCATE", "ALLOCATE_SLAB", "WATCHED", "CONSTANT_SERIAL", "DETACHED",
    "STATE_VERSION", "TAKE",
    "TABLE", "MASK", "SLAB", "SLAB_ADDRESS", "SLAB_USED",
    # offsets of slots: of tensors
    "AT_AVAL", "AT_LAYOUT", "AT_STORAGE", "AT_SERIAL", "AT_REQUIRES", "AT_REBOUND", "AT_RECORDED", "AT_RECORD",
    "AT_LEAF", "AT_VIEW", "AT_VIEWS", "AT_ARRAY",
    # of avals, storages, Variables, the switches, Recalled, views, records
    "SIZE_OF", "DTYPE_OF", "ADDRESS_OF", "SETTLED_OF", "VIEWS_OF", "STATE_OF", "FUNCTION_OF", "LEARN_OF", "BASE_OF",
    "STEPS_OF", "IS_RECORDED_OF", "INPUTS_OF", "ATTRS_OF", "FREED_OF", "OP_OF", "RULE_OF", "TENSOR_OF", "SHARED_OF",
    "PIN_OF", "LOCK_OF", "WRITES_OF",
)  # fmt: skip
WORD: Final = {name: place for place, name in enumerate(STATE)}

SLAB_BYTES: Final = 4096
SMALL: Final = 512  # bytes: results up to this size are cut from a slab
CELL: Final = 64  # bytes, of which such a result has a whole number

ENTRY_WORDS: Final = 3
OWNER, CONSTANTS, FIRST = range(3)
SIZE, KIND = range(2)
VIEW_STEP, START_STEP, CALL_STEP, WRITE_STEP, READ_STEP, ASSIGN_STEP = range(6)
RETURN, TUPLE, LIST, MAKE, REBIND = range(5)

# words of a step that makes a view
V_SOURCE, V_SOURCE_AVAL, V_SOURCE_STRIDES, V_AVAL, V_OFFSET, V_STRIDES, V_OF, V_STEPS, V_MAY_COPY, V_OP, V_ATTRS = (
    range(2, 13)
)
# words of a step that starts a program
S_BLOCK, S_AT_ONCE, S_INPUTS, S_OUTPUTS, S_RESULTS, S_OP, S_ATTRS, S_LISTS = range(2, 10)
INPUT_WORDS: Final = 5  # register, aval, strides, itemsize, slot
OUTPUT_WORDS: Final = 3  # bytes, bytes in a slab, slot
RESULT_WORDS: Final = 4  # aval, strides, output, itemsize
# words of a step that calls a Python function
C_FUNCTION, C_SPREADS, C_OP, C_ATTRS, C_RESULTS, C_INPUTS, C_LISTS = range(2, 9)  # RESULTS 0: one, not in a tuple

R_VARIABLE: Final = 2  # of a step that reads a Variable
# words of the step that gives Variables new values, if they and a handle that the end will change allow that
A_HANDLE, A_CHANGED, A_VARIABLES, A_LISTS = range(2, 6)
VARIABLE_WORDS: Final = 3  # Variable, registers: what it was read as, its new value

# words of a step that copies a dense tensor or an array, and writes a number or a tensor into a window of the copy
W_SOURCE, W_IS_ARRAY, W_SOURCE_AVAL, W_SOURCE_STRIDES, W_NBYTES, W_ROUNDED, W_AVAL, W_STRIDES, W_ITEMSIZE = range(2, 11)
W_VALUE, W_VALUE_AVAL, W_VALUE_STRIDES, W_OFFSET, W_RUN, W_AXES = range(11, 17)
AXIS_WORDS: Final = 3  # count, bytes from one to the next in the copy, and in the value
AXES: Final = 4
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_DTYPE, ARRAY_FLAGS = 16, 24, 32, 56, 64  # bytes into NumPy's arrays
ARRAY_IS_DENSE: Final = 0x101  # C order, aligned

MOST_KEY: Final = 256  # words
MOST_ARGUMENTS: Final = 64  # tensors
MOST_REGISTERS: Final = 192
MOST_OUTPUTS: Final = 4
