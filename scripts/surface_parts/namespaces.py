"""The namespaces that users import from, and what each offers besides what is declared for it."""

from __future__ import annotations

from surface_parts.doors import DOORS, Namespace

NAMESPACES = {
    "rn": Namespace(
        "__init__.py",
        "Runnel: a deep-learning framework that is Python down to the machine code.",
        (
            ("runnel", "fft"),
            ("runnel", "linalg"),
            ("runnel", "nn"),
            ("runnel", "ops"),
            ("runnel", "optim"),
            ("runnel", "random"),
            ("runnel", "special"),
            ("runnel.core", "switches"),
            ("runnel.tensor", "debug"),
        ),
        late=tuple(
            ("runnel", name)
            for name in ("autograd", "data", "distributions", "memory", "passes", "train", "tree", "tree_util")
        ),
    ),
    "autograd": Namespace(
        "autograd.py",
        "Differentiation as PyTorch spells it: gradients along the tape, and derivatives of one's own.",
    ),
    "tree": Namespace(
        "tree.py", "Nested containers under the names of ``jax.tree``: mapped, taken apart, put together."
    ),
    "tree_util": Namespace(
        "tree_util.py", "Nested containers under the names of ``jax.tree_util``; registration of classes as containers."
    ),
    "fft": Namespace("fft.py", 'Discrete Fourier transforms (Array API, "Fourier transform functions").'),
    "linalg": Namespace("linalg.py", "Linear algebra: factorizations and systems of equations."),
    "special": Namespace("special.py", "Special functions, under PyTorch's and SciPy's names."),
    "random": Namespace(
        "random/__init__.py",
        "Random numbers: generators and keys, distributions under NumPy's names, permutations and choices.",
    ),
    "distributions": Namespace(
        "distributions/__init__.py",
        "Distributions of probability, with PyTorch's names: random values with gradients, log-probabilities, moments.",
        tuple(("runnel.distributions", name) for name in ("constraints", "kl", "transforms")),
    ),
    "nn": Namespace(
        "nn/__init__.py",
        "Networks: modules that hold Parameters, and the functions they are made of.",
        (("runnel.nn", "functional"), ("runnel.nn", "init"), ("runnel.nn", "utils")),
    ),
    "functional": Namespace(
        "nn/functional.py",
        "The functions of networks under PyTorch's names and argument order, usually imported as ``F``.",
    ),
    "utils": Namespace(
        "nn/utils/__init__.py",
        "Utilities for modules and their Parameters: gradient clipping, parametrized weights, pruning.",
        tuple(("runnel.nn.utils", name) for name in ("parametrizations", "parametrize", "prune", "rnn")),
    ),
    "optim": Namespace(
        "optim/__init__.py",
        "Optimizers and learning-rate schedules.",
        (("runnel.optim", "lr_scheduler"), ("runnel.optim", "swa_utils")),
    ),
    "lr_scheduler": Namespace(
        "optim/lr_scheduler/__init__.py",
        "Learning-rate schedules, with PyTorch's names, arguments and saved states.",
    ),
    "swa_utils": Namespace(
        "optim/swa_utils/__init__.py",
        "Averages of a model's Parameters over training, and the rate that goes with them, with PyTorch's names.",
    ),
    "ops": Namespace(
        "ops/__init__.py",
        "The ops: primitives with their rules, and the functions composed of them. Importing this fills the tables.\n\n"
        "Each function takes any :class:`~runnel.core.dispatch.TensorLike`; no kind of tensor is known here.",
        rules=("callbacks", "linalg"),
        is_public=False,
    ),
    "transforms": Namespace(
        "transforms/__init__.py",
        "Function transforms: gradients of any order, custom derivatives, checkpointing, vectorizing maps and loops.",
        rules=("control_batching", "control_forward"),
        is_public=False,
    ),
    "io": Namespace("io/__init__.py", "Tensors, and whole training states, in files.", is_public=False),
    "data": Namespace(
        "data/__init__.py",
        "Data sets, their samples in order and in batches, and loaders of well-known ones as arrays.",
        late=(("runnel.data", "text"), ("runnel.data", "transforms")),
    ),
    "image_transforms": Namespace(
        "data/transforms/__init__.py",
        "Transforms of images, under torchvision's names.",
    ),
    "text": Namespace("data/text/__init__.py", "Texts as numbers: words, vocabularies, sequences of one length."),
    "train": Namespace(
        "train/__init__.py",
        "Training: ``Trainer`` with its callbacks and metrics.",
    ),
    **DOORS,
}
# modules that are imported when a name of theirs is asked for
LATE = (
    "runnel.core.library.",
    "runnel.distributions.",
    "runnel.expressions.",
    "runnel.nn.rare.",
    "runnel.nn.utils.",
    "runnel.ops.library.",
    "runnel.random.",
    "runnel.tensor.library.",
    "runnel.transforms.library.",
)
GATHERING = ("ops", "transforms", "io")  # what files of these folders offer in ``rn`` is offered by the folder, too
