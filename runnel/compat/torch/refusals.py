"""Names of PyTorch for what does not exist here: you can import and name them, and a call raises UnsupportedError.

``REFUSALS`` has a sentence for each group of names, and rows ``module: name name ...`` as in ``names``. ``OPEN`` has
one for modules of which each name that a program asks for is refused. A name is a class without instances, so that
``isinstance``, annotations, and classes derived from it work as well.
"""

from __future__ import annotations

from typing import Any, Final

from runnel.core import tracebacks
from runnel.core.errors import UnsupportedError

GPU: Final = "programs run on CPUs, and torch.cuda.is_available() is False"
ONE: Final = "one process trains, on all of its cores"
GRAPH: Final = "print(runnel.compile(fn).program(x)) shows the program of a function"
DENSE: Final = "sparse tensors are made by torch.sparse_coo_tensor and torch.sparse_csr_tensor"

REFUSALS: Final = {
    GPU: """
backends.cuda: SDPAParams
cuda: BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
    ShortTensor CUDAGraph Event ExternalStream MemPool Stream StreamContext can_device_access_peer current_blas_handle
    current_device current_stream cudart default_stream device device_of get_device_capability get_device_name
    get_device_properties get_rng_state graph graph_pool_handle init initial_seed ipc_collect list_gpu_processes
    make_graphed_callables mem_get_info memory_summary reset_accumulated_memory_stats reset_max_memory_allocated
    reset_max_memory_cached seed seed_all set_device set_per_process_memory_fraction set_rng_state set_stream stream
    temperature utilization power_draw clock_rate memory_usage AcceleratorError CUDAPluggableAllocator CudaError
    caching_allocator_alloc caching_allocator_delete change_current_allocator device_memory_used get_gencode_flags
    get_stream_from_external memory_snapshot use_mem_pool BFloat16Storage BoolStorage ByteStorage CharStorage
    DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage
cuda.amp.grad_scaler: OptState
cuda.memory: CUDAPluggableAllocator MemPool mem_get_info memory_snapshot memory_summary set_per_process_memory_fraction
cuda.random: get_rng_state initial_seed seed seed_all set_rng_state
torch: Event Stream get_device_module
nn.functional: ScalingType SwizzleType scaled_grouped_mm scaled_mm
cuda.comm: broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter
cuda.nvtx: mark range range_end range_pop range_push range_start
cuda.graphs: CUDAGraph graph make_graphed_callables
cuda.streams: Event ExternalStream Stream
mps: Event compile_shader current_allocated_memory driver_allocated_memory get_rng_state recommended_max_memory seed
    set_per_process_memory_fraction set_rng_state
xpu: Event Stream StreamContext current_device current_stream device device_of get_device_name get_device_properties
    get_rng_state mem_get_info set_device set_rng_state set_stream stream
accelerator: current_device_idx current_device_index current_stream device_index set_device_idx set_device_index
    set_stream
utils.cpp_extension: BuildExtension CUDAExtension CppExtension SyclExtension include_paths library_paths load
    load_inline
""",
    ONE: """
distributed: AllToAllOptions AllreduceOptions BackendConfig BarrierOptions BroadcastOptions GatherOptions ReduceOptions
    ReduceScatterOptions ScatterOptions DebugLevel all_gather_coalesced all_reduce_coalesced breakpoint P2POp
    batch_isend_irecv irecv isend recv recv_object_list send send_object_list split_group shrink_group new_subgroups
    new_subgroups_by_enumeration DeviceMesh init_device_mesh FileStore HashStore PrefixStore Store TCPStore
    ProcessGroupGloo ProcessGroupNCCL GradBucket Reducer rendezvous register_rendezvous_handler
distributed.distributed_c10d: P2POp PrefixStore ProcessGroupGloo Store
distributed.device_mesh: DeviceMesh init_device_mesh
distributed.checkpoint: FileSystemReader FileSystemWriter async_save load load_state_dict save save_state_dict
    StorageReader StorageWriter
distributed.checkpoint.state_dict: StateDictOptions _init_optim_state get_model_state_dict get_optimizer_state_dict
    get_state_dict set_model_state_dict set_optimizer_state_dict set_state_dict
distributed.tensor._utils: compute_local_shape_and_global_offset
distributed.tensor.experimental._attention: set_rotate_method
distributed._functional_collectives: AsyncCollectiveTensor all_gather_tensor all_reduce all_to_all_single
    all_to_all_single_autograd reduce_scatter_tensor wait_tensor
distributed.checkpoint.hf_storage: HuggingFaceStorageReader HuggingFaceStorageWriter
distributed.tensor: DTensor distribute_module distribute_tensor
distributed.tensor.parallel: ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleOutput RowwiseParallel
    SequenceParallel loss_parallel parallelize_module
distributed.optim: DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer
distributed.algorithms.join: Join JoinHook Joinable
distributed.algorithms.ddp_comm_hooks.default_hooks: allreduce_hook bf16_compress_hook fp16_compress_hook
    fp16_compress_wrapper bf16_compress_wrapper
distributed.pipelining: Pipe PipelineStage Schedule1F1B ScheduleGPipe ScheduleInterleaved1F1B SplitPoint pipe_split
    pipeline
distributed.rpc: RRef get_worker_info init_rpc remote rpc_async rpc_sync shutdown TensorPipeRpcBackendOptions
distributed.fsdp: CPUOffloadPolicy FSDPModule FlatParameter MixedPrecision MixedPrecisionPolicy OffloadPolicy
    StateDictSettings
distributed.fsdp.fully_sharded_data_parallel: MixedPrecision
distributed.fsdp.fully_sharded_data_parallel: FullOptimStateDictConfig FullStateDictConfig MixedPrecision
    ShardedOptimStateDictConfig ShardedStateDictConfig
distributed._composable.fsdp: FSDPModule
distributed.fsdp: CPUOffloadPolicy FSDPModule MixedPrecision MixedPrecisionPolicy OffloadPolicy OptimStateKeyType
    FullOptimStateDictConfig FullStateDictConfig LocalOptimStateDictConfig LocalStateDictConfig
    OptimStateDictConfig ShardedOptimStateDictConfig ShardedStateDictConfig StateDictConfig StateDictSettings
distributed.fsdp.wrap: CustomPolicy enable_wrap wrap
distributed.optim: as_functional_optim
distributed.nn: RemoteModule
nn.parallel.distributed: Join JoinHook Joinable RRef _find_tensors
nn.parallel: gather parallel_apply replicate scatter
multiprocessing: get_all_sharing_strategies get_sharing_strategy
""",
    GRAPH: """
torch: SymBool SymFloat SymInt
fx: Graph GraphModule Interpreter Node Proxy Tracer Transformer map_arg replace_pattern symbolic_trace
fx.experimental.proxy_tensor: get_proxy_mode make_fx
fx.experimental.symbolic_shapes: GuardOnDataDependentSymNode ShapeEnv free_symbols free_unbacked_symbols
fx.graph: CodeGen Graph PythonCode
fx.graph_module: GraphModule
fx.interpreter: Interpreter Transformer
fx.node: Node Target map_aggregate map_arg
fx.passes.shape_prop: ShapeProp TensorMetadata
fx.proxy: Attribute GraphAppendingTracer Proxy TraceError TracerBase
fx._symbolic_trace: Tracer symbolic_trace
export: Dim ExportedProgram ShapesCollection export load register_dataclass save unflatten
torch: CompilationUnit Graph ScriptFunction ScriptModule Value import_ir_module parse_ir
autograd.graph: disable_saved_tensors_hooks GradientEdge Node get_gradient_edge increment_version
    register_multi_grad_hook allow_mutation_on_saved_tensors
overrides: TorchFunctionMode BaseTorchFunctionMode get_overridable_functions get_testing_overrides handle_torch_function
    redispatch_function resolve_name wrap_torch_function
utils.checkpoint: CheckpointFunction CheckpointPolicy create_selective_checkpoint_contexts
autograd.profiler: emit_itt emit_nvtx load_nvprof
profiler: ExecutionTraceObserver
func: debug_unwrap functionalize replace_all_batch_norm_modules_
utils._python_dispatch: TorchDispatchMode
utils.flop_counter: FlopCounterMode
library: CustomOpDef Library define get_ctx impl impl_abstract infer_schema opcheck register_autocast
    register_kernel register_torch_dispatch register_vmap triton_op wrap_triton
compiler: load_cache_artifacts load_compiled_function nested_compile_region save_cache_artifacts substitute_in_graph
optim.optimizer: register_optimizer_step_post_hook register_optimizer_step_pre_hook
nn.modules.module: register_module_backward_hook register_module_forward_hook register_module_forward_pre_hook
    register_module_full_backward_hook register_module_full_backward_pre_hook
_dynamo: explain export optimize optimize_assert
jit: CompilationUnit export_opnames load save trace_module
""",
    "runnel.checkpoint(fn) keeps only the arguments and computes again": "autograd.graph: saved_tensors_hooks",
    "write the model in code and load its weights with runnel.load(path)": """
hub: download_url_to_file help list load load_state_dict_from_url
utils.model_zoo: load_url
package: PackageExporter PackageImporter
""",
    "ONNX files are not written; runnel.save_file(model.state_dict(), path) saves the weights": """
onnx: ExportableModule ONNXProgram OnnxExporterError dynamo_export export
""",
    "runnel.ragged(rows) makes batches of rows of different lengths, which layers and reductions take": """
torch: jagged
nested: as_nested_tensor masked_select narrow nested_tensor nested_tensor_from_jagged to_padded_tensor
""",
    "runnel.where and masks of bools do the same": """
masked: MaskedTensor amax amin argmax argmin as_masked_tensor cumprod cumsum is_masked_tensor log_softmax logaddexp
    logsumexp masked_tensor mean median norm normalize prod softmax softmin std sum var
""",
    "tensors are floats, integers and bools": """
torch: bits16 bits8 complex32 float4_e2m1fn_x2
    per_channel_affine per_channel_symmetric per_tensor_affine per_tensor_symmetric qint32 qint8 qscheme quint2x4
    quint4x2 quint8
ao.quantization: DeQuantStub FakeQuantize HistogramObserver MinMaxObserver QConfig QuantStub QuantWrapper convert
    default_dynamic_qconfig default_qconfig fuse_modules get_default_qat_qconfig get_default_qconfig prepare prepare_qat
    quantize_dynamic
quantization: DeQuantStub FakeQuantize HistogramObserver MinMaxObserver QConfig QuantStub QuantWrapper convert
    default_dynamic_qconfig default_qconfig fuse_modules get_default_qat_qconfig get_default_qconfig prepare prepare_qat
    quantize_dynamic
ao.nn.quantized: Conv2d FloatFunctional Linear
nn.quantized: FloatFunctional
utils.mkldnn: to_mkldnn
utils.mobile_optimizer: optimize_for_mobile
utils.bundled_inputs: bundle_inputs
""",
    DENSE: """
sparse: BFloat16Tensor ByteTensor CharTensor HalfTensor ShortTensor SparseSemiStructuredTensor as_sparse_gradcheck
    check_sparse_tensor_invariants solve to_sparse_semi_structured
torch: sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor sparse_compressed_tensor
""",
    "x.numpy() shows the elements of a tensor": """
storage: TypedStorage UntypedStorage
torch: BFloat16Storage BoolStorage ByteStorage CharStorage DoubleStorage FloatStorage HalfStorage IntStorage LongStorage
    ShortStorage Storage TypedStorage UntypedStorage
serialization: default_restore_location get_unsafe_globals_in_checkpoint register_package
""",
    "runnel.data.IterableDataset and DataLoader read streams": """
utils.data: DFIterDataPipe IterDataPipe MapDataPipe functional_datapipe
utils.data.dataloader: IterDataPipe MapDataPipe _BaseDataLoaderIter _MultiProcessingDataLoaderIter
    _SingleProcessDataLoaderIter
utils.data.datapipes.iter: IterableWrapper
""",
    "it is an op of PyTorch's or of a library in C++": """
ops: load_library
""",
    "print(runnel.compile(fn).program(x).measure()) measures a program": """
utils.benchmark: Compare Fuzzer Measurement Timer
""",
}

# Modules of which every name is refused, with the sentence for all of them.
OPEN: Final = {
    GPU: """
cuda.gds cuda.jiterator cuda.nccl cuda.profiler cuda.sparse cuda.tunable mps.event mps.profiler
""",
    ONE: """
distributed._composable distributed._composable.fsdp distributed._functional_collectives distributed._shard
distributed._shard.sharded_tensor distributed._tensor distributed._tensor.device_mesh
distributed.algorithms._checkpoint distributed.rpc.functions
distributed.algorithms.ddp_comm_hooks.powerSGD_hook distributed.algorithms.ddp_comm_hooks.ddp_zero_hook
distributed.algorithms.ddp_comm_hooks.post_localSGD_hook distributed.algorithms.model_averaging
distributed.algorithms.model_averaging.averagers distributed.autograd distributed.checkpoint.default_planner
distributed.checkpoint.filesystem distributed.checkpoint.format_utils distributed.checkpoint.metadata
distributed.checkpoint.optimizer distributed.checkpoint.planner distributed.checkpoint.state_dict_loader
distributed.checkpoint.state_dict_saver distributed.checkpoint.stateful distributed.elastic.agent.server
distributed.elastic.agent.server.api distributed.elastic.multiprocessing distributed.elastic.rendezvous
distributed.elastic.utils distributed.fsdp._runtime_utils distributed.fsdp.api distributed.fsdp.sharded_grad_scaler
distributed.launch distributed.launcher distributed.launcher.api distributed.nn.api.remote_module
distributed.optim.zero_redundancy_optimizer distributed.pipelining.microbatch distributed.pipelining.schedules
distributed.pipelining.stage distributed.rendezvous distributed.run distributed.tensor.debug
distributed.tensor.device_mesh distributed.tensor.experimental distributed.tensor.parallel.api
distributed.tensor.parallel.fsdp distributed.tensor.parallel.loss distributed.tensor.parallel.style
distributed.tensor.placement_types distributed.utils nn.parallel.comm nn.parallel.parallel_apply nn.parallel.replicate
nn.parallel.scatter_gather multiprocessing.reductions
""",
    GRAPH: """
_export _functorch.aot_autograd _functorch.compilers _higher_order_ops _higher_order_ops.associative_scan
_inductor.compile_fx _inductor.utils _ops _prims
_subclasses _subclasses.fake_tensor export.dynamic_shapes export.exported_program fx.annotate fx.experimental
fx.immutable_collections fx.operator_schemas fx.passes fx.passes.splitter_base fx.subgraph_rewriter fx.tensor_type
fx.traceback jit.frontend jit.mobile
""",
    "it is an op of PyTorch's in C++": "ops.aten ops.prims",
    "threads of Python run work later": "futures",
    "nn.functional.scaled_dot_product_attention takes a mask": """
nn.attention.bias nn.attention.flex_attention nn.attention.varlen
""",
    "ONNX files are not written; runnel.save_file(model.state_dict(), path) saves the weights": """
onnx.errors onnx.operators onnx.ops onnx.symbolic_helper onnx.symbolic_opset9 onnx.symbolic_opset11
onnx.symbolic_opset14 onnx.utils onnx.verification
""",
    "tensors are floats, integers and bools": """
ao.nn.intrinsic ao.nn.qat ao.nn.quantized.dynamic ao.quantization.fake_quantize ao.quantization.observer
ao.quantization.qconfig ao.quantization.quantize_fx ao.pruning nn.intrinsic nn.intrinsic.quantized nn.qat
nn.quantized.dynamic nn.quantized.functional nn.quantized.modules quantization.fake_quantize quantization.observer
quantization.qconfig quantization.quantize_fx
""",
}

# "module.name" -> the sentence
SENTENCES: Final = {
    f"{row.partition(':')[0].strip()}.{name}": sentence
    for sentence, rows in REFUSALS.items()
    for row in rows.strip().replace("\n    ", " ").splitlines()
    for name in row.partition(":")[2].split()
}


# path of a module of which every name is refused -> the sentence
OPEN_SENTENCES: Final = {path: sentence for sentence, paths in OPEN.items() for path in paths.split()}


def __getattr__(name: str) -> Any:
    """Return the class for "module.name"."""
    module, _, own = name.rpartition(".")
    sentence = SENTENCES.get(name) or OPEN_SENTENCES.get(module)
    if sentence is None or own.startswith("__"):
        raise AttributeError(name)
    path = f"torch.{own}" if module == "torch" else f"torch.{name}"

    def refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
        try:
            raise UnsupportedError(f"[{path}] is not supported: {sentence}.")
        except UnsupportedError as error:
            tracebacks.end_at_user(error)
            raise

    members = {"__new__": refuse, "__module__": f"runnel.compat.{path.rpartition('.')[0]}", "__doc__": sentence}
    kind = globals()[name] = type(own, (), members)
    return kind
