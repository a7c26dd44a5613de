"""What the vectors of schedulers try: options, steps, and what the groups have before."""

from collections.abc import Callable
from typing import Any

Case = dict[str, Any]

STEPS = 24
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "half": lambda n: 0.5**n,
    "third": lambda n: 1 / (n + 3),
    "cube": lambda n: n * n * n / 8,
}
START = [{"lr": 0.1}, {"lr": 0.3}]
RESUMED = [{"lr": 0.05, "initial_lr": 0.1}, {"lr": 0.2, "initial_lr": 0.3}]
ONE_CYCLE = {"initial_lr": 0.01, "max_lr": 0.25, "min_lr": 1e-05, "momentum": 0.9}
BOUNDS = {"max_momentum": 0.95, "base_momentum": 0.85}
RISEN = [{"lr": 0.1, **ONE_CYCLE, **BOUNDS}, {"lr": 0.2, **ONE_CYCLE, **BOUNDS, "max_lr": 0.5}]
JUMPS = [None, None, 7, None, 2, None, None, 0, None, 15, None, 40, None]
FRACTIONS = [0.5, 1.25, 3.9, 4.0, 4.7, None, 11.3, 12, None, 28.5, 60.0, None, 0.1, None]
METRICS = [5.0, 4.0, 4.0, 3.9999, 4.5, 4.5, 4.0, 4.0, 3.0, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 2.0]
HALF, THIRD, CUBE = ({"function": name} for name in FUNCTIONS)
WARM_UP = {"name": "LinearLR", "start_factor": 0.1, "total_iters": 4}
CONSTANT = {"name": "ConstantLR", "factor": 0.3, "total_iters": 3}
EXPONENTIAL = {"name": "ExponentialLR", "gamma": 0.9}
COSINE = {"name": "CosineAnnealingLR", "T_max": 7}
RESTARTS = {"name": "CosineAnnealingWarmRestarts", "T_0": 3, "T_mult": 2}
MULTIPLICATIVE = {"name": "MultiplicativeLR", "lr_lambda": THIRD}
LAMBDA = {"name": "LambdaLR", "lr_lambda": HALF}

CASES: dict[str, list[Case]] = {
    "LambdaLR": [
        {"lr_lambda": HALF},
        {"lr_lambda": [HALF, THIRD]},
        {"lr_lambda": THIRD, "last_epoch": 4},
        {"lr_lambda": [HALF]},
    ],
    "MultiplicativeLR": [
        {"lr_lambda": THIRD},
        {"lr_lambda": [HALF, THIRD]},
        {"lr_lambda": THIRD, "last_epoch": 4},
        {"lr_lambda": [HALF, THIRD, CUBE]},
    ],
    "StepLR": [{"step_size": 3}, {"step_size": 5, "gamma": 0.7}, {"step_size": 3, "last_epoch": 4}],
    "MultiStepLR": [
        {"milestones": [3, 7, 7, 12]},
        {"milestones": [9, 2, 9, 9], "gamma": 0.7},
        {"milestones": []},
        {"milestones": [5, 6], "last_epoch": 4},
    ],
    "ConstantLR": [
        {},
        {"factor": 0.3, "total_iters": 7},
        {"total_iters": 0},
        {"last_epoch": 3},
        {"factor": 1.5},
        {"factor": -0.5},
    ],
    "LinearLR": [
        {},
        {"start_factor": 0.1, "end_factor": 0.7, "total_iters": 9},
        {"start_factor": 0.9, "end_factor": 0.0, "total_iters": 6},
        {"last_epoch": 3},
        {"start_factor": 1.5},
        {"start_factor": -0.5},
        {"end_factor": 1.5},
    ],
    "ExponentialLR": [{"gamma": 0.9}, {"gamma": 1.1}, {"gamma": 0.9, "last_epoch": 3}],
    "PolynomialLR": [
        {},
        {"total_iters": 11, "power": 2.0},
        {"total_iters": 8, "power": 0.9},
        {"last_epoch": 2},
    ],
    "CosineAnnealingLR": [
        {"T_max": 7},
        {"T_max": 10, "eta_min": 0.02},
        {"T_max": 1},
        {"T_max": 7, "last_epoch": 4},
    ],
    "CosineAnnealingWarmRestarts": [
        {"T_0": 4},
        {"T_0": 3, "T_mult": 2},
        {"T_0": 3, "T_mult": 3, "eta_min": 0.01},
        {"T_0": 4, "last_epoch": 14},
        {"T_0": 0},
        {"T_0": 4, "T_mult": 0},
    ],
    "OneCycleLR": [
        {"max_lr": 0.5, "total_steps": 30},
        {"max_lr": [0.5, 0.25], "epochs": 4, "steps_per_epoch": 6, "pct_start": 0.4},
        {"max_lr": 0.5, "total_steps": 20, "three_phase": True, "div_factor": 10.0},
        {"max_lr": 0.5, "total_steps": 24, "anneal_strategy": "linear", "final_div_factor": 100.0},
        {
            "max_lr": 0.5,
            "total_steps": 24,
            "base_momentum": [0.7, 0.8],
            "max_momentum": [0.9, 0.99],
        },
        {"max_lr": 0.5, "total_steps": 30, "last_epoch": 4},
        {"max_lr": 0.5},
        {"max_lr": 0.5, "total_steps": 0},
        {"max_lr": 0.5, "epochs": 0, "steps_per_epoch": 5},
        {"max_lr": 0.5, "epochs": 5, "steps_per_epoch": -1},
        {"max_lr": 0.5, "total_steps": 10, "pct_start": 1.5},
        {"max_lr": 0.5, "total_steps": 10, "anneal_strategy": "poly"},
        {"max_lr": [0.5], "total_steps": 10},
    ],
    "CyclicLR": [
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4},
        {"base_lr": [0.01, 0.02], "max_lr": [0.1, 0.3], "step_size_up": 3, "step_size_down": 5},
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "mode": "triangular2"},
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "mode": "exp_range", "gamma": 0.97},
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "scale_fn": THIRD},
        {
            "base_lr": 0.01,
            "max_lr": 0.1,
            "step_size_up": 4,
            "scale_fn": HALF,
            "scale_mode": "iterations",
            "base_momentum": [0.7, 0.75],
            "max_momentum": 0.95,
        },
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "cycle_momentum": False},
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "last_epoch": 3},
        {"base_lr": 0.01, "max_lr": 0.1, "mode": "square"},
        {"base_lr": [0.01], "max_lr": 0.1},
        {"base_lr": 0.01, "max_lr": [0.1, 0.2, 0.3]},
    ],
    "ReduceLROnPlateau": [
        {"patience": 1},
        {"patience": 1, "cooldown": 2, "factor": 0.5},
        {"patience": 0, "min_lr": [0.02, 0.05], "factor": 0.3},
        {"patience": 1, "threshold": 0.5, "threshold_mode": "abs", "min_lr": 0.004},
        {"patience": 1, "mode": "max"},
        {"patience": 1, "mode": "max", "threshold": 0.5, "threshold_mode": "abs", "eps": 0.02},
        {"factor": 1.0},
        {"mode": "best"},
        {"threshold_mode": "share"},
        {"min_lr": [0.1]},
    ],
    "SequentialLR": [
        {"schedulers": [WARM_UP, EXPONENTIAL], "milestones": [4]},
        {
            "schedulers": [CONSTANT, COSINE, {"name": "StepLR", "step_size": 2}],
            "milestones": [5, 9],
        },
        {"schedulers": [WARM_UP, RESTARTS], "milestones": [5]},
        {"schedulers": [RESTARTS, CONSTANT], "milestones": [8]},
        {"schedulers": [EXPONENTIAL, MULTIPLICATIVE, LAMBDA], "milestones": [3, 6]},
        {
            "schedulers": [
                {"name": "SequentialLR", "schedulers": [WARM_UP, CONSTANT], "milestones": [4]},
                EXPONENTIAL,
            ],
            "milestones": [9],
        },
        {"schedulers": [EXPONENTIAL], "milestones": [], "last_epoch": 3},
        {"schedulers": [WARM_UP, EXPONENTIAL], "milestones": []},
        {"schedulers": [], "milestones": []},
    ],
    "ChainedScheduler": [
        {"schedulers": [CONSTANT, EXPONENTIAL]},
        {"schedulers": [COSINE, MULTIPLICATIVE, {"name": "MultiStepLR", "milestones": [3, 3, 8]}]},
        {
            "schedulers": [
                {"name": "SequentialLR", "schedulers": [WARM_UP, COSINE], "milestones": [4]}
            ]
        },
    ],
}
"""Options of schedulers, for an optimizer with momentum, from the beginning, step by step."""

CHAIN = {"name": "ChainedScheduler", "schedulers": [CONSTANT, EXPONENTIAL]}
PLATEAU = {"name": "ReduceLROnPlateau"}
NEW: list[Case] = [
    {"scheduler": "LinearLR", "options": {"start_factor": 0.0}},
    {"scheduler": "SequentialLR", "options": {"schedulers": [CHAIN, COSINE], "milestones": [6]}},
    {"scheduler": "SequentialLR", "options": {"schedulers": [COSINE, PLATEAU], "milestones": [6]}},
    {"scheduler": "ChainedScheduler", "options": {"schedulers": [COSINE, PLATEAU]}},
    {"scheduler": "ChainedScheduler", "options": {"schedulers": []}},
]
"""What PyTorch 1.13 does not do, or stumbles over."""
