"""Functions of images under the names of ``torchvision.transforms.v2.functional``."""

from runnel.compat.torchvision.transforms.functional import PLACED as FIRST
from runnel.core.namespaces import namespace

_IMAGES = "runnel.compat.torchvision.transforms.images"
_PLACES = "runnel.compat.torchvision.transforms.places"
_CONVERSIONS = "runnel.compat.torchvision.transforms.v2.conversions"
PLACED = dict(FIRST)
PLACED |= {f"{name}_image": place for name, place in FIRST.items() if name.islower()}
PLACED |= {
    "get_size": f"{_IMAGES}:get_size",
    "get_num_channels": f"{_IMAGES}:get_image_num_channels",
    "horizontal_flip": f"{_PLACES}:hflip",
    "vertical_flip": f"{_PLACES}:vflip",
    "permute_channels": "runnel.compat.torchvision.transforms.colors:permute_channels",
    "grayscale_to_rgb": f"{_CONVERSIONS}:grayscale_to_rgb",
    "to_dtype": f"{_CONVERSIONS}:to_dtype",
    "to_image": f"{_CONVERSIONS}:to_image",
}
__all__, __getattr__, __dir__ = namespace(__name__, PLACED, checked=False)
