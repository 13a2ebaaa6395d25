"""Data sets of torchvision that are not read here: you can import them, and a call raises UnsupportedError."""

from __future__ import annotations

from typing import Any, Final

from runnel.core.errors import UnsupportedError

REFUSED: Final = [
    "Caltech101",
    "Caltech256",
    "CelebA",
    "Cityscapes",
    "CLEVRClassification",
    "CocoCaptions",
    "CocoDetection",
    "Country211",
    "DTD",
    "EuroSAT",
    "FER2013",
    "FGVCAircraft",
    "Flickr30k",
    "Flickr8k",
    "Flowers102",
    "Food101",
    "GTSRB",
    "HMDB51",
    "Imagenette",
    "INaturalist",
    "ImageNet",
    "Kinetics",
    "Kitti",
    "LFWPairs",
    "LFWPeople",
    "LSUN",
    "Omniglot",
    "OxfordIIITPet",
    "PCAM",
    "PhotoTour",
    "Places365",
    "RenderedSST2",
    "SBDataset",
    "SBU",
    "SEMEION",
    "SUN397",
    "StanfordCars",
    "UCF101",
    "USPS",
    "VOCDetection",
    "VOCSegmentation",
    "WIDERFace",
]


def __getattr__(name: str) -> Any:
    """Return the class for the name of a data set."""
    if name not in REFUSED:
        raise AttributeError(name)

    def refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(
            f"[torchvision.datasets.{name}] is not supported: read its files with ImageFolder, DatasetFolder or a "
            "custom Dataset."
        )

    kind = globals()[name] = type(name, (), {"__new__": refuse, "__module__": __name__, "__doc__": "Is refused."})
    return kind
