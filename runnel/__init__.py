"""Runnel: a deep-learning framework that is Python down to the machine code."""

from runnel.core.dtypes import (
    bfloat16 as bfloat16,
)
from runnel.core.dtypes import (
    bool_ as bool_,
)
from runnel.core.dtypes import (
    float16 as float16,
)
from runnel.core.dtypes import (
    float32 as float32,
)
from runnel.core.dtypes import (
    float64 as float64,
)
from runnel.core.dtypes import (
    int8 as int8,
)
from runnel.core.dtypes import (
    int16 as int16,
)
from runnel.core.dtypes import (
    int32 as int32,
)
from runnel.core.dtypes import (
    int64 as int64,
)
from runnel.core.dtypes import (
    uint8 as uint8,
)
from runnel.core.dtypes import (
    uint16 as uint16,
)
from runnel.core.dtypes import (
    uint32 as uint32,
)
from runnel.core.dtypes import (
    uint64 as uint64,
)
from runnel.tensor.creation import arange, asarray, empty, eye, from_dlpack, full, linspace, ones, tensor, zeros
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable
