"""Cases compared with PyTorch: optimizers and schedules by name, with arguments, and the gradients they are given.

``record.py`` runs these in PyTorch, and the tests in Runnel; this file imports neither.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

STEPS = 50
SEEN = (1, 2, 5, 20, 50)  # the steps whose values are kept

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"lr": 0.05}),
    "SGD momentum": ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}),
    "SGD dampening": ("SGD", {"lr": 0.05, "momentum": 0.8, "dampening": 0.3}),
    "SGD nesterov": ("SGD", {"lr": 0.02, "momentum": 0.9, "nesterov": True, "maximize": True}),
    "Adam": ("Adam", {"lr": 0.02}),
    "Adam amsgrad": ("Adam", {"lr": 0.02, "betas": (0.5, 0.6), "amsgrad": True, "weight_decay": 0.2}),
    "Adam decoupled": ("Adam", {"lr": 0.02, "weight_decay": 0.3, "decoupled_weight_decay": True, "eps": 1e-3}),
    "AdamW": ("AdamW", {"lr": 0.02}),
    "AdamW amsgrad": ("AdamW", {"lr": 0.02, "amsgrad": True, "weight_decay": 0.3, "maximize": True}),
    "Adamax": ("Adamax", {}),
    "Adamax decay": ("Adamax", {"lr": 0.05, "betas": (0.7, 0.8), "eps": 1e-4, "weight_decay": 0.1, "maximize": True}),
    "NAdam": ("NAdam", {}),
    "NAdam decay": ("NAdam", {"lr": 0.03, "betas": (0.8, 0.9), "momentum_decay": 0.05, "weight_decay": 0.1}),
    "NAdam decoupled": ("NAdam", {"lr": 0.03, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "RAdam": ("RAdam", {"lr": 0.02}),
    "RAdam decay": ("RAdam", {"lr": 0.02, "betas": (0.8, 0.9), "weight_decay": 0.1, "eps": 1e-3}),
    "RAdam decoupled": ("RAdam", {"lr": 0.02, "weight_decay": 0.2, "decoupled_weight_decay": True}),
    "RAdam never rectified": ("RAdam", {"lr": 0.02, "betas": (0.8, 0.5)}),
    "RMSprop": ("RMSprop", {"lr": 0.01}),
    "RMSprop momentum": ("RMSprop", {"lr": 0.01, "alpha": 0.9, "momentum": 0.9, "weight_decay": 0.1}),
    "RMSprop centered": ("RMSprop", {"lr": 0.01, "centered": True, "eps": 1e-2}),
    "Rprop": ("Rprop", {}),
    "Rprop steps": ("Rprop", {"lr": 0.05, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.1), "maximize": True}),
    "Adagrad": ("Adagrad", {"lr": 0.1}),
    "Adagrad decay": (
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.5, "weight_decay": 0.1},
    ),
    "Adadelta": ("Adadelta", {}),
    "Adadelta decay": ("Adadelta", {"lr": 0.5, "rho": 0.6, "eps": 1e-3, "weight_decay": 0.1}),
    "Adafactor": ("Adafactor", {}),
    "Adafactor decay": (
        "Adafactor",
        {"lr": 0.3, "beta2_decay": -0.5, "eps": (1e-3, 0.1), "d": 2.0, "weight_decay": 0.1},
    ),
    "ASGD": ("ASGD", {}),
    "ASGD averaged": ("ASGD", {"lr": 0.05, "lambd": 0.1, "alpha": 0.6, "t0": 10, "weight_decay": 0.1}),
    "SparseAdam": ("SparseAdam", {"lr": 0.02, "betas": (0.8, 0.95)}),
    "Muon": ("Muon", {"lr": 0.02}),
    "Muon matched": (
        "Muon",
        {"lr": 0.02, "momentum": 0.8, "nesterov": False, "adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0},
    ),
}
SEARCHES: dict[str, dict[str, Any]] = {
    "LBFGS": {"lr": 0.1, "max_iter": 3},
    "LBFGS short": {"lr": 0.3, "max_iter": 4, "history_size": 2, "max_eval": 3},
    "LBFGS strong Wolfe": {"line_search_fn": "strong_wolfe", "max_iter": 2},
    "LBFGS strong Wolfe, lr": {"line_search_fn": "strong_wolfe", "lr": 3.0, "max_iter": 1, "history_size": 3},
}
SEARCH_STEPS = 6

FUNCTIONS = {"halving": lambda epoch: 0.5 ** (epoch // 3), "waving": lambda epoch: 1 + 0.1 * np.cos(epoch)}

# A list means schedules inside another; a word that begins with "=" means a function.
SCHEDULES: dict[str, tuple[str, dict[str, Any]]] = {
    "LambdaLR": ("LambdaLR", {"lr_lambda": ["=halving", "=waving"]}),
    "MultiplicativeLR": ("MultiplicativeLR", {"lr_lambda": "=waving"}),
    "StepLR": ("StepLR", {"step_size": 7, "gamma": 0.5}),
    "StepLR default": ("StepLR", {"step_size": 20}),
    "MultiStepLR": ("MultiStepLR", {"milestones": [4, 9, 9, 30], "gamma": 0.7}),
    "ConstantLR": ("ConstantLR", {}),
    "ConstantLR long": ("ConstantLR", {"factor": 0.25, "total_iters": 20}),
    "LinearLR": ("LinearLR", {}),
    "LinearLR down": ("LinearLR", {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 30}),
    "ExponentialLR": ("ExponentialLR", {"gamma": 0.93}),
    "PolynomialLR": ("PolynomialLR", {}),
    "PolynomialLR square": ("PolynomialLR", {"total_iters": 40, "power": 2.0}),
    "CosineAnnealingLR": ("CosineAnnealingLR", {"T_max": 50}),
    "CosineAnnealingLR again": ("CosineAnnealingLR", {"T_max": 10, "eta_min": 0.01}),
    "CosineAnnealingWarmRestarts": ("CosineAnnealingWarmRestarts", {"T_0": 8}),
    "CosineAnnealingWarmRestarts longer": ("CosineAnnealingWarmRestarts", {"T_0": 5, "T_mult": 2, "eta_min": 0.02}),
    "CyclicLR": ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 6}),
    "CyclicLR triangular2": (
        "CyclicLR",
        {"base_lr": [0.01, 0.1], "max_lr": 0.3, "step_size_up": 4, "step_size_down": 9, "mode": "triangular2"},
    ),
    "CyclicLR exp_range": (
        "CyclicLR",
        {
            "base_lr": 0.01,
            "max_lr": 0.2,
            "step_size_up": 5,
            "mode": "exp_range",
            "gamma": 0.97,
            "cycle_momentum": False,
        },
    ),
    "CyclicLR scale_fn": ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 5, "scale_fn": "=waving"}),
    "OneCycleLR": ("OneCycleLR", {"max_lr": 0.4, "total_steps": 60}),
    "OneCycleLR three": (
        "OneCycleLR",
        {
            "max_lr": [0.4, 0.2],
            "epochs": 6,
            "steps_per_epoch": 10,
            "three_phase": True,
            "anneal_strategy": "linear",
            "pct_start": 0.4,
            "div_factor": 10.0,
            "final_div_factor": 100.0,
        },
    ),
    "ReduceLROnPlateau": ("ReduceLROnPlateau", {"patience": 3, "factor": 0.5}),
    "ReduceLROnPlateau max": (
        "ReduceLROnPlateau",
        {"mode": "max", "patience": 1, "threshold": 0.05, "threshold_mode": "abs", "cooldown": 4, "min_lr": 0.02},
    ),
    "SequentialLR": (
        "SequentialLR",
        {
            "schedulers": [
                ("LinearLR", {"start_factor": 0.1, "total_iters": 10}),
                ("CosineAnnealingLR", {"T_max": 20, "eta_min": 0.01}),
                ("ExponentialLR", {"gamma": 0.9}),
            ],
            "milestones": [10, 30],
        },
    ),
    "ChainedScheduler": (
        "ChainedScheduler",
        {
            "schedulers": [
                ("ConstantLR", {"factor": 0.5, "total_iters": 8}),
                ("ExponentialLR", {"gamma": 0.95}),
                ("CosineAnnealingLR", {"T_max": 15}),
                ("MultiStepLR", {"milestones": [3, 12], "gamma": 0.5}),
            ],
        },
    ),
    "SWALR": ("SWALR", {"swa_lr": 0.05}),
    "SWALR linear": ("SWALR", {"swa_lr": [0.05, 0.3], "anneal_epochs": 20, "anneal_strategy": "linear"}),
}


def shapes(kind: str) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the Parameters: Muon has matrices."""
    return ((3, 2), (2, 4)) if kind == "Muon" else ((2, 3), (4,))


def start(shape: tuple[int, ...]) -> np.ndarray:
    """The first value of a Parameter."""
    return np.cos(np.arange(np.prod(shape)) * 1.7 + len(shape)).reshape(shape)


def gradient(p: np.ndarray, t: int) -> np.ndarray:
    """Of a tilted, trembling bowl: neither constant nor zero anywhere on the way."""
    slopes = 1.1 + 0.9 * np.sin(np.arange(p.size)).reshape(p.shape)
    return slopes * p + 0.3 * np.cos(t + slopes)


def metric(epoch: int) -> float:
    """Return the values in which a plateau is searched."""
    return float(np.round(2.0 ** (-epoch / 12) + 0.1 * np.cos(epoch), 3))


def schedule(modules: tuple[ModuleType, ModuleType], optimizer: Any, kind: str, options: dict[str, Any]) -> Any:
    """A schedule of a library, whose modules ``lr_scheduler`` and ``swa_utils`` are given."""
    arguments = dict(options)
    for name, value in options.items():
        if name == "schedulers":
            arguments[name] = [schedule(modules, optimizer, *one) for one in value]
        elif isinstance(value, str) and value.startswith("="):
            arguments[name] = FUNCTIONS[value[1:]]
        elif isinstance(value, list) and isinstance(value[0], str):
            arguments[name] = [FUNCTIONS[word[1:]] for word in value]
    result = getattr(modules[kind == "SWALR"], kind)
    return result(**arguments) if kind == "ChainedScheduler" else result(optimizer, **arguments)
