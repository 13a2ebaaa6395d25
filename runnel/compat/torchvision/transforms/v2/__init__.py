"""``torchvision.transforms.v2``: the transforms of ``transforms`` for images, and transforms of batches and dtypes.

They change images only; boxes and masks beside an image raise an error.
"""

from runnel.compat.torchvision.transforms import PLACED as FIRST
from runnel.core.namespaces import namespace

PLACED = {name: place for name, place in FIRST.items() if name not in ("functional", "v2")}
PLACED |= {
    name: f"{__name__}.conversions:{name}"
    for name in ("CutMix", "Identity", "MixUp", "ToDtype", "ToImage", "ToPureTensor")
}
PLACED |= {"RGB": f"{__name__}.conversions:RGB", "Transform": f"{__name__}.conversions:Transform"}
PLACED |= {"functional": f"{__name__}.functional"}
__all__, __getattr__, __dir__ = namespace(__name__, PLACED, checked=False)
