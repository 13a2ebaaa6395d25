"""Transforms of images, Pillow's and tensors (..., C, H, W), under torchvision's names."""

from runnel.core.namespaces import namespace

_PLACES = """
automatic: AugMix AutoAugment AutoAugmentPolicy RandAugment TrivialAugmentWide
fixed: CenterCrop Compose ConvertImageDtype FiveCrop Grayscale Lambda LinearTransformation Normalize PILToTensor Pad
    RandomApply RandomChoice RandomOrder RandomTransforms Resize TenCrop ToPILImage ToTensor
images: InterpolationMode
randomized: ColorJitter ElasticTransform GaussianBlur RandomAdjustSharpness RandomAffine RandomAutocontrast RandomCrop
    RandomEqualize RandomErasing RandomGrayscale RandomHorizontalFlip RandomInvert RandomPerspective RandomPosterize
    RandomResizedCrop RandomRotation RandomSolarize RandomVerticalFlip
"""
PLACED = {
    name: f"{__name__}.{row.partition(':')[0]}:{name}"
    for row in _PLACES.strip().replace("\n    ", " ").splitlines()
    for name in row.partition(":")[2].split()
} | {part: f"{__name__}.{part}" for part in ("functional", "v2")}
__all__, __getattr__, __dir__ = namespace(__name__, PLACED, checked=False)
