"""Runnel under torchvision's names: ``from runnel.compat import torchvision``."""

from runnel.core.namespaces import namespace

__version__ = "0.28.0+runnel"  # of the torchvision for the PyTorch whose names runnel.compat.torch has

PLACED = {part: f"{__name__}.{part}" for part in ("datasets", "io", "models", "ops", "transforms", "utils")}
PLACED |= {
    name: f"{__name__}.io.image:{name}"
    for name in ("disable_beta_transforms_warning", "get_image_backend", "set_image_backend")
}
__all__, __getattr__, __dir__ = namespace(__name__, PLACED, checked=False)
