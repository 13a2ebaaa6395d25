"""``torchvision.transforms.v2``: the transforms of ``transforms`` for images, and transforms of batches and dtypes.

They change images only; boxes and masks beside an image raise an error.
"""

from runnel.compat.torchvision.transforms import NAMES as FIRST
from runnel.core.namespaces import namespace

NAMES = {name: place for name, place in FIRST.items() if name not in ("functional", "v2")}
NAMES |= {
    name: f"{__name__}.conversions:{name}"
    for name in ("CutMix", "Identity", "MixUp", "ToDtype", "ToImage", "ToPureTensor")
}
NAMES |= {"RGB": f"{__name__}.conversions:RGB", "Transform": f"{__name__}.conversions:Transform"}
NAMES |= {"functional": f"{__name__}.functional"}
__all__, __getattr__, __dir__ = namespace(__name__, NAMES, checked=False)
