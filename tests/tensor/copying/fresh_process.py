"""Unpickles examples and writes down what they hold and compute.

python -m tests.tensor.copying.fresh_process IN OUT
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from tests.tensor.copying.described import described
from tests.tensor.copying.examples import EXAMPLES, called

if __name__ == "__main__":
    by_name = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in EXAMPLES}
    found = []
    for name, data in pickle.loads(Path(sys.argv[1]).read_bytes()):
        instance = pickle.loads(data)
        found.append((described(instance), described(called(by_name[name], instance))))
    Path(sys.argv[2]).write_bytes(pickle.dumps(found))
