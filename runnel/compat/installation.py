"""``import torch`` and ``import torchvision`` for programs that are not edited: ``runnel run`` and :func:`install`.

The folder ``installed`` has both packages and their metadata. Python finds them like any others while the folder is on
the path, so ``importlib.util.find_spec`` and ``importlib.metadata.version`` find them as well.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
from pathlib import Path
from typing import Final

from runnel.core.errors import RunnelError

FOLDER: Final = str(Path(__file__).parent / "installed")
PACKAGES: Final = ("torch", "torchvision")


def install() -> None:
    """Let ``import torch`` and ``import torchvision`` in this process find Runnel's modules of these names.

    Call it before the libraries that import them. RunnelError if PyTorch is imported already.

    Example:
        >>> from runnel.compat.torch import install
        >>> install()
        >>> import torch
        >>> torch.__version__
        '2.13.0+runnel'
    """
    for name in PACKAGES:
        loaded = sys.modules.get(name)
        if loaded is not None and loaded is not sys.modules.get(f"runnel.compat.{name}"):
            raise RunnelError(f"[install] {name} is imported already; call install() before you import it.")
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
        importlib.invalidate_caches()


def become(name: str) -> None:
    """Replace the module ``name`` and its submodules by the modules of ``runnel.compat``."""
    own = f"runnel.compat.{name}"
    for part in pkgutil.walk_packages(sys.modules[own].__path__, f"{own}."):
        importlib.import_module(part.name)
    for path, module in list(sys.modules.items()):
        if path == own or path.startswith(f"{own}."):
            sys.modules[path.removeprefix("runnel.compat.")] = module
    with contextlib.suppress(ImportError):  # compile einops with the program if it is installed
        importlib.import_module("runnel.compat.einops")
