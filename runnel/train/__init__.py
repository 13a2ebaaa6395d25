"""``Trainer`` with its callbacks and metrics."""

from runnel.compile.boundary import set_observed
from runnel.core.namespaces import namespace

NAMES = {
    "AUROC": "runnel.train.metrics.scores:AUROC",
    "F1": "runnel.train.metrics.classification:F1",
    "MAE": "runnel.train.metrics.scores:MAE",
    "MSE": "runnel.train.metrics.scores:MSE",
    "RMSE": "runnel.train.metrics.scores:RMSE",
    "Accuracy": "runnel.train.metrics.classification:Accuracy",
    "CSVLog": "runnel.train.log_files:CSVLog",
    "Callback": "runnel.train.callbacks:Callback",
    "Checkpoint": "runnel.train.checkpoints:Checkpoint",
    "ConfusionMatrix": "runnel.train.metrics.classification:ConfusionMatrix",
    "EarlyStopping": "runnel.train.callbacks:EarlyStopping",
    "JSONLines": "runnel.train.log_files:JSONLines",
    "Mean": "runnel.train.metrics.metric:Mean",
    "Metric": "runnel.train.metrics.metric:Metric",
    "Perplexity": "runnel.train.metrics.scores:Perplexity",
    "Precision": "runnel.train.metrics.classification:Precision",
    "Recall": "runnel.train.metrics.classification:Recall",
    "TensorBoard": "runnel.train.tensorboard:TensorBoard",
    "TopK": "runnel.train.metrics.classification:TopK",
    "Trainer": "runnel.train.trainer:Trainer",
    "last_checkpoint": "runnel.train.checkpoints:last_checkpoint",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)

set_observed(__name__, True)
