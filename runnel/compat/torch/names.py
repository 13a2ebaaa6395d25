"""The names of ``runnel.compat.torch`` and of its modules, which are data.

``FORWARDS`` lists the modules of Runnel whose names each module of PyTorch has. All other names are in a table with
rows ``path module: name name ...`` (``name=function`` if the module calls it otherwise). ``torch`` is torch itself.
"""

from runnel.compat.torch.refusals import OPEN_SENTENCES, SENTENCES

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
    "_tensor": "runnel.compat.torch",
    "amp.autocast_mode": "runnel.compat.torch.amp",
    "amp.grad_scaler": "runnel.compat.torch.amp",
    "autograd": "runnel.autograd runnel",
    "autograd.anomaly_mode": "runnel.autograd",
    "autograd.function": "runnel.autograd",
    "autograd.grad_mode": "runnel",
    "autograd.gradcheck": "runnel.autograd",
    "autograd.variable": "runnel.compat.torch.autograd",
    "cuda.memory": "runnel.compat.torch.cuda",
    "cuda.random": "runnel.compat.torch.cuda",
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
    "nn.utils.clip_grad": "runnel.nn.utils",
    "nn.utils.convert_parameters": "runnel.nn.utils",
    "nn.utils.parametrizations": "runnel.nn.utils.parametrizations",
    "nn.utils.parametrize": "runnel.nn.utils.parametrize",
    "nn.utils.prune": "runnel.nn.utils.prune",
    "nn.utils.rnn": "runnel.nn.utils.rnn",
    "optim": "runnel.compat.functions.optim runnel.optim",
    "optim.lr_scheduler": "runnel.optim.lr_scheduler",
    "optim.swa_utils": "runnel.optim.swa_utils",
    "profiler.profiler": "runnel.compat.torch.profiler",
    "random": "runnel",
    "special": "runnel.special",
    "utils._pytree": "runnel.tree_util",
    "utils.data": "runnel.data",
    "utils.data._utils.collate": "runnel.data",
    "utils.data._utils.worker": "runnel.data",
    "utils.dlpack": "runnel",
    **{f"distributions.{part}": "runnel.distributions" for part in DISTRIBUTIONS.split()},
    **{f"nn.modules.{part}": "runnel.nn" for part in MODULES.split()},
    **{f"optim.{part}": "runnel.compat.functions.optim runnel.optim" for part in OPTIM.split()},
    **{f"utils.data.{part}": "runnel.data" for part in DATA.split()},
    # modules without names, whose errors say what to write instead
    **dict.fromkeys(["signal", "utils"], ""),
}

PLACES = """
torch runnel.compat.functions.amp: GradScaler autocast get_autocast_cpu_dtype=get_autocast_dtype get_autocast_dtype
    is_anomaly_check_nan_enabled=is_anomaly_enabled is_anomaly_enabled is_autocast_cpu_enabled is_autocast_enabled
torch runnel.compat.functions.amp: get_autocast_gpu_dtype
torch runnel.compat.functions.autograd: vmap
torch runnel.compat.functions.checks: _assert _check _check_index _check_is_size _check_not_implemented
    _check_tensor_all _check_tensor_all_with _check_type _check_value _check_with
torch runnel.compat.functions.compiler: fork wait=as_given
torch runnel.compat.functions.settings: compiled_with_cxx11_abi=always has_lapack=enabled has_mkl=benchmark
    has_openmp=benchmark
torch runnel.compat.functions.compiler: compile=compile_ cond while_loop
torch runnel.compat.functions.creation: arange as_tensor empty empty_like empty_permuted empty_strided eye frombuffer
    full full_like get_default_dtype linspace logspace ones ones_like range scalar_tensor set_default_dtype tensor zeros
    zeros_like
torch runnel.compat.functions.factorizations: qr svd triangular_solve
torch runnel.compat.functions.foreach: _foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add
    _foreach_add_ _foreach_addcdiv _foreach_addcdiv_ _foreach_addcmul _foreach_addcmul_ _foreach_asin _foreach_asin_
    _foreach_atan _foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_
    _foreach_clamp_min _foreach_clamp_min_ _foreach_copy_ _foreach_cos _foreach_cos_ _foreach_cosh _foreach_cosh_
    _foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_ _foreach_exp _foreach_exp_
    _foreach_expm1 _foreach_expm1_ _foreach_floor _foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp
    _foreach_lerp_ _foreach_lgamma _foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_ _foreach_log1p
    _foreach_log1p_ _foreach_log2 _foreach_log2_ _foreach_log_ _foreach_maximum _foreach_maximum_ _foreach_minimum
    _foreach_minimum_ _foreach_mul _foreach_mul_ _foreach_neg _foreach_neg_ _foreach_norm _foreach_pow _foreach_pow_
    _foreach_reciprocal _foreach_reciprocal_ _foreach_round _foreach_round_ _foreach_rsqrt _foreach_rsqrt_
    _foreach_sigmoid _foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh
    _foreach_sinh_ _foreach_sqrt _foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh
    _foreach_tanh_ _foreach_trunc _foreach_trunc_ _foreach_zero_
torch runnel.compat.functions.linalg: chain_matmul lobpcg pca_lowrank svd_lowrank
torch runnel.compat.functions.nn_functional: affine_grid_generator alpha_dropout_ batch_norm constant_pad_nd convolution
    dropout_ embedding embedding_renorm_ feature_alpha_dropout_ feature_dropout feature_dropout_ fill
    _grouped_mm=grouped_mm grid_sampler
    grid_sampler_2d=grid_sampler grid_sampler_3d=grid_sampler instance_norm native_batch_norm native_dropout
    native_group_norm native_layer_norm norm_except_dim
torch runnel.compat.functions.random: bernoulli initial_seed manual_seed normal rand rand_like randint randint_like
    randn randn_like randperm
torch runnel.compat.functions.recurrent: gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
torch runnel.compat.functions.serialization: load save
torch runnel.compat.functions.settings: OutOfMemoryError __version__ are_deterministic_algorithms_enabled
    clear_autocast_cache=without_effect cudnn_is_acceptable=never from_file get_default_device
    get_deterministic_debug_mode get_device get_float32_matmul_precision get_num_interop_threads
    init_num_threads=without_effect is_autocast_cache_enabled=never is_autocast_ipu_enabled=never
    is_autocast_xla_enabled=never is_deterministic_algorithms_warn_only_enabled=never is_distributed=never
    is_inference_mode_enabled=never is_storage=never is_vulkan_available=never is_warn_always_enabled=never
    set_anomaly_enabled set_default_tensor_type set_deterministic_debug_mode=without_effect set_float32_matmul_precision
    set_flush_denormal set_num_interop_threads=without_effect set_printoptions set_warn_always=without_effect sym_float
    sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum to_dlpack typename use_deterministic_algorithms
torch runnel.compat.functions.slopes: gradient
torch runnel.compat.functions.sparse: sparse_coo sparse_coo_tensor sparse_csr sparse_csr_tensor spmm
torch runnel.compat.functions.tensors: add div divide=div floor_divide mul multiply=mul sub subtract=sub true_divide=div
torch runnel.compat.functions.tensors: abs_ acos_ acosh_ addmv_ alias_copy arccos_ arccosh_ arcsin_ arcsinh_ arctan_
    arctanh_ as_strided_ asin_ asinh_ atan_ atanh_ cat cdist ceil_ clamp_ clamp_max_ clamp_min_ clip_ clone concat=cat
    concatenate=cat conj_physical_ cos_ cosh_ cross cumprod cumsum deg2rad_ detach detach_ detach_copy=alias_copy
    diagonal_copy erf_ erfc_ exp2_ exp_ expand_copy expm1_ fill_ fix_ floor_ frac_ frobenius_norm from_numpy gcd_ i0_
    index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ meshgrid nan_to_num_ narrow_copy neg_ negative_ nuclear_norm
    permute_copy prod rad2deg_ reciprocal_ repeat_interleave resize_as_ round_ rsqrt_ select_copy sigmoid_ sin_ sinc_
    sinh_ slice_copy split_copy split_with_sizes_copy sqrt_ square_ squeeze_copy sum t_copy tan_ tanh_ transpose_copy
    tril_indices triu_indices trunc_ unbind_copy unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes
    unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy where xlogy_ zero_
torch runnel.compat.functions.small_floats: finfo float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
    float8_e8m0fnu
torch runnel.compat.functions.types: BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor
    IntTensor LongTensor ShortTensor Size Tensor channels_last channels_last_3d contiguous_format device dtype layout
    legacy_contiguous_format memory_format preserve_format strided
torch runnel.compat.installation: install
torch runnel.compat.functions.windows: bartlett_window blackman_window hamming_window hann_window kaiser_window
torch runnel.core.dtype_info: cdouble cfloat double float half int long promote_types=result_type short
torch runnel.fft.short_time: istft stft
torch runnel.linalg.elimination: lu_solve=lu_solution lu_unpack
torch runnel.linalg.reflections: geqrf orgqr=householder_product ormqr
torch runnel.linalg.unchecked: lu=packed_lu
torch runnel.ops.elementwise.arithmetic: absolute=abs fix=trunc neg=negative
torch runnel.ops.elementwise.by_numpy: frexp gcd lcm
torch runnel.ops.elementwise.circular: arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan2=atan2 arctan=atan
    arctanh=atanh
torch runnel.ops.elementwise.comparison: bitwise_not=bitwise_invert eq=equal ge=greater_equal gt=greater le=less_equal
    lt=less ne=not_equal
torch runnel.ops.elementwise.gamma: digamma erfc erfinv lgamma mvlgamma polygamma
torch runnel.ops.elementwise.numbers: angle conj_physical deg2rad exp2 float_power fmax fmin fmod frac heaviside
    isneginf isposinf isreal ldexp logaddexp2 logit polar rad2deg resolve_conj=resolved resolve_neg=resolved rsub sgn
    sinc view_as_complex view_as_real xlogy
torch runnel.tensor.reshaping: as_strided as_strided_copy=as_strided
torch runnel.ops.indexing.positions: as_strided_scatter put=put_flat
    take_along_dim unravel_index
torch runnel.ops.indexing.scattering: index_reduce masked_scatter scatter_reduce segment_reduce select select_scatter
    slice_scatter
torch runnel.ops.indexing.updates: addcdiv addcmul clamp_max clamp_min index_copy index_fill index_put
torch runnel.ops.linear_algebra.contraction: ger=outer
torch runnel.ops.linear_algebra.matrices: cholesky cholesky_inverse cholesky_solve det inverse=inv logdet matrix_exp
    matrix_power pinverse=pinv slogdet
torch runnel.ops.linear_algebra.products: addbmm addmm addmv addr baddbmm corrcoef cov dist inner nanmean nansum vdot
torch runnel.ops.precision: mm=matmul mv=matmul
torch runnel.ops.reductions.cumulative: cummax cummin cumulative_trapezoid logcumsumexp trapezoid trapz=trapezoid
torch runnel.ops.reductions.primitives: amax=max amin=min
torch runnel.ops.reductions.statistics: renorm
torch runnel.ops.shapes.broadcasting: broadcast_tensors=broadcast_arrays
torch runnel.ops.shapes.diagonals: diag_embed diagflat diagonal_scatter vander
torch runnel.ops.shapes.joining: atleast_2d atleast_3d block_diag cartesian_prod column_stack combinations dsplit dstack
    fliplr flipud hsplit rot90 row_stack=vstack tensor_split unbind=unstack unflatten vsplit
torch runnel.ops.shapes.pieces: narrow split_with_sizes=split
torch runnel.ops.shapes.views: movedim=moveaxis swapdims=transpose
torch runnel.ops.sorting.histograms: histc histogram histogramdd
torch runnel.ops.sorting.order: aminmax bucketize kthvalue mode msort nanmedian nanquantile
torch runnel.ops.sorting.sets: argwhere masked_select nonzero_static unique_consecutive
torch runnel.random.counts: binomial poisson
torch runnel.random.incomplete_gamma: igamma=gammainc igammac=gammaincc
torch runnel.special.bessel: i0
torch runnel.tensor.queries: adjoint is_complex is_conj=is_marked is_floating_point is_inference=is_marked
    is_neg=is_marked is_nonzero is_same_size is_signed is_tensor numel t
torch runnel.tensor.random: seed
torch runnel.tensor.torch_methods: equal nonzero squeeze
torch runnel.tensor.torch_reductions: max min norm sort std std_mean var var_mean
__config__ runnel.compat.functions.settings: parallel_info show
_C runnel.compat.functions.settings: _jit_override_can_fuse_on_cpu=without_effect
    _jit_override_can_fuse_on_gpu=without_effect _jit_set_profiling_executor=without_effect
    _jit_set_profiling_mode=without_effect _jit_set_texpr_fuser_enabled=without_effect
    _log_api_usage_once=without_effect
_dynamo runnel.nn.compiled: OptimizedModule=CompiledModule
_dynamo.config runnel.compat.functions.settings: accumulated_cache_size_limit=cache_size_limit
    automatic_dynamic_shapes=enabled cache_size_limit capture_dynamic_output_shape_ops=benchmark
    capture_scalar_outputs=benchmark optimize_ddp=enabled recompile_limit=cache_size_limit suppress_errors=benchmark
    verbose=benchmark
_dynamo.eval_frame runnel.nn.compiled: OptimizedModule=CompiledModule
_inductor.config runnel.compat.functions.settings: coordinate_descent_tuning=benchmark cpp=options
    epilogue_fusion=enabled freezing=benchmark fx_graph_cache=enabled max_autotune=benchmark triton=options
_jit_internal runnel.compat.functions.compiler: Final _copy_to_script_wrapper=as_given _overload=as_given
    _overload_method=as_given boolean_dispatch export=decorator ignore=decorator unused=decorator
_jit_internal runnel.compat.functions.settings: is_scripting=never
_jit_internal typing: Any Dict List Optional Tuple Union
_dynamo runnel.compat.functions.compiler: disable graph_break=as_given is_compiling mark_dynamic=as_given
    mark_static=as_given reset=as_given
accelerator runnel.compat.functions.settings: max_memory_allocated=bytes_of_gpu max_memory_reserved=bytes_of_gpu
    memory_allocated=bytes_of_gpu memory_reserved=bytes_of_gpu memory_stats reset_peak_memory_stats
_dynamo runnel.compat.functions.compiler: allow_in_graph=as_given assume_constant_result=as_given
    mark_static_address=as_given
_C runnel.compat.functions.settings: _disabled_torch_function_impl
_dynamo._trace_wrapped_higher_order_op runnel.compat.functions.settings: TransformGetItemToIndex=unchanged
_subclasses.fake_tensor runnel.compat.functions.settings: is_fake=never
accelerator runnel.compat.functions.settings: current_accelerator device_count empty_cache is_available synchronize
amp runnel.compat.functions.amp: GradScaler autocast is_autocast_available
amp runnel.compat.functions.compiler: custom_bwd=decorator custom_fwd=decorator
autograd runnel.autograd: gradcheck
autograd runnel.compat.functions.types: Variable=variable
autograd.forward_ad runnel.compat.functions.autograd: dual_level make_dual unpack_dual
autograd.functional runnel.compat.functions.autograd: hessian hvp jacobian jvp vhp vjp
autograd.graph runnel.compat.functions.settings: save_on_cpu=unchanged
autograd.profiler runnel.compat.functions.profiler: profile record_function
backends runnel.compat.functions.settings: fp32_precision
backends.cpu runnel.compat.functions.settings: get_cpu_capability
backends.cuda runnel.compat.functions.settings: allow_fp16_bf16_reduction_math_sdp=without_effect
    can_use_cudnn_attention=never can_use_efficient_attention=never can_use_flash_attention=never
    fp16_bf16_reduction_math_sdp_allowed=never is_flash_attention_available=never preferred_blas_library=without_effect
    preferred_linalg_library=without_effect
backends.nnpack runnel.compat.functions.settings: flags=unchanged is_available set_flags=without_effect
backends.quantized runnel.compat.functions.settings: engine supported_engines
backends.xnnpack runnel.compat.functions.settings: enabled=benchmark
backends.cuda runnel.compat.functions.settings: cudnn_sdp_enabled=never enable_cudnn_sdp enable_flash_sdp
    enable_math_sdp enable_mem_efficient_sdp flash_sdp_enabled=never is_built math_sdp_enabled
    mem_efficient_sdp_enabled=never sdp_kernel=unchanged
backends.cuda.matmul runnel.compat.functions.settings: allow_bf16_reduced_precision_reduction allow_fp16_accumulation
    allow_fp16_reduced_precision_reduction allow_tf32 fp32_precision
backends.cudnn runnel.compat.functions.settings: allow_tf32 benchmark benchmark_limit deterministic enabled
    flags=unchanged fp32_precision is_acceptable=never is_available version
backends.mkl runnel.compat.functions.settings: is_available
backends.mkldnn runnel.compat.functions.settings: allow_tf32 deterministic enabled flags=unchanged fp32_precision
    is_available
backends.mps runnel.compat.functions.settings: is_available is_built
backends.openmp runnel.compat.functions.settings: is_available
backends.opt_einsum runnel.compat.functions.settings: enabled is_available strategy
compiler runnel.compat.functions.compiler: allow_in_graph=as_given assume_constant_result=as_given
    cudagraph_mark_step_begin=as_given disable is_compiling is_dynamo_compiling=is_compiling list_backends=as_given
    reset=as_given set_stance=as_given wrap_numpy=as_given
compiler runnel.compat.functions.settings: is_exporting=never
cuda runnel.compat.functions.settings: OutOfMemoryError device_count empty_cache get_rng_state_all is_available
    is_bf16_supported is_initialized manual_seed manual_seed_all max_memory_allocated=bytes_of_gpu
    max_memory_reserved=bytes_of_gpu memory_allocated=bytes_of_gpu memory_reserved=bytes_of_gpu reset_peak_memory_stats
    set_rng_state_all synchronize
cuda runnel.compat.functions.settings: _initialized default_generators
cuda runnel.compat.functions.settings: get_arch_list is_current_stream_capturing=never is_tf32_supported=never
    max_memory_cached=bytes_of_gpu memory_cached=bytes_of_gpu memory_stats
cpu runnel.compat.functions.settings: device_count=one is_available=always is_initialized=always synchronize
cpu.amp runnel.compat.functions.amp: GradScaler autocast=autocast_on_cpu
cpu.amp.autocast_mode runnel.compat.functions.amp: autocast=autocast_on_cpu
cuda.amp.autocast_mode runnel.compat.functions.compiler: custom_bwd=decorator custom_fwd=decorator
cuda runnel.compat.functions.settings: caching_allocator_disabled=always has_half=never has_magma=never
    reset_accumulated_host_memory_stats=without_effect reset_peak_host_memory_stats=without_effect
    set_sync_debug_mode=without_effect
cuda.amp runnel.compat.functions.amp: GradScaler autocast=autocast_on_gpu
cuda.amp.autocast_mode runnel.compat.functions.amp: autocast=autocast_on_gpu
cuda.amp.grad_scaler runnel.compat.functions.amp: GradScaler
cuda.amp runnel.compat.functions.compiler: custom_bwd=decorator custom_fwd=decorator
distributed builtins: DistBackendError=RuntimeError DistError=RuntimeError DistNetworkError=RuntimeError
    DistStoreError=RuntimeError QueueEmptyError=RuntimeError
distributed.fsdp runnel.compat.functions.distributed: FullOptimStateDictConfig=StateDictConfig
    FullStateDictConfig=StateDictConfig LocalOptimStateDictConfig=StateDictConfig LocalStateDictConfig=StateDictConfig
    OptimStateDictConfig=StateDictConfig ShardedOptimStateDictConfig=StateDictConfig
    ShardedStateDictConfig=StateDictConfig StateDictConfig
distributed.fsdp.fully_sharded_data_parallel runnel.compat.functions.distributed:
    FullOptimStateDictConfig=StateDictConfig FullStateDictConfig=StateDictConfig ShardedStateDictConfig=StateDictConfig
distributed runnel.compat.functions.distributed: Backend GroupMember ProcessGroup ReduceOp Work all_gather
    all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier broadcast
    broadcast_object_list default_pg_timeout destroy_process_group gather gather_object get_backend get_global_rank
    get_group_rank get_node_local_rank get_process_group_ranks get_rank get_world_size group init_process_group
    is_initialized monitored_barrier new_group reduce reduce_op=ReduceOp reduce_scatter reduce_scatter_tensor scatter
    scatter_object_list
distributed runnel.compat.functions.settings: get_default_backend_for_device=host_backend
distributed runnel.compat.functions.settings: is_available=always is_backend_available=always is_gloo_available=always
    is_mpi_available=never is_nccl_available=never is_torchelastic_launched=never is_ucc_available=never
    is_xccl_available=never
distributed.algorithms._checkpoint.checkpoint_wrapper runnel.compat.functions.compiler: CheckpointImpl
    apply_activation_checkpointing checkpoint_wrapper=as_given offload_wrapper=as_given
distributed.constants runnel.compat.functions.distributed: default_pg_timeout
distributed.distributed_c10d runnel.compat.functions.distributed: Backend GroupMember ProcessGroup ReduceOp Work
    default_pg_timeout get_rank get_world_size group is_initialized _get_default_group=_default
distributed.elastic.multiprocessing.errors runnel.compat.functions.compiler: record=as_given
distributed.fsdp runnel.compat.functions.compiler: fully_shard=as_given register_fsdp_forward_method=as_given
distributed.fsdp runnel.compat.functions.distributed: BackwardPrefetch CPUOffload FullyShardedDataParallel
    ShardingStrategy StateDictType
distributed._composable.fsdp runnel.compat.functions.compiler: fully_shard=as_given
distributed.fsdp.fully_sharded_data_parallel runnel.compat.functions.distributed: BackwardPrefetch CPUOffload
    FullyShardedDataParallel ShardingStrategy StateDictType
distributed.fsdp.wrap runnel.compat.functions.distributed: ModuleWrapPolicy always_wrap_policy lambda_auto_wrap_policy
    size_based_auto_wrap_policy transformer_auto_wrap_policy
distributed.nn runnel.compat.functions.distributed: ReduceOp all_gather=gathered all_reduce=returned broadcast=returned
    reduce=returned
distributed.nn.functional runnel.compat.functions.distributed: ReduceOp all_gather=gathered all_reduce=returned
    broadcast=returned reduce=returned
distributed.tensor runnel.compat.functions.placements: Partial Placement Replicate Shard
distributed.tensor.placement_types runnel.compat.functions.placements: Partial Placement Replicate Shard
distributed._tensor runnel.compat.functions.placements: Partial Placement Replicate Shard
distributions.utils runnel.compat.functions.random: _standard_normal broadcast_all clamp_probs lazy_property
    logits_to_probs    probs_to_logits
func runnel.compat.functions.autograd: grad_and_value vmap
fx.experimental.symbolic_shapes runnel.compat.functions.compiler: guard_or_false=as_bool guard_or_true=as_bool
    guard_size_oblivious=as_bool statically_known_true=as_bool
fx runnel.compat.functions.compiler: has_side_effect=as_given wrap=as_given
hub runnel.compat.functions.settings: HASH_REGEX _get_torch_home=home get_dir set_dir=without_effect
hub urllib.parse: urlparse
func runnel.nn.functional_calls: functional_call stack_module_state
jit runnel.compat.functions.compiler: Final ScriptFunction ScriptModule annotate export=decorator fork freeze=as_given
    ignore=decorator interface=decorator isinstance optimize_for_inference=as_given script=as_given
    script_if_tracing=as_given script_method=as_given trace=as_given unused=decorator wait=as_given
jit runnel.compat.functions.compiler: _overload=as_given _overload_method=as_given
jit runnel.compat.functions.settings: enable_onednn_fusion=without_effect is_scripting=never is_tracing=never
    onednn_fusion_enabled=never set_fusion_strategy=without_effect strict_fusion=unchanged
jit builtins: Error=RuntimeError ScriptWarning=Warning TracerWarning=Warning
jit runnel.compat.functions.compiler: RecursiveScriptModule=ScriptModule TopLevelTracedModule=ScriptModule
    TracedModule=ScriptModule
jit._script runnel.compat.functions.compiler: ScriptModule script=as_given
jit.annotations typing: Any Dict List Optional Tuple Union
jit.annotations runnel.compat.functions.compiler: BroadcastingList2=Final BroadcastingList3=Final
library runnel.compat.functions.operators: custom_op register_autograd register_fake
linalg runnel.compat.functions.linalg: LinAlgError lstsq matrix_norm matrix_rank norm pinv solve vector_norm
mps runnel.compat.functions.settings: device_count empty_cache is_available manual_seed synchronize
nn runnel.compat.functions.distributed: DataParallel
nn.attention runnel.compat.functions.settings: SDPBackend sdpa_kernel=unchanged
nn.functional runnel.compat.functions.nn_functional: grouped_mm
nn.init runnel.nn.init: _calculate_correct_fan=fan _calculate_fan_in_and_fan_out=fans _no_grad_fill_=constant_
    _no_grad_normal_=normal_ _no_grad_trunc_normal_=trunc_normal_ _no_grad_uniform_=uniform_ _no_grad_zero_=zeros_
nn.modules.batchnorm runnel.compat.functions.types: _BatchNorm
nn.modules.conv runnel.compat.functions.types: _ConvNd
nn.modules.instancenorm runnel.nn.normalization: _InstanceNorm
nn.modules.loss runnel.compat.functions.types: _Loss _WeightedLoss
nn.common_types typing: _ratio_2_t=Any _ratio_any_t=Any _size_1_t=Any _size_2_opt_t=Any _size_2_t=Any _size_3_t=Any
    _size_any_opt_t=Any _size_any_t=Any
nn.modules.module runnel.compat.functions.types: RemovableHandle
nn.modules.module runnel.tensor.state: _IncompatibleKeys=LoadReport
nn.parameter runnel.compat.functions.types: is_lazy
nn.modules.utils runnel.compat.functions.types: _ntuple=_tuples_of _pair _quadruple _single _triple
nn.parallel runnel.compat.functions.distributed: DataParallel DistributedDataParallel data_parallel
nn.parallel.distributed runnel.compat.functions.distributed: DistributedDataParallel
multiprocessing builtins: ProcessExitedException=RuntimeError ProcessRaisedException=RuntimeError
multiprocessing runnel.compat.functions.distributed: spawn start_processes=spawn
multiprocessing runnel.compat.functions.processes: Pool Process get_context
multiprocessing runnel.compat.functions.settings: set_sharing_strategy=without_effect
nn.utils.fusion runnel.compat.functions.fusion: fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval
    fuse_linear_bn_weights
nn.utils.stateless runnel.nn.functional_calls: functional_call
onnx runnel.compat.functions.settings: OperatorExportTypes TrainingMode is_in_onnx_export=never
optim.lr_scheduler runnel.compat.functions.types: _LRScheduler
optim.optimizer runnel.compat.functions.types: required
optim.optimizer typing: ParamsT=Any params_t=Any
overrides runnel.core.overrides: has_torch_function=has_protocol
overrides runnel.tensor.queries: is_tensor_like=is_tensor
profiler runnel.compat.functions.profiler: ProfilerAction ProfilerActivity profile record_function schedule
    tensorboard_trace_handler
random runnel.compat.functions.random: fork_rng initial_seed manual_seed
serialization runnel.compat.functions.serialization: DEFAULT_PROTOCOL add_safe_globals clear_safe_globals
    get_safe_globals load safe_globals save
signal.windows runnel.compat.functions.windows: bartlett blackman cosine exponential gaussian general_cosine
    general_hamming hamming hann kaiser nuttall
sparse runnel.compat.functions.sparse: DoubleTensor FloatTensor IntTensor LongTensor addmm=added_product log_softmax
    mm=product softmax sum=sum_of
testing runnel.compat.functions.testing: assert_allclose assert_close make_tensor
torch_version builtins: TorchVersion=str
types runnel.compat.functions.types: Device Number Size Tensor _device=device _dtype=dtype
types typing: FileLike=Any _bool=Any _float=Any _int=Any _size=Any
utils.checkpoint builtins: CheckpointError=RuntimeError
utils.checkpoint runnel.compat.functions.settings: noop_context_fn=unchanged set_checkpoint_debug_enabled=unchanged
    set_checkpoint_early_stop=unchanged
utils.cpp_extension runnel.compat.functions.settings: CUDA_HOME=cuda CUDNN_HOME=cuda IS_HIP_EXTENSION=benchmark
    ROCM_HOME=cuda is_ninja_available=never
utils.data.dataset typing: T_co=Any
utils.weak weakref: WeakIdKeyDictionary=WeakKeyDictionary WeakTensorKeyDictionary=WeakKeyDictionary
utils._pytree runnel.compat.functions.containers: _dict_flatten _dict_flatten_with_keys _dict_unflatten
    register_pytree_node _register_pytree_node=register_pytree_node tree_all tree_any tree_iter
    tree_map_only tree_unflatten
utils._pytree runnel.transforms.pytrees: PyTree=PyTreeDef TreeSpec=PyTreeDef
utils.checkpoint runnel.compat.functions.compiler: checkpoint checkpoint_sequential
utils.checkpoint runnel.compat.functions.random: get_device_states set_device_states
utils.data runnel.compat.functions.distributed: DistributedSampler
utils.data.distributed runnel.compat.functions.distributed: DistributedSampler
utils.dlpack runnel.compat.functions.settings: to_dlpack
utils.hooks runnel.compat.functions.types: RemovableHandle
utils.tensorboard runnel.compat.functions.tensorboard: SummaryWriter
version runnel.compat.functions.settings: __version__ cuda debug git_version hip xpu
xpu runnel.compat.functions.settings: device_count empty_cache is_available manual_seed manual_seed_all synchronize
"""
ROWS = PLACES.strip().replace("\n    ", " ").splitlines()

# path -> name -> "module:name"
NAMES: dict[str, dict[str, str]] = {
    path: {
        name: f"{row.partition(':')[0].split()[1]}:{function or name}"
        for row in ROWS
        if row.startswith(f"{path} ")
        for name, _, function in (each.partition("=") for each in row.partition(": ")[2].split())
    }
    for path in [row.split()[0] for row in ROWS]
}
for _refused in SENTENCES:
    _path, _, _name = _refused.rpartition(".")
    NAMES.setdefault(_path, {}).setdefault(_name, f"runnel.compat.torch.refusals:{_refused}")
for _path in OPEN_SENTENCES:
    NAMES.setdefault(_path, {})
for _path in [*FORWARDS, *NAMES]:  # each module is in a package
    while _path := _path.rpartition(".")[0]:
        NAMES.setdefault(_path, {})
