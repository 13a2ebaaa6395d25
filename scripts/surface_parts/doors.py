"""The modules of `runnel.compat.torch`: PyTorch's, with the names of Runnel's."""

from __future__ import annotations

from typing import NamedTuple


class Namespace(NamedTuple):
    """A module that offers what is declared for it. ``modules`` are offered too: (package, name). ``rules`` are modules
    of its folder that are imported for what they register."""

    file: str
    doc: str
    modules: tuple[tuple[str, str], ...] = ()
    rules: tuple[str, ...] = ()
    is_public: bool = True  # else it is for code of this package, which needs no checks of arguments
    forwards: tuple[str, ...] = ()  # modules whose names it has as well
    late: tuple[tuple[str, str], ...] = ()  # modules that are imported when they are asked for


def door(path: str, doc: str, *forwards: str, parts: str = "") -> Namespace:
    """A module of PyTorch's, "torch.nn": names of ``forwards``, what is declared for it, and its modules ``parts``."""
    folder = "runnel.compat." + path
    file = folder.replace("runnel.", "").replace(".", "/") + ("/__init__.py" if parts else ".py")
    return Namespace(file, doc, forwards=forwards, late=tuple((folder, part) for part in parts.split()))


DOORS = {
    path: door(path, doc, *forwards.split(), parts=parts)
    for path, forwards, parts, doc in (
        (
            "torch",
            "runnel runnel.nn.functional",
            "accelerator amp autograd backends cuda distributed distributions fft func jit linalg mps nn optim random "
            "signal special testing utils xpu",
            "Runnel under PyTorch's modules and names: ``import runnel.compat.torch as torch``.",
        ),
        ("torch.accelerator", "", "", "Accelerators, of which there are none."),
        ("torch.amp", "", "", "Products in lower precision."),
        (
            "torch.autograd",
            "runnel.autograd runnel",
            "functional",
            "Gradients along the tape, and functions with derivatives of their own.",
        ),
        ("torch.autograd.functional", "", "", "Jacobians, second derivatives, and products with them."),
        (
            "torch.backends",
            "",
            "cuda cudnn mkldnn mps",
            "What PyTorch computes with: settings that have no effect here.",
        ),
        ("torch.backends.cuda", "", "matmul", "Settings that have no effect."),
        ("torch.backends.cuda.matmul", "", "", "Settings that have no effect: attributes can be set."),
        ("torch.backends.mkldnn", "", "", "Settings that have no effect: attributes can be set."),
        ("torch.backends.cudnn", "", "", "Settings that have no effect: attributes can be set."),
        ("torch.backends.mps", "", "", "A device that is not there."),
        ("torch.cuda", "", "amp", "GPUs, of which there are none."),
        ("torch.cuda.amp", "", "", "Products in lower precision on GPUs, of which there are none."),
        ("torch.distributed", "", "", "Several processes, which there are not."),
        ("torch.distributions", "runnel.distributions", "", "Distributions of random numbers."),
        ("torch.fft", "runnel.fft", "", "Fourier transforms."),
        ("torch.func", "runnel", "", "Functions on functions."),
        ("torch.jit", "", "", "Functions and modules as they are."),
        ("torch.linalg", "runnel.linalg", "", "Linear algebra."),
        ("torch.mps", "", "", "A device that is not there."),
        ("torch.xpu", "", "", "A device that is not there."),
        ("torch.nn", "runnel.nn", "functional init modules parameter utils", "Networks: modules and their functions."),
        ("torch.nn.functional", "runnel.nn.functional", "", "The functions of networks."),
        ("torch.nn.init", "runnel.nn.init", "", "First values of Parameters."),
        ("torch.nn.modules", "runnel.nn", "", "Networks: modules."),
        ("torch.nn.parameter", "runnel.nn", "", "Parameters."),
        (
            "torch.nn.utils",
            "runnel.nn.utils",
            "parametrizations parametrize prune rnn stateless",
            "What is done to modules and all of their Parameters.",
        ),
        ("torch.nn.utils.parametrizations", "runnel.nn.utils.parametrizations", "", "Weights of a given form."),
        ("torch.nn.utils.parametrize", "runnel.nn.utils.parametrize", "", "Parameters that are computed from others."),
        ("torch.nn.utils.prune", "runnel.nn.utils.prune", "", "Parameters with elements kept at zero."),
        ("torch.nn.utils.rnn", "runnel.nn.utils.rnn", "", "Sequences of unlike lengths."),
        ("torch.nn.utils.stateless", "", "", "Modules as functions of their Parameters."),
        ("torch.optim", "runnel.optim", "lr_scheduler optimizer swa_utils", "Optimizers."),
        ("torch.optim.lr_scheduler", "runnel.optim.lr_scheduler", "", "Learning-rate schedules."),
        ("torch.optim.optimizer", "runnel.optim", "", "Optimizers."),
        ("torch.optim.swa_utils", "runnel.optim.swa_utils", "", "Averages of Parameters over training."),
        ("torch.random", "runnel", "", "The default generator."),
        ("torch.signal", "", "windows", "Signals."),
        ("torch.signal.windows", "", "", "Windows for Fourier transforms."),
        ("torch.special", "runnel.special", "", "Special functions."),
        ("torch.testing", "", "", "Comparison in tests."),
        ("torch.utils", "", "checkpoint data", "Data, and values that are computed again."),
        ("torch.utils.checkpoint", "", "", "Values that are computed again in backward."),
        ("torch.utils.data", "runnel.data", "dataloader dataset sampler", "Data sets, orders and batches."),
        ("torch.utils.data.dataloader", "runnel.data", "", "Batches."),
        ("torch.utils.data.dataset", "runnel.data", "", "Data sets."),
        ("torch.utils.data.sampler", "runnel.data", "", "Orders of samples."),
    )
}
