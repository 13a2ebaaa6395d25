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


# Files of PyTorch's packages that programs import from: each has what its package offers here.
OF_DISTRIBUTIONS = (
    "bernoulli beta binomial categorical cauchy chi2 constraint_registry continuous_bernoulli dirichlet distribution "
    "exp_family exponential fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy half_normal "
    "independent inverse_gamma kumaraswamy laplace lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal "
    "mixture_same_family multinomial multivariate_normal negative_binomial normal one_hot_categorical pareto poisson "
    "relaxed_bernoulli relaxed_categorical studentT transformed_distribution uniform utils von_mises weibull wishart"
)
OF_MODULES = (
    "activation adaptive batchnorm container conv distance dropout flatten fold instancenorm lazy linear loss module "
    "normalization padding pixelshuffle pooling rnn sparse transformer upsampling utils"
)
OF_OPTIMIZERS = "adadelta adagrad adam adamax adamw asgd lbfgs nadam radam rmsprop rprop sgd sparse_adam"


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
            "_dynamo accelerator amp autograd backends compiler cuda distributed distributions export fft func "
            "functional fx hub jit linalg mps multiprocessing nested nn onnx optim profiler quantization random signal "
            "sparse special testing types utils version xpu",
            "Runnel under PyTorch's modules and names: ``import runnel.compat.torch as torch``.",
        ),
        ("torch.accelerator", "", "", "Accelerators, of which there are none."),
        ("torch.amp", "", "", "Products in lower precision."),
        (
            "torch.autograd",
            "runnel.autograd runnel",
            "forward_ad function functional grad_mode graph profiler",
            "Gradients along the tape, and functions with derivatives of their own.",
        ),
        ("torch._dynamo", "", "", "Settings of the compiler that have no effect."),
        ("torch.autograd.forward_ad", "", "", "Tensors with tangents."),
        ("torch.autograd.function", "runnel.autograd", "", "Functions with derivatives of their own."),
        ("torch.autograd.grad_mode", "runnel", "", "Blocks with and without a tape."),
        ("torch.autograd.graph", "", "", "What the tape keeps."),
        ("torch.autograd.profiler", "", "", "Times of stretches of a program."),
        ("torch.compiler", "", "", "What is said to the compiler."),
        ("torch.export", "", "", "Programs as graphs, which are written in another way."),
        ("torch.functional", "runnel.compat.torch", "", "Functions of tensors."),
        ("torch.fx", "", "", "Programs as graphs, which are looked at in another way."),
        ("torch.hub", "", "", "Models from elsewhere, which are not fetched."),
        ("torch.multiprocessing", "multiprocessing", "", "Processes."),
        ("torch.nested", "", "", "Sequences of unlike lengths, which are packed in another way."),
        ("torch.onnx", "", "", "Files of ONNX, which are not written."),
        ("torch.profiler", "", "", "Times of stretches of a program."),
        ("torch.quantization", "", "", "Integers for floats, which there are not."),
        ("torch.sparse", "", "", "Sparse matrices, which there are not."),
        ("torch.types", "", "", "Types of arguments."),
        ("torch.version", "", "", "The version of PyTorch whose names these are."),
        ("torch.autograd.functional", "", "", "Jacobians, second derivatives, and products with them."),
        (
            "torch.backends",
            "",
            "cpu cuda cudnn mkl mkldnn mps openmp opt_einsum",
            "What PyTorch computes with: settings that have no effect here.",
        ),
        ("torch.backends.cuda", "", "matmul", "Settings that have no effect."),
        ("torch.backends.cuda.matmul", "", "", "Settings that have no effect: attributes can be set."),
        ("torch.backends.mkldnn", "", "", "Settings that have no effect: attributes can be set."),
        ("torch.backends.cudnn", "", "", "Settings that have no effect: attributes can be set."),
        ("torch.backends.cpu", "", "", "What the processor can do."),
        ("torch.backends.mkl", "", "", "A library that is not used."),
        ("torch.backends.openmp", "", "", "A library that is not used."),
        ("torch.backends.opt_einsum", "", "", "Settings that have no effect: attributes can be set."),
        ("torch.backends.mps", "", "", "A device that is not there."),
        ("torch.cuda", "", "amp", "GPUs, of which there are none."),
        ("torch.cuda.amp", "", "", "Products in lower precision on GPUs, of which there are none."),
        ("torch.distributed", "", "", "Several processes, which there are not."),
        (
            "torch.distributions",
            "runnel.distributions",
            f"constraints kl transforms {OF_DISTRIBUTIONS}",
            "Distributions of random numbers.",
        ),
        (
            "torch.distributions.constraints",
            "runnel.distributions.constraints",
            "",
            "Which values are allowed.",
        ),
        ("torch.distributions.kl", "runnel.distributions.kl", "", "Divergences."),
        ("torch.distributions.transforms", "runnel.distributions.transforms", "", "Invertible functions."),
        *(
            (f"torch.distributions.{part}", "runnel.distributions", "", "Distributions of random numbers.")
            for part in OF_DISTRIBUTIONS.split()
        ),
        ("torch.fft", "runnel.fft", "", "Fourier transforms."),
        ("torch.func", "runnel", "", "Functions on functions."),
        ("torch.jit", "", "", "Functions and modules as they are."),
        ("torch.linalg", "runnel.linalg", "", "Linear algebra."),
        ("torch.mps", "", "", "A device that is not there."),
        ("torch.xpu", "", "", "A device that is not there."),
        (
            "torch.nn",
            "runnel.nn",
            "attention functional init modules parallel parameter utils",
            "Networks: modules and their functions.",
        ),
        ("torch.nn.functional", "runnel.nn.functional", "", "The functions of networks."),
        ("torch.nn.init", "runnel.nn.init", "", "First values of Parameters."),
        ("torch.nn.attention", "", "", "How attention is computed, which the compiler chooses."),
        ("torch.nn.modules", "runnel.nn", OF_MODULES, "Networks: modules."),
        *((f"torch.nn.modules.{part}", "runnel.nn", "", "Networks: modules.") for part in OF_MODULES.split()),
        ("torch.nn.parallel", "", "", "Several GPUs, of which there are none."),
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
        ("torch.optim", "runnel.optim", f"lr_scheduler optimizer swa_utils {OF_OPTIMIZERS}", "Optimizers."),
        *((f"torch.optim.{part}", "runnel.optim", "", "Optimizers.") for part in OF_OPTIMIZERS.split()),
        ("torch.optim.lr_scheduler", "runnel.optim.lr_scheduler", "", "Learning-rate schedules."),
        ("torch.optim.optimizer", "runnel.optim", "", "Optimizers."),
        ("torch.optim.swa_utils", "runnel.optim.swa_utils", "", "Averages of Parameters over training."),
        ("torch.random", "runnel", "", "The default generator."),
        ("torch.signal", "", "windows", "Signals."),
        ("torch.signal.windows", "", "", "Windows for Fourier transforms."),
        ("torch.special", "runnel.special", "", "Special functions."),
        ("torch.testing", "", "", "Comparison in tests."),
        ("torch.utils", "", "_pytree checkpoint data dlpack hooks tensorboard", "Data, and values computed again."),
        ("torch.utils._pytree", "runnel.tree_util", "", "Nested containers."),
        ("torch.utils.dlpack", "runnel", "", "Arrays of other libraries."),
        ("torch.utils.hooks", "", "", "What hooks are removed by."),
        ("torch.utils.tensorboard", "", "", "Numbers as TensorBoard shows them."),
        ("torch.utils.checkpoint", "", "", "Values that are computed again in backward."),
        ("torch.utils.data", "runnel.data", "dataloader dataset distributed sampler", "Data sets and batches."),
        ("torch.utils.data.distributed", "runnel.data", "", "Orders of samples for several processes."),
        ("torch.utils.data.dataloader", "runnel.data", "", "Batches."),
        ("torch.utils.data.dataset", "runnel.data", "", "Data sets."),
        ("torch.utils.data.sampler", "runnel.data", "", "Orders of samples."),
    )
}
