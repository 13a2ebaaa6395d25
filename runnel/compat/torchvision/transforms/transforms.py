"""The file of torchvision that programs import transforms from: it has the names of its package."""

from runnel.core.namespaces import namespace

__all__, __getattr__, __dir__ = namespace(__name__, {}, forwards=("runnel.compat.torchvision.transforms",))
