"""Transforms of images, under torchvision's names."""

from runnel.core.namespaces import namespace

NAMES = {
    "CenterCrop": "runnel.data.transforms.geometry:CenterCrop",
    "ColorJitter": "runnel.data.transforms.values:ColorJitter",
    "Compose": "runnel.data.transforms.base:Compose",
    "CutMix": "runnel.data.transforms.mixing:CutMix",
    "Grayscale": "runnel.data.transforms.values:Grayscale",
    "MixUp": "runnel.data.transforms.mixing:MixUp",
    "Normalize": "runnel.data.transforms.values:Normalize",
    "Pad": "runnel.data.transforms.geometry:Pad",
    "RandomCrop": "runnel.data.transforms.geometry:RandomCrop",
    "RandomErasing": "runnel.data.transforms.geometry:RandomErasing",
    "RandomHorizontalFlip": "runnel.data.transforms.geometry:RandomHorizontalFlip",
    "RandomResizedCrop": "runnel.data.transforms.geometry:RandomResizedCrop",
    "RandomVerticalFlip": "runnel.data.transforms.geometry:RandomVerticalFlip",
    "Resize": "runnel.data.transforms.geometry:Resize",
    "ToTensor": "runnel.data.transforms.values:ToTensor",
    "Transform": "runnel.data.transforms.base:Transform",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
