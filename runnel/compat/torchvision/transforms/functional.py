"""Functions of images, Pillow's and tensors (..., C, H, W): ``torchvision.transforms.functional``."""

from runnel.core.namespaces import namespace

_PLACES = """
images: InterpolationMode convert_image_dtype get_dimensions get_image_num_channels get_image_size pil_to_tensor
    to_pil_image to_tensor
places: center_crop crop erase five_crop hflip normalize pad resize resized_crop ten_crop vflip
colors: adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation adjust_sharpness autocontrast
    equalize gaussian_blur invert posterize rgb_to_grayscale solarize to_grayscale
warping: affine elastic_transform perspective rotate
"""
PLACED = {
    name: f"runnel.compat.torchvision.transforms.{row.partition(':')[0]}:{name}"
    for row in _PLACES.strip().replace("\n    ", " ").splitlines()
    for name in row.partition(":")[2].split()
}
__all__, __getattr__, __dir__ = namespace(__name__, PLACED, checked=False)
