"""The modules of ``runnel.compat.torch``: the modules of Runnel whose names each has, and its other names."""

# Files of PyTorch's packages that programs import from: each has the names of its package.
DISTRIBUTIONS = """
    bernoulli beta binomial categorical cauchy chi2 constraint_registry continuous_bernoulli dirichlet
    distribution exp_family exponential fishersnedecor gamma generalized_pareto geometric gumbel
    half_cauchy half_normal independent inverse_gamma kumaraswamy laplace lkj_cholesky log_normal
    logistic_normal lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal
    negative_binomial normal one_hot_categorical pareto poisson relaxed_bernoulli relaxed_categorical
    studentT transformed_distribution uniform utils von_mises weibull wishart
"""
MODULES = """
    activation adaptive batchnorm container conv distance dropout flatten fold instancenorm lazy linear
    loss module normalization padding pixelshuffle pooling rnn sparse transformer upsampling utils
"""
OPTIM = """
    adadelta adagrad adam adamax adamw asgd lbfgs nadam optimizer radam rmsprop rprop sgd sparse_adam
"""
DATA = """
    dataloader dataset distributed sampler
"""

FORWARDS = {
    "autograd": "runnel.autograd runnel",
    "autograd.function": "runnel.autograd",
    "autograd.grad_mode": "runnel",
    "distributions": "runnel.distributions",
    "distributions.constraints": "runnel.distributions.constraints",
    "distributions.kl": "runnel.distributions.kl",
    "distributions.transforms": "runnel.distributions.transforms",
    "fft": "runnel.fft",
    "func": "runnel",
    "functional": "runnel.compat.torch",
    "linalg": "runnel.linalg",
    "multiprocessing": "multiprocessing",
    "nn": "runnel.nn",
    "nn.functional": "runnel.nn.functional",
    "nn.init": "runnel.nn.init",
    "nn.modules": "runnel.nn",
    "nn.parameter": "runnel.nn",
    "nn.utils": "runnel.nn.utils",
    "nn.utils.parametrizations": "runnel.nn.utils.parametrizations",
    "nn.utils.parametrize": "runnel.nn.utils.parametrize",
    "nn.utils.prune": "runnel.nn.utils.prune",
    "nn.utils.rnn": "runnel.nn.utils.rnn",
    "optim": "runnel.compat.functions.optimizers runnel.optim",
    "optim.lr_scheduler": "runnel.optim.lr_scheduler",
    "optim.swa_utils": "runnel.optim.swa_utils",
    "random": "runnel",
    "special": "runnel.special",
    "utils._pytree": "runnel.tree_util",
    "utils.data": "runnel.data",
    "utils.dlpack": "runnel",
    **{f"distributions.{part}": "runnel.distributions" for part in DISTRIBUTIONS.split()},
    **{f"nn.modules.{part}": "runnel.nn" for part in MODULES.split()},
    **{f"optim.{part}": "runnel.compat.functions.optimizers runnel.optim" for part in OPTIM.split()},
    **{f"utils.data.{part}": "runnel.data" for part in DATA.split()},
}

NAMES: dict[str, dict[str, str]] = {
    "_dynamo": {
        "config": "runnel.compat.functions.running:config",
        "disable": "runnel.compat.functions.running:disable",
        "graph_break": "runnel.compat.functions.running:without_compiler",
        "is_compiling": "runnel.compat.functions.running:is_compiling",
        "mark_dynamic": "runnel.compat.functions.running:without_compiler",
        "mark_static": "runnel.compat.functions.running:without_compiler",
        "reset": "runnel.compat.functions.running:without_compiler",
    },
    "accelerator": {
        "current_accelerator": "runnel.compat.functions.running:current_accelerator",
        "device_count": "runnel.compat.functions.running:device_count",
        "empty_cache": "runnel.compat.functions.running:no_effect",
        "is_available": "runnel.compat.functions.running:is_available",
        "synchronize": "runnel.compat.functions.running:no_effect",
    },
    "amp": {
        "GradScaler": "runnel.compat.functions.running:GradScaler",
        "autocast": "runnel.compat.functions.running:autocast",
        "custom_bwd": "runnel.compat.functions.running:custom_autocast",
        "custom_fwd": "runnel.compat.functions.running:custom_autocast",
        "is_autocast_available": "runnel.compat.functions.running:is_autocast_available",
    },
    "autograd": {
        "Variable": "runnel.compat.functions.kinds:variable",
    },
    "autograd.forward_ad": {
        "dual_level": "runnel.compat.functions.derivatives:dual_level",
        "make_dual": "runnel.compat.functions.derivatives:make_dual",
        "unpack_dual": "runnel.compat.functions.derivatives:unpack_dual",
    },
    "autograd.functional": {
        "hessian": "runnel.compat.functions.derivatives:hessian",
        "hvp": "runnel.compat.functions.derivatives:hvp",
        "jacobian": "runnel.compat.functions.derivatives:jacobian",
        "jvp": "runnel.compat.functions.derivatives:jvp",
        "vhp": "runnel.compat.functions.derivatives:vhp",
        "vjp": "runnel.compat.functions.derivatives:vjp",
    },
    "autograd.graph": {
        "save_on_cpu": "runnel.compat.functions.running:save_on_cpu",
    },
    "autograd.profiler": {
        "profile": "runnel.compat.functions.profiling:profile",
        "record_function": "runnel.compat.functions.profiling:record_function",
    },
    "backends": {
        "fp32_precision": "runnel.compat.functions.settings:fp32_precision",
    },
    "backends.cpu": {
        "get_cpu_capability": "runnel.compat.functions.settings:get_cpu_capability",
    },
    "backends.cuda": {
        "cudnn_sdp_enabled": "runnel.compat.functions.settings:is_absent",
        "enable_cudnn_sdp": "runnel.compat.functions.running:no_effect",
        "enable_flash_sdp": "runnel.compat.functions.running:no_effect",
        "enable_math_sdp": "runnel.compat.functions.running:no_effect",
        "enable_mem_efficient_sdp": "runnel.compat.functions.running:no_effect",
        "flash_sdp_enabled": "runnel.compat.functions.settings:is_absent",
        "is_built": "runnel.compat.functions.running:is_available",
        "math_sdp_enabled": "runnel.compat.functions.settings:is_present",
        "mem_efficient_sdp_enabled": "runnel.compat.functions.settings:is_absent",
        "sdp_kernel": "runnel.compat.functions.settings:flags",
    },
    "backends.cuda.matmul": {
        "allow_bf16_reduced_precision_reduction": "runnel.compat.functions.settings:allow_bf16_reduced_precision_reduction",  # noqa: E501
        "allow_fp16_accumulation": "runnel.compat.functions.settings:allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction": "runnel.compat.functions.settings:allow_fp16_reduced_precision_reduction",  # noqa: E501
        "allow_tf32": "runnel.compat.functions.settings:allow_tf32",
        "fp32_precision": "runnel.compat.functions.settings:fp32_precision",
    },
    "backends.cudnn": {
        "allow_tf32": "runnel.compat.functions.settings:allow_tf32",
        "benchmark": "runnel.compat.functions.settings:benchmark",
        "benchmark_limit": "runnel.compat.functions.settings:benchmark_limit",
        "deterministic": "runnel.compat.functions.settings:deterministic",
        "enabled": "runnel.compat.functions.settings:enabled",
        "flags": "runnel.compat.functions.settings:flags",
        "fp32_precision": "runnel.compat.functions.settings:fp32_precision",
        "is_acceptable": "runnel.compat.functions.settings:is_absent",
        "is_available": "runnel.compat.functions.running:is_available",
        "version": "runnel.compat.functions.settings:version",
    },
    "backends.mkl": {
        "is_available": "runnel.compat.functions.settings:is_absent",
    },
    "backends.mkldnn": {
        "allow_tf32": "runnel.compat.functions.settings:allow_tf32",
        "deterministic": "runnel.compat.functions.settings:deterministic",
        "enabled": "runnel.compat.functions.settings:enabled",
        "flags": "runnel.compat.functions.settings:flags",
        "fp32_precision": "runnel.compat.functions.settings:fp32_precision",
        "is_available": "runnel.compat.functions.running:is_available",
    },
    "backends.mps": {
        "is_available": "runnel.compat.functions.running:is_available",
        "is_built": "runnel.compat.functions.running:is_available",
    },
    "backends.openmp": {
        "is_available": "runnel.compat.functions.settings:is_absent",
    },
    "backends.opt_einsum": {
        "enabled": "runnel.compat.functions.settings:enabled",
        "is_available": "runnel.compat.functions.settings:is_absent",
        "strategy": "runnel.compat.functions.settings:strategy",
    },
    "compiler": {
        "allow_in_graph": "runnel.compat.functions.running:without_compiler",
        "assume_constant_result": "runnel.compat.functions.running:without_compiler",
        "cudagraph_mark_step_begin": "runnel.compat.functions.running:without_compiler",
        "disable": "runnel.compat.functions.running:disable",
        "is_compiling": "runnel.compat.functions.running:is_compiling",
        "is_dynamo_compiling": "runnel.compat.functions.running:is_compiling",
        "is_exporting": "runnel.compat.functions.running:never_scripting",
        "list_backends": "runnel.compat.functions.running:without_compiler",
        "reset": "runnel.compat.functions.running:without_compiler",
        "set_stance": "runnel.compat.functions.running:without_compiler",
        "wrap_numpy": "runnel.compat.functions.running:without_compiler",
    },
    "cuda": {
        "OutOfMemoryError": "runnel.compat.functions.running:OutOfMemoryError",
        "device_count": "runnel.compat.functions.running:device_count",
        "empty_cache": "runnel.compat.functions.running:no_effect",
        "get_rng_state_all": "runnel.compat.functions.running:get_rng_state_all",
        "is_available": "runnel.compat.functions.running:is_available",
        "is_bf16_supported": "runnel.compat.functions.running:is_available",
        "is_initialized": "runnel.compat.functions.running:is_initialized",
        "manual_seed": "runnel.compat.functions.running:no_effect",
        "manual_seed_all": "runnel.compat.functions.running:no_effect",
        "max_memory_allocated": "runnel.compat.functions.running:bytes_of_gpu",
        "max_memory_reserved": "runnel.compat.functions.running:bytes_of_gpu",
        "memory_allocated": "runnel.compat.functions.running:bytes_of_gpu",
        "memory_reserved": "runnel.compat.functions.running:bytes_of_gpu",
        "reset_peak_memory_stats": "runnel.compat.functions.running:no_effect",
        "set_rng_state_all": "runnel.compat.functions.running:no_effect",
        "synchronize": "runnel.compat.functions.running:no_effect",
    },
    "cuda.amp": {
        "GradScaler": "runnel.compat.functions.running:GradScaler",
        "autocast": "runnel.compat.functions.running:autocast_on_gpu",
        "custom_bwd": "runnel.compat.functions.running:custom_autocast",
        "custom_fwd": "runnel.compat.functions.running:custom_autocast",
    },
    "distributed": {
        "is_available": "runnel.compat.functions.running:is_available",
        "is_initialized": "runnel.compat.functions.running:is_initialized",
    },
    "distributions.utils": {
        "broadcast_all": "runnel.compat.functions.drawing:broadcast_all",
        "clamp_probs": "runnel.compat.functions.drawing:clamp_probs",
        "lazy_property": "runnel.compat.functions.drawing:lazy_property",
        "logits_to_probs": "runnel.compat.functions.drawing:logits_to_probs",
        "probs_to_logits": "runnel.compat.functions.drawing:probs_to_logits",
    },
    "export": {},
    "func": {
        "functional_call": "runnel.nn.functional_calls:functional_call",
        "grad_and_value": "runnel.compat.functions.transforming:grad_and_value",
        "stack_module_state": "runnel.nn.functional_calls:stack_module_state",
        "vmap": "runnel.compat.functions.transforming:vmap",
    },
    "fx": {},
    "hub": {},
    "jit": {
        "Final": "runnel.compat.functions.running:Final",
        "ScriptFunction": "runnel.compat.functions.running:ScriptFunction",
        "ScriptModule": "runnel.compat.functions.running:ScriptModule",
        "annotate": "runnel.compat.functions.running:annotate",
        "export": "runnel.compat.functions.running:as_it_is",
        "fork": "runnel.compat.functions.running:fork",
        "freeze": "runnel.compat.functions.running:script",
        "ignore": "runnel.compat.functions.running:as_it_is",
        "interface": "runnel.compat.functions.running:as_it_is",
        "is_scripting": "runnel.compat.functions.running:never_scripting",
        "is_tracing": "runnel.compat.functions.running:never_scripting",
        "isinstance": "runnel.compat.functions.running:isinstance",
        "optimize_for_inference": "runnel.compat.functions.running:script",
        "script": "runnel.compat.functions.running:script",
        "script_if_tracing": "runnel.compat.functions.running:script",
        "script_method": "runnel.compat.functions.running:script",
        "trace": "runnel.compat.functions.running:script",
        "unused": "runnel.compat.functions.running:as_it_is",
        "wait": "runnel.compat.functions.running:wait",
    },
    "linalg": {
        "LinAlgError": "runnel.compat.functions.matrices:LinAlgError",
        "lstsq": "runnel.compat.functions.matrices:lstsq",
        "matrix_norm": "runnel.compat.functions.matrices:matrix_norm",
        "matrix_rank": "runnel.compat.functions.matrices:matrix_rank",
        "norm": "runnel.compat.functions.matrices:norm",
        "pinv": "runnel.compat.functions.matrices:pinv",
        "solve": "runnel.compat.functions.matrices:solve",
        "vector_norm": "runnel.compat.functions.matrices:vector_norm",
    },
    "mps": {
        "device_count": "runnel.compat.functions.running:device_count",
        "empty_cache": "runnel.compat.functions.running:no_effect",
        "is_available": "runnel.compat.functions.running:is_available",
        "manual_seed": "runnel.compat.functions.running:no_effect",
        "synchronize": "runnel.compat.functions.running:no_effect",
    },
    "nested": {},
    "nn": {
        "DataParallel": "runnel.compat.functions.running:DataParallel",
    },
    "nn.attention": {
        "SDPBackend": "runnel.compat.functions.settings:SDPBackend",
        "sdpa_kernel": "runnel.compat.functions.settings:sdpa_kernel",
    },
    "nn.modules.batchnorm": {
        "_BatchNorm": "runnel.compat.functions.inner_names:_BatchNorm",
    },
    "nn.modules.conv": {
        "_ConvNd": "runnel.compat.functions.inner_names:_ConvNd",
    },
    "nn.modules.loss": {
        "_Loss": "runnel.compat.functions.inner_names:_Loss",
        "_WeightedLoss": "runnel.compat.functions.inner_names:_WeightedLoss",
    },
    "nn.modules.utils": {
        "_pair": "runnel.compat.functions.inner_names:_pair",
        "_quadruple": "runnel.compat.functions.inner_names:_quadruple",
        "_single": "runnel.compat.functions.inner_names:_single",
        "_triple": "runnel.compat.functions.inner_names:_triple",
    },
    "nn.parallel": {
        "DataParallel": "runnel.compat.functions.running:DataParallel",
        "data_parallel": "runnel.compat.functions.running:data_parallel",
    },
    "nn.utils.stateless": {
        "functional_call": "runnel.nn.functional_calls:functional_call",
    },
    "onnx": {},
    "optim.lr_scheduler": {
        "_LRScheduler": "runnel.compat.functions.inner_names:_LRScheduler",
    },
    "optim.optimizer": {
        "required": "runnel.compat.functions.inner_names:required",
    },
    "profiler": {
        "ProfilerAction": "runnel.compat.functions.profiling:ProfilerAction",
        "ProfilerActivity": "runnel.compat.functions.profiling:ProfilerActivity",
        "profile": "runnel.compat.functions.profiling:profile",
        "record_function": "runnel.compat.functions.profiling:record_function",
        "schedule": "runnel.compat.functions.profiling:schedule",
        "tensorboard_trace_handler": "runnel.compat.functions.profiling:tensorboard_trace_handler",
    },
    "quantization": {},
    "random": {
        "fork_rng": "runnel.compat.functions.running:fork_rng",
        "initial_seed": "runnel.compat.functions.drawing:initial_seed",
        "manual_seed": "runnel.compat.functions.drawing:manual_seed",
    },
    "signal": {},
    "signal.windows": {
        "bartlett": "runnel.compat.functions.windows:bartlett",
        "blackman": "runnel.compat.functions.windows:blackman",
        "cosine": "runnel.compat.functions.windows:cosine",
        "exponential": "runnel.compat.functions.windows:exponential",
        "gaussian": "runnel.compat.functions.windows:gaussian",
        "general_cosine": "runnel.compat.functions.windows:general_cosine",
        "general_hamming": "runnel.compat.functions.windows:general_hamming",
        "hamming": "runnel.compat.functions.windows:hamming",
        "hann": "runnel.compat.functions.windows:hann",
        "kaiser": "runnel.compat.functions.windows:kaiser",
        "nuttall": "runnel.compat.functions.windows:nuttall",
    },
    "sparse": {},
    "testing": {
        "assert_allclose": "runnel.compat.functions.testing:assert_allclose",
        "assert_close": "runnel.compat.functions.testing:assert_close",
        "make_tensor": "runnel.compat.functions.testing:make_tensor",
    },
    "types": {
        "Device": "runnel.compat.functions.inner_names:Device",
        "Number": "runnel.compat.functions.inner_names:Number",
    },
    "utils": {},
    "utils.checkpoint": {
        "checkpoint": "runnel.compat.functions.running:checkpoint",
        "checkpoint_sequential": "runnel.compat.functions.running:checkpoint_sequential",
    },
    "utils.dlpack": {
        "to_dlpack": "runnel.compat.functions.inner_names:to_dlpack",
    },
    "utils.hooks": {
        "RemovableHandle": "runnel.compat.functions.inner_names:RemovableHandle",
    },
    "utils.tensorboard": {
        "SummaryWriter": "runnel.compat.functions.event_writer:SummaryWriter",
    },
    "version": {
        "__version__": "runnel.compat.functions.settings:__version__",
        "cuda": "runnel.compat.functions.settings:cuda",
        "debug": "runnel.compat.functions.settings:debug",
        "git_version": "runnel.compat.functions.settings:git_version",
        "hip": "runnel.compat.functions.settings:hip",
        "xpu": "runnel.compat.functions.settings:xpu",
    },
    "xpu": {
        "device_count": "runnel.compat.functions.running:device_count",
        "empty_cache": "runnel.compat.functions.running:no_effect",
        "is_available": "runnel.compat.functions.running:is_available",
        "manual_seed": "runnel.compat.functions.running:no_effect",
        "manual_seed_all": "runnel.compat.functions.running:no_effect",
        "synchronize": "runnel.compat.functions.running:no_effect",
    },
}
