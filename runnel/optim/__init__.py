"""Optimizers and learning-rate schedules."""

from runnel.core.namespaces import namespace
from runnel.optim import lr_scheduler as lr_scheduler, swa_utils as swa_utils

NAMES = {
    "ASGD": "runnel.optim.sgd:ASGD",
    "LAMB": "runnel.optim.adam:LAMB",
    "LBFGS": "runnel.optim.lbfgs:LBFGS",
    "SGD": "runnel.optim.sgd:SGD",
    "Adadelta": "runnel.optim.adagrad:Adadelta",
    "Adafactor": "runnel.optim.matrices:Adafactor",
    "Adagrad": "runnel.optim.adagrad:Adagrad",
    "Adam": "runnel.optim.adam:Adam",
    "AdamW": "runnel.optim.adam:AdamW",
    "Adamax": "runnel.optim.adam:Adamax",
    "CosineAnnealingLR": "runnel.optim.lr_scheduler.decay:CosineAnnealingLR",
    "LRScheduler": "runnel.optim.lr_scheduler.scheduler:LRScheduler",
    "LinearLR": "runnel.optim.lr_scheduler.decay:LinearLR",
    "Lion": "runnel.optim.signs:Lion",
    "Muon": "runnel.optim.matrices:Muon",
    "NAdam": "runnel.optim.adam:NAdam",
    "Optimizer": "runnel.optim.optimizer:Optimizer",
    "RAdam": "runnel.optim.adam:RAdam",
    "RMSprop": "runnel.optim.adagrad:RMSprop",
    "Rprop": "runnel.optim.signs:Rprop",
    "Shampoo": "runnel.optim.matrices:Shampoo",
    "SparseAdam": "runnel.optim.adam:SparseAdam",
    "StepLR": "runnel.optim.lr_scheduler.decay:StepLR",
    "lr_scheduler": "runnel.optim.lr_scheduler",
    "swa_utils": "runnel.optim.swa_utils",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
