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
        "config": "runnel.compat.functions.scripting:config",
        "disable": "runnel.compat.functions.scripting:disable",
        "graph_break": "runnel.compat.functions.scripting:without_compiler",
        "is_compiling": "runnel.compat.functions.scripting:is_compiling",
        "mark_dynamic": "runnel.compat.functions.scripting:without_compiler",
        "mark_static": "runnel.compat.functions.scripting:without_compiler",
        "reset": "runnel.compat.functions.scripting:without_compiler",
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
        "dual_level": "runnel.compat.functions.forward_mode:dual_level",
        "make_dual": "runnel.compat.functions.forward_mode:make_dual",
        "unpack_dual": "runnel.compat.functions.forward_mode:unpack_dual",
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
        "fp32_precision": "runnel.compat.functions.backends:fp32_precision",
    },
    "backends.cpu": {
        "get_cpu_capability": "runnel.compat.functions.backends:get_cpu_capability",
    },
    "backends.cuda": {
        "cudnn_sdp_enabled": "runnel.compat.functions.backends:is_absent",
        "enable_cudnn_sdp": "runnel.compat.functions.running:no_effect",
        "enable_flash_sdp": "runnel.compat.functions.running:no_effect",
        "enable_math_sdp": "runnel.compat.functions.running:no_effect",
        "enable_mem_efficient_sdp": "runnel.compat.functions.running:no_effect",
        "flash_sdp_enabled": "runnel.compat.functions.backends:is_absent",
        "is_built": "runnel.compat.functions.running:is_available",
        "math_sdp_enabled": "runnel.compat.functions.backends:is_present",
        "mem_efficient_sdp_enabled": "runnel.compat.functions.backends:is_absent",
        "sdp_kernel": "runnel.compat.functions.backends:flags",
    },
    "backends.cuda.matmul": {
        "allow_bf16_reduced_precision_reduction": "runnel.compat.functions.backends:allow_bf16_reduced_precision_reduction",  # noqa: E501
        "allow_fp16_accumulation": "runnel.compat.functions.backends:allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction": "runnel.compat.functions.backends:allow_fp16_reduced_precision_reduction",  # noqa: E501
        "allow_tf32": "runnel.compat.functions.backends:allow_tf32",
        "fp32_precision": "runnel.compat.functions.backends:fp32_precision",
    },
    "backends.cudnn": {
        "allow_tf32": "runnel.compat.functions.backends:allow_tf32",
        "benchmark": "runnel.compat.functions.backends:benchmark",
        "benchmark_limit": "runnel.compat.functions.backends:benchmark_limit",
        "deterministic": "runnel.compat.functions.backends:deterministic",
        "enabled": "runnel.compat.functions.backends:enabled",
        "flags": "runnel.compat.functions.backends:flags",
        "fp32_precision": "runnel.compat.functions.backends:fp32_precision",
        "is_acceptable": "runnel.compat.functions.backends:is_absent",
        "is_available": "runnel.compat.functions.running:is_available",
        "version": "runnel.compat.functions.backends:version",
    },
    "backends.mkl": {
        "is_available": "runnel.compat.functions.backends:is_absent",
    },
    "backends.mkldnn": {
        "allow_tf32": "runnel.compat.functions.backends:allow_tf32",
        "deterministic": "runnel.compat.functions.backends:deterministic",
        "enabled": "runnel.compat.functions.backends:enabled",
        "flags": "runnel.compat.functions.backends:flags",
        "fp32_precision": "runnel.compat.functions.backends:fp32_precision",
        "is_available": "runnel.compat.functions.running:is_available",
    },
    "backends.mps": {
        "is_available": "runnel.compat.functions.running:is_available",
        "is_built": "runnel.compat.functions.running:is_available",
    },
    "backends.openmp": {
        "is_available": "runnel.compat.functions.backends:is_absent",
    },
    "backends.opt_einsum": {
        "enabled": "runnel.compat.functions.backends:enabled",
        "is_available": "runnel.compat.functions.backends:is_absent",
        "strategy": "runnel.compat.functions.backends:strategy",
    },
    "compiler": {
        "allow_in_graph": "runnel.compat.functions.scripting:without_compiler",
        "assume_constant_result": "runnel.compat.functions.scripting:without_compiler",
        "cudagraph_mark_step_begin": "runnel.compat.functions.scripting:without_compiler",
        "disable": "runnel.compat.functions.scripting:disable",
        "is_compiling": "runnel.compat.functions.scripting:is_compiling",
        "is_dynamo_compiling": "runnel.compat.functions.scripting:is_compiling",
        "is_exporting": "runnel.compat.functions.scripting:never_scripting",
        "list_backends": "runnel.compat.functions.scripting:without_compiler",
        "reset": "runnel.compat.functions.scripting:without_compiler",
        "set_stance": "runnel.compat.functions.scripting:without_compiler",
        "wrap_numpy": "runnel.compat.functions.scripting:without_compiler",
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
        "broadcast_all": "runnel.compat.functions.distribution_tools:broadcast_all",
        "clamp_probs": "runnel.compat.functions.distribution_tools:clamp_probs",
        "lazy_property": "runnel.compat.functions.distribution_tools:lazy_property",
        "logits_to_probs": "runnel.compat.functions.distribution_tools:logits_to_probs",
        "probs_to_logits": "runnel.compat.functions.distribution_tools:probs_to_logits",
    },
    "export": {},
    "func": {
        "functional_call": "runnel.nn.rare.functional_calls:functional_call",
        "grad_and_value": "runnel.compat.functions.transforming:grad_and_value",
        "stack_module_state": "runnel.nn.rare.functional_calls:stack_module_state",
        "vmap": "runnel.compat.functions.transforming:vmap",
    },
    "fx": {},
    "hub": {},
    "jit": {
        "Final": "runnel.compat.functions.scripting:Final",
        "ScriptFunction": "runnel.compat.functions.scripting:ScriptFunction",
        "ScriptModule": "runnel.compat.functions.scripting:ScriptModule",
        "annotate": "runnel.compat.functions.scripting:annotate",
        "export": "runnel.compat.functions.scripting:as_it_is",
        "fork": "runnel.compat.functions.scripting:fork",
        "freeze": "runnel.compat.functions.scripting:script",
        "ignore": "runnel.compat.functions.scripting:as_it_is",
        "interface": "runnel.compat.functions.scripting:as_it_is",
        "is_scripting": "runnel.compat.functions.scripting:never_scripting",
        "is_tracing": "runnel.compat.functions.scripting:never_scripting",
        "isinstance": "runnel.compat.functions.scripting:isinstance",
        "optimize_for_inference": "runnel.compat.functions.scripting:script",
        "script": "runnel.compat.functions.scripting:script",
        "script_if_tracing": "runnel.compat.functions.scripting:script",
        "script_method": "runnel.compat.functions.scripting:script",
        "trace": "runnel.compat.functions.scripting:script",
        "unused": "runnel.compat.functions.scripting:as_it_is",
        "wait": "runnel.compat.functions.scripting:wait",
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
        "DataParallel": "runnel.compat.functions.parallel:DataParallel",
    },
    "nn.attention": {
        "SDPBackend": "runnel.compat.functions.backends:SDPBackend",
        "sdpa_kernel": "runnel.compat.functions.backends:sdpa_kernel",
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
        "DataParallel": "runnel.compat.functions.parallel:DataParallel",
        "data_parallel": "runnel.compat.functions.parallel:data_parallel",
    },
    "nn.utils.stateless": {
        "functional_call": "runnel.nn.rare.functional_calls:functional_call",
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
        "assert_allclose": "runnel.compat.functions.making:assert_allclose",
        "assert_close": "runnel.compat.functions.closeness:assert_close",
        "make_tensor": "runnel.compat.functions.making:make_tensor",
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
        "__version__": "runnel.compat.functions.backends:__version__",
        "cuda": "runnel.compat.functions.backends:cuda",
        "debug": "runnel.compat.functions.backends:debug",
        "git_version": "runnel.compat.functions.backends:git_version",
        "hip": "runnel.compat.functions.backends:hip",
        "xpu": "runnel.compat.functions.backends:xpu",
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
