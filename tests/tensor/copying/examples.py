"""An example of each public class, made to be awkward to copy, and something to call it with."""

from __future__ import annotations

import functools
import importlib
import math
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import runnel as rn
from runnel import data, memory, nn, optim, passes, train
from runnel.compile.compiled import BoundCompiled, Compiled
from runnel.core import errors, tables
from runnel.core.devices import CPU, Device
from runnel.core.dtypes import DType
from runnel.data import Characters, Classification, Tree, transforms as T
from runnel.data.workers.shared_memory import WorkerInfo
from runnel.nn.utils.rnn import PackedSequence, pack_padded_sequence
from runnel.optim import lr_scheduler as schedules, swa_utils
from runnel.tensor.variable import Variable
from tests.suites.pytorch.layers import LAYERS
from tests.suites.pytorch.test_layers import Torch

PUBLIC = (
    "runnel", "runnel.nn", "runnel.nn.utils", "runnel.nn.utils.rnn", "runnel.optim", "runnel.optim.lr_scheduler",
    "runnel.optim.swa_utils", "runnel.io", "runnel.data", "runnel.data.text", "runnel.data.transforms", "runnel.train",
    "runnel.passes", "runnel.memory",
)  # fmt: skip
NOT_MADE = {  # base classes, whose subclasses are here
    optim.LRScheduler, optim.Optimizer, nn.RNNBase, nn.RNNCellBase, data.Dataset, data.IterableDataset, data.Sampler,
    data.transforms.Transform, memory.Allocator, train.Metric,
} | {  # parts of graphs, which passes make while they run
    passes.Constant, passes.Graph, passes.Input, passes.Node, passes.Result, passes.Value, passes.Written,
}  # fmt: skip


class Example(NamedTuple):
    """How to make one, and the shapes of arrays to call it with (None: it is not called)."""

    make: Callable[[], Any]
    shapes: tuple[tuple[int, ...], ...] | None = None


def public_classes() -> set[type]:
    """Every class that ``__all__`` of a public module names, the classes of the objects it names, and all errors."""
    results: set[type] = set()
    for name in PUBLIC:
        module = importlib.import_module(name)
        for value in (getattr(module, x) for x in module.__all__):
            plain = isinstance(value, (types.FunctionType, types.ModuleType, type))
            results |= {value} if isinstance(value, type) else set() if plain else {type(value)}
    results |= {x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, Exception)}
    return {kind for kind in results if kind.__module__.startswith("runnel")} - NOT_MADE


def floats(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def rows_of_data() -> rn.Tensor:
    return rn.asarray(floats(4, 3))


def dataset() -> data.Dataset[Any]:
    return data.TensorDataset(rows_of_data())


def tensor() -> rn.Tensor:
    x = rn.tensor(floats(3, 4), requires_grad=True)
    (x * x).sum().backward()
    x.note = {"why": "a user's attribute"}
    return x


def parameter() -> nn.Parameter:
    p = nn.Parameter(floats(4), name="p")
    (p * p).sum().backward()
    return p


def trained(make: Callable[[Any], optim.Optimizer]) -> Callable[[], optim.Optimizer]:
    """An optimizer of two groups that has made steps; one Parameter has not."""

    def build() -> optim.Optimizer:
        one, two, three = (nn.Parameter(floats(3, 2, seed=i), name=f"p{i}") for i in range(3))
        optimizer = make([{"params": [one, two]}, {"params": [three], "lr": 0.5}])
        for i in range(3):
            for p in (one, three):
                p.grad = rn.asarray(floats(3, 2, seed=10 + i))
            optimizer.step()
        return optimizer

    return build


def scheduled(make: Callable[[optim.Optimizer], Any]) -> Callable[[], Any]:
    def build() -> Any:
        schedule = make(trained(lambda p: optim.SGD(p, lr=0.1, momentum=0.9))())
        schedule.step()
        return schedule

    return build


def on_a_plateau() -> schedules.ReduceLROnPlateau:
    schedule = schedules.ReduceLROnPlateau(trained(optim.Adam)(), patience=0)
    for value in (1.0, 2.0):
        schedule.step(value)
    return schedule


def one_after_the_other(optimizer: optim.Optimizer) -> schedules.SequentialLR:
    parts = [schedules.ConstantLR(optimizer), schedules.ExponentialLR(optimizer, 0.9)]
    return schedules.SequentialLR(optimizer, parts, [2])


def generator() -> rn.Generator:
    result = rn.Generator(7)
    rn.rand(3, generator=result)
    return result


@rn.compile
def tripled(x: Any) -> Any:
    return x * 3.0


@rn.custom_vjp
def doubled(x: Any) -> Any:
    """Twice x, with a custom gradient."""
    return x * 2.0


@rn.custom_jvp
def halved(x: Any) -> Any:
    """Half of x, with a custom tangent."""
    return x * 0.5


def _tied() -> nn.Module:
    encoder = nn.Linear(4, 4)
    return nn.ModuleDict({"encoder": encoder, "decoder": nn.Sequential(encoder, nn.Tanh())})


def _encoder_layer() -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(4, 2, 8)


FOLDER = tempfile.TemporaryDirectory()  # files of data sets, until the process ends


def _image_folder() -> data.ImageFolder:
    for path in (Path(FOLDER.name) / "images" / kind / "0.png" for kind in ("cat", "dog")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()  # images are read when a sample is asked for
    return data.ImageFolder(Path(FOLDER.name) / "images", target_transform=math.exp2)


def _lines() -> data.TextLines:
    path = Path(FOLDER.name) / "lines.txt"
    path.write_text("one\n\nthree", encoding="utf-8")
    return data.TextLines(path)


def _table() -> data.TableDataset:
    """As it is when a file has been read, which needs pyarrow."""
    table = data.TableDataset.__new__(data.TableDataset)
    table.columns = {"price": floats(3), "name": np.array(["a", "b", "c"], object)}
    table._length = 3
    return table


def _packed() -> PackedSequence:
    return pack_padded_sequence(rn.asarray(floats(4, 2, 3)), [4, 2])


def _fitted() -> train.Trainer:
    """Of a model that is trained, in the middle of an epoch."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    early = train.EarlyStopping("loss")
    optimizer = optim.Adam(model.parameters())
    trainer = train.Trainer(model, nn.CrossEntropyLoss(), optimizer, metrics=["f1"], callbacks=[early], progress=False)
    early.on_step_end = lambda trainer, logs: trainer.stop("enough") if trainer.steps == 3 else None
    rows = data.TensorDataset(rn.asarray(floats(8, 3)), rn.arange(8) % 2)
    trainer.fit(data.DataLoader(rows, 4, shuffle=True), 2)
    del early.on_step_end
    return trainer


def _best_fit() -> memory.BestFit:
    heap = memory.BestFit()
    heap.give_back(heap.take(64), 32)
    return heap


IMAGES = (1, 8, 8)
LINE, PLANE, SPACE = (2, 4, 8), (2, 4, 8, 8), (2, 4, 6, 6, 6)
ROWS = (3, 4)

EXAMPLES: dict[type, Example] = {
    rn.Tensor: Example(tensor),
    Variable: Example(lambda: Variable(floats(5), name="v")),
    nn.Parameter: Example(parameter),
    rn.Generator: Example(generator),
    rn.ShapeDtypeStruct: Example(lambda: rn.ShapeDtypeStruct((2, 3), "float32")),
    rn.autocast: Example(rn.autocast),
    rn.no_grad: Example(rn.no_grad),
    rn.enable_grad: Example(rn.enable_grad),
    rn.inference_mode: Example(rn.inference_mode),
    rn.set_grad_enabled: Example(lambda: rn.set_grad_enabled(True)),
    rn.custom_vjp: Example(lambda: doubled, (ROWS,)),
    rn.custom_jvp: Example(lambda: halved, (ROWS,)),
    rn.tree_util.PyTreeDef: Example(lambda: rn.tree.structure({"a": (1, None)})),
    Compiled: Example(lambda: tripled, (ROWS,)),
    BoundCompiled: Example(lambda: rn.compile(nn.Linear(4, 2).forward), (ROWS,)),
    DType: Example(lambda: rn.bfloat16),
    Device: Example(lambda: CPU),
    PackedSequence: Example(_packed),
    rn.Order: Example(lambda: rn.Order.chains([2, 1])),
    Classification: Example(lambda: Classification("d", *[floats(3, 2)] * 4)),
    Characters: Example(lambda: Characters.of("d", "abcab", 0.5)),
    Tree: Example(lambda: Tree(1, "word", ())),
    optim.SGD: Example(trained(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True))),
    optim.Adam: Example(trained(lambda p: optim.Adam(p, amsgrad=True))),
    optim.AdamW: Example(trained(optim.AdamW)),
    optim.RMSprop: Example(trained(lambda p: optim.RMSprop(p, momentum=0.5, centered=True))),
    optim.Adagrad: Example(trained(optim.Adagrad)),
    optim.SparseAdam: Example(trained(optim.SparseAdam)),
    optim.ASGD: Example(trained(optim.ASGD)),
    optim.Adadelta: Example(trained(optim.Adadelta)),
    optim.Adafactor: Example(trained(optim.Adafactor)),
    optim.Adamax: Example(trained(optim.Adamax)),
    optim.LAMB: Example(trained(optim.LAMB)),
    optim.LBFGS: Example(lambda: optim.LBFGS([parameter()])),
    optim.Lion: Example(trained(optim.Lion)),
    optim.Muon: Example(trained(optim.Muon)),
    optim.NAdam: Example(trained(optim.NAdam)),
    optim.RAdam: Example(trained(optim.RAdam)),
    optim.Rprop: Example(trained(optim.Rprop)),
    optim.Shampoo: Example(trained(lambda p: optim.Shampoo(p, momentum=0.5))),
    schedules.StepLR: Example(scheduled(lambda o: schedules.StepLR(o, 2))),
    schedules.CosineAnnealingLR: Example(scheduled(lambda o: schedules.CosineAnnealingLR(o, 5))),
    schedules.LinearLR: Example(scheduled(schedules.LinearLR)),
    schedules.ConstantLR: Example(scheduled(schedules.ConstantLR)),
    schedules.CosineAnnealingWarmRestarts: Example(scheduled(lambda o: schedules.CosineAnnealingWarmRestarts(o, 3))),
    schedules.CyclicLR: Example(scheduled(lambda o: schedules.CyclicLR(o, 0.1, 0.2, cycle_momentum=False))),
    schedules.ExponentialLR: Example(scheduled(lambda o: schedules.ExponentialLR(o, 0.9))),
    schedules.LambdaLR: Example(scheduled(lambda o: schedules.LambdaLR(o, math.exp2))),
    schedules.MultiplicativeLR: Example(scheduled(lambda o: schedules.MultiplicativeLR(o, math.exp2))),
    schedules.MultiStepLR: Example(scheduled(lambda o: schedules.MultiStepLR(o, [2, 2, 5]))),
    schedules.OneCycleLR: Example(scheduled(lambda o: schedules.OneCycleLR(o, 0.3, 20, cycle_momentum=False))),
    schedules.PolynomialLR: Example(scheduled(schedules.PolynomialLR)),
    schedules.ReduceLROnPlateau: Example(on_a_plateau),
    schedules.SequentialLR: Example(scheduled(one_after_the_other)),
    schedules.ChainedScheduler: Example(scheduled(lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o)]))),
    swa_utils.SWALR: Example(scheduled(lambda o: swa_utils.SWALR(o, 0.05))),
    swa_utils.AveragedModel: Example(lambda: swa_utils.AveragedModel(nn.Linear(4, 2)), (ROWS,)),
    nn.Module: Example(nn.Module),
    nn.Sequential: Example(lambda: nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5), nn.BatchNorm1d(5)), (ROWS,)),
    nn.ModuleList: Example(lambda: nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])),
    nn.ModuleDict: Example(_tied),
    nn.ParameterList: Example(lambda: nn.ParameterList([parameter()])),
    nn.ParameterDict: Example(lambda: nn.ParameterDict({"a": parameter()})),
    nn.Linear: Example(lambda: nn.Linear(4, 3, dtype="bfloat16")),
    nn.Identity: Example(nn.Identity, (ROWS,)),
    nn.Flatten: Example(nn.Flatten, (PLANE,)),
    nn.Dropout: Example(lambda: nn.Dropout(0.25), (ROWS,)),
    nn.Embedding: Example(lambda: nn.Embedding(5, 3, sparse=True)),
    nn.EmbeddingBag: Example(lambda: nn.EmbeddingBag(5, 3)),
    nn.MultiheadAttention: Example(lambda: nn.MultiheadAttention(4, 2, 0.1), ((8, 2, 4),) * 3),
    nn.RNN: Example(lambda: nn.RNN(4, 3, nonlinearity="relu"), ((5, 2, 4),)),
    nn.GRU: Example(lambda: nn.GRU(4, 3, 2, dropout=0.5), ((5, 2, 4),)),
    nn.LSTM: Example(lambda: nn.LSTM(4, 3, bidirectional=True), ((5, 2, 4),)),
    nn.RNNCell: Example(lambda: nn.RNNCell(4, 3), (ROWS,)),
    nn.GRUCell: Example(lambda: nn.GRUCell(4, 3), (ROWS,)),
    nn.LSTMCell: Example(lambda: nn.LSTMCell(4, 3), (ROWS,)),
    nn.TransformerEncoderLayer: Example(_encoder_layer, ((3, 2, 4),)),
    nn.TransformerEncoder: Example(lambda: nn.TransformerEncoder(_encoder_layer(), 2), ((3, 2, 4),)),
    nn.TransformerDecoderLayer: Example(lambda: nn.TransformerDecoderLayer(4, 2, 8), ((3, 2, 4),) * 2),
    nn.TransformerDecoder: Example(
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2, nn.LayerNorm(4)), ((3, 2, 4),) * 2
    ),
    nn.Transformer: Example(lambda: nn.Transformer(4, 2, 1, 1, 8), ((3, 2, 4),) * 2),
    nn.LayerNorm: Example(lambda: nn.LayerNorm(4), (ROWS,)),
    nn.RMSNorm: Example(lambda: nn.RMSNorm(4), (ROWS,)),
    nn.GroupNorm: Example(lambda: nn.GroupNorm(2, 4), (PLANE,)),
    **{
        kind: Example(lambda kind=kind: kind(4, track_running_stats=True), (shape,))
        for kinds, shape in (
            ((nn.BatchNorm1d, nn.InstanceNorm1d), LINE),
            ((nn.BatchNorm2d, nn.InstanceNorm2d), PLANE),
            ((nn.BatchNorm3d, nn.InstanceNorm3d), SPACE),
        )
        for kind in kinds
    },
    **{
        kind: Example(lambda kind=kind: kind(4, 2, 3, padding=1), (shape,))
        for kinds, shape in (
            ((nn.Conv1d, nn.ConvTranspose1d), LINE),
            ((nn.Conv2d, nn.ConvTranspose2d), PLANE),
            ((nn.Conv3d, nn.ConvTranspose3d), SPACE),
        )
        for kind in kinds
    },
    **{
        kind: Example(lambda kind=kind: kind(2), (shape,))
        for kinds, shape in (
            ((nn.AvgPool1d, nn.MaxPool1d, nn.AdaptiveAvgPool1d, nn.AdaptiveMaxPool1d), LINE),
            ((nn.AvgPool2d, nn.MaxPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d), PLANE),
            ((nn.AvgPool3d, nn.MaxPool3d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool3d), SPACE),
        )
        for kind in kinds
    },
    **{
        kind: Example(kind, (ROWS,))
        for kind in (
            nn.ELU, nn.GELU, nn.LeakyReLU, nn.LogSoftmax, nn.ReLU, nn.Sigmoid, nn.SiLU, nn.Softmax, nn.Softplus,
            nn.Tanh,
        )
    },
    **{kind: Example(kind, (ROWS, ROWS)) for kind in (nn.HuberLoss, nn.L1Loss, nn.MSELoss, nn.SmoothL1Loss)},
    nn.BCELoss: Example(lambda: nn.BCELoss(np.ones(4, np.float32))),
    nn.BCEWithLogitsLoss: Example(lambda: nn.BCEWithLogitsLoss(pos_weight=np.ones(4, np.float32)), (ROWS, ROWS)),
    nn.CrossEntropyLoss: Example(lambda: nn.CrossEntropyLoss(np.ones(4, np.float32)), (ROWS, ROWS)),
    nn.NLLLoss: Example(lambda: nn.NLLLoss(np.ones(4, np.float32))),
    **{
        kind: Example(lambda kind=kind: kind("[op] a sentence."))
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, Exception) and kind is not errors.MemoryBudgetError
    },
    nn.NLLLoss2d: Example(nn.NLLLoss2d),
    nn.SyncBatchNorm: Example(lambda: nn.SyncBatchNorm(4), (ROWS,)),
    nn.Buffer: Example(lambda: nn.Buffer(floats(2), persistent=False)),
    nn.UninitializedParameter: Example(nn.UninitializedParameter),
    nn.UninitializedBuffer: Example(nn.UninitializedBuffer),
    nn.LazyLinear: Example(lambda: nn.LazyLinear(3), (ROWS,)),
    **{
        kind: Example(lambda kind=kind: kind(4, 3))
        for kind in (
            nn.LazyConv1d, nn.LazyConv2d, nn.LazyConv3d, nn.LazyConvTranspose1d, nn.LazyConvTranspose2d,
            nn.LazyConvTranspose3d,
        )
    },
    **{
        kind: Example(kind)
        for kind in (
            nn.LazyBatchNorm1d, nn.LazyBatchNorm2d, nn.LazyBatchNorm3d, nn.LazyInstanceNorm1d, nn.LazyInstanceNorm2d,
            nn.LazyInstanceNorm3d,
        )
    },
    **{
        kind: Example(kind)
        for kind in (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
    },
    **{
        kind: Example(lambda kind=kind: kind(2, output_size=2))
        for kind in (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)
    },
    **{
        kind: Example(lambda kind=kind: kind(rows_of_data()))
        for kind in (data.TensorDataset, data.StackDataset, data.SequentialSampler, data.RandomSampler)
    },
    **{kind: Example(lambda kind=kind: kind([dataset()])) for kind in (data.ConcatDataset, data.ChainDataset)},
    data.ArrayDataset: Example(lambda: data.ArrayDataset(floats(4, 3), np.arange(4), target_transform=math.exp2)),
    data.ImageFolder: Example(_image_folder),
    data.TextLines: Example(_lines),
    data.TableDataset: Example(_table),
    rn.Ragged: Example(lambda: rn.Ragged(floats(6, 3), np.array([0, 2, 6], np.int32))),
    data.DistributedSampler: Example(lambda: data.DistributedSampler(dataset(), 2, 1, seed=4)),
    WorkerInfo: Example(lambda: WorkerInfo(1, 2, 7, dataset())),
    data.Subset: Example(lambda: data.Subset(dataset(), [2, 0])),
    data.DataLoader: Example(lambda: data.DataLoader(dataset(), 2, generator=rn.Generator(5))),
    data.SubsetRandomSampler: Example(lambda: data.SubsetRandomSampler([3, 1], rn.Generator(5))),
    data.WeightedRandomSampler: Example(lambda: data.WeightedRandomSampler([1.0, 2.0], 3)),
    data.BatchSampler: Example(lambda: data.BatchSampler(data.SequentialSampler(dataset()), 2)),
    data.text.Vocab: Example(lambda: data.text.Vocab(["<unk>", "a"], unknown="<unk>")),
    data.text.BytePairEncoding: Example(lambda: data.text.BytePairEncoding([(97, 98)], ["<end>"])),
    **{kind: Example(kind, (IMAGES,)) for kind in (T.RandomHorizontalFlip, T.RandomVerticalFlip, T.Grayscale)},
    **{kind: Example(lambda kind=kind: kind(4), (IMAGES,)) for kind in (T.CenterCrop, T.RandomCrop, T.Pad, T.Resize)},
    T.RandomResizedCrop: Example(lambda: T.RandomResizedCrop(4), (IMAGES,)),
    T.RandomErasing: Example(lambda: T.RandomErasing(1.0), (IMAGES,)),
    T.ColorJitter: Example(lambda: T.ColorJitter(0.5, 0.5), (IMAGES,)),
    T.Normalize: Example(lambda: T.Normalize([0.5], [0.5]), (IMAGES,)),
    T.ToTensor: Example(T.ToTensor),
    T.Compose: Example(lambda: T.Compose([T.RandomCrop(4), T.ColorJitter(0.5)]), (IMAGES,)),
    T.MixUp: Example(lambda: T.MixUp(num_classes=3)),
    T.CutMix: Example(lambda: T.CutMix(num_classes=3)),
    **{
        kind: Example(lambda kind=kind: kind().update(floats(6, 3), np.arange(6) % 3))
        for kind in (train.Accuracy, train.F1, train.Precision, train.Recall, train.AUROC, train.Perplexity)
    },
    **{
        kind: Example(lambda kind=kind: kind().update(floats(6), floats(6, seed=1)))
        for kind in (train.MSE, train.RMSE, train.MAE)
    },
    train.TopK: Example(lambda: train.TopK(2).update(floats(6, 3), np.arange(6) % 3)),
    train.ConfusionMatrix: Example(lambda: train.ConfusionMatrix(3).update(floats(6, 3), np.arange(6) % 3)),
    train.Mean: Example(lambda: train.Mean().update(2.0, weight=3)),
    train.Callback: Example(train.Callback),
    train.EarlyStopping: Example(lambda: train.EarlyStopping("loss", restore_best=True)),
    train.Checkpoint: Example(lambda: train.Checkpoint(Path("states"), best="loss")),
    **{kind: Example(lambda kind=kind: kind("log")) for kind in (train.JSONLines, train.CSVLog, train.TensorBoard)},
    train.Trainer: Example(_fitted),
    memory.BestFit: Example(_best_fit),
    memory.Lifetime: Example(lambda: memory.Lifetime(64, 0, 2)),
    memory.replay: Example(lambda: memory.replay(memory.BestFit)),
    passes.Op: Example(lambda: passes.op("exp")),
    passes.Table: Example(lambda: tables.abstract_eval),
    passes.Pass: Example(lambda: passes.USUAL.passes[0]),
    passes.Pipeline: Example(lambda: passes.USUAL),
    type(passes.anything()): Example(passes.anything),
    passes.Pattern: Example(passes.Pattern),
    passes.Rule: Example(lambda: passes.Rule(passes.applied("tanh", passes.number(1.0, "x")), rn.tanh)),
    errors.MemoryBudgetError: Example(lambda: errors.MemoryBudgetError("[compile] too much.", 7)),
}  # fmt: skip


def _of_cases() -> dict[type, Example]:
    """The layers of the cases of PyTorch's values, as they are made there."""
    results: dict[type, Example] = {}
    for made_by, case in LAYERS.items():
        kind = getattr(nn, made_by.removeprefix("nn.").partition("(")[0], None)
        if isinstance(kind, type) and kind not in EXAMPLES and not kind.__name__.startswith("Lazy"):
            shapes = tuple(tuple(map(int, text.split())) for text in case["inputs"].values() if text[0].isdigit())
            is_plain = len(shapes) == len(case["inputs"]) and case["call"] in ("m(x)", "m(x, y)")
            results.setdefault(kind, Example(functools.partial(_evaluated, made_by), shapes if is_plain else None))
    return results


def _evaluated(made_by: str) -> Any:
    return eval(made_by, {"nn": nn, "F": nn.functional, "torch": Torch})


EXAMPLES.update(_of_cases())


def made(kind: type) -> Any:
    """The example of ``kind``, the same each time."""
    before = rn.get_rng_state()
    rn.manual_seed(3)
    try:
        return EXAMPLES[kind].make()
    finally:
        rn.set_rng_state(before)


def called(kind: type, instance: Any) -> Any:
    """Call ``instance`` with arrays of its example's shapes, after seeding the random numbers."""
    shapes = EXAMPLES[kind].shapes
    if shapes is None:
        return None
    before = rn.get_rng_state()
    rn.manual_seed(5)
    try:
        return instance(*[rn.asarray(floats(*shape, seed=i)) for i, shape in enumerate(shapes)])
    finally:
        rn.set_rng_state(before)
