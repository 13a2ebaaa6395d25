"""Learning-rate schedules, with PyTorch's names, arguments and saved states."""

from runnel.core.namespaces import namespace

NAMES = {
    "ChainedScheduler": "runnel.optim.lr_scheduler.combined:ChainedScheduler",
    "ConstantLR": "runnel.optim.lr_scheduler.decay:ConstantLR",
    "CosineAnnealingLR": "runnel.optim.lr_scheduler.decay:CosineAnnealingLR",
    "CosineAnnealingWarmRestarts": "runnel.optim.lr_scheduler.decay:CosineAnnealingWarmRestarts",
    "CyclicLR": "runnel.optim.lr_scheduler.cyclic:CyclicLR",
    "ExponentialLR": "runnel.optim.lr_scheduler.decay:ExponentialLR",
    "LRScheduler": "runnel.optim.lr_scheduler.scheduler:LRScheduler",
    "LambdaLR": "runnel.optim.lr_scheduler.decay:LambdaLR",
    "LinearLR": "runnel.optim.lr_scheduler.decay:LinearLR",
    "MultiStepLR": "runnel.optim.lr_scheduler.decay:MultiStepLR",
    "MultiplicativeLR": "runnel.optim.lr_scheduler.decay:MultiplicativeLR",
    "OneCycleLR": "runnel.optim.lr_scheduler.cyclic:OneCycleLR",
    "PolynomialLR": "runnel.optim.lr_scheduler.decay:PolynomialLR",
    "ReduceLROnPlateau": "runnel.optim.lr_scheduler.combined:ReduceLROnPlateau",
    "SequentialLR": "runnel.optim.lr_scheduler.combined:SequentialLR",
    "StepLR": "runnel.optim.lr_scheduler.decay:StepLR",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
