"""Training: ``Trainer`` with its callbacks and metrics."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.core import public
from runnel.train.callbacks import Callback, EarlyStopping
from runnel.train.checkpoints import Checkpoint, last_checkpoint
from runnel.train.log_files import CSVLog, JSONLines
from runnel.train.metrics.classification import F1, Accuracy, ConfusionMatrix, Precision, Recall, TopK
from runnel.train.metrics.metric import Mean, Metric
from runnel.train.metrics.regression import MAE, MSE, RMSE
from runnel.train.metrics.scores import AUROC, Perplexity
from runnel.train.tensorboard import TensorBoard
from runnel.train.trainer import Trainer

__all__ = [
    "AUROC",
    "F1",
    "MAE",
    "MSE",
    "RMSE",
    "Accuracy",
    "CSVLog",
    "Callback",
    "Checkpoint",
    "ConfusionMatrix",
    "EarlyStopping",
    "JSONLines",
    "Mean",
    "Metric",
    "Perplexity",
    "Precision",
    "Recall",
    "TensorBoard",
    "TopK",
    "Trainer",
    "last_checkpoint",
]

public.offer(globals(), __all__)
del public
