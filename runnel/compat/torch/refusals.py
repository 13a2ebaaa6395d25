"""Names of PyTorch for what does not exist here: you can import and name them, and a call raises UnsupportedError.

``REFUSALS`` has a sentence for each group of names, and rows ``module: name name ...`` as in ``names``. A name is a
class without instances, so that ``isinstance``, annotations, and classes derived from it work as well.
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
cuda: BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
    ShortTensor CUDAGraph Event ExternalStream MemPool Stream StreamContext can_device_access_peer current_blas_handle
    current_device current_stream cudart default_stream device device_of get_device_capability get_device_name
    get_device_properties get_rng_state graph graph_pool_handle init initial_seed ipc_collect list_gpu_processes
    make_graphed_callables mem_get_info memory_summary reset_accumulated_memory_stats reset_max_memory_allocated
    reset_max_memory_cached seed seed_all set_device set_per_process_memory_fraction set_rng_state set_stream stream
    temperature utilization power_draw clock_rate memory_usage
cuda.comm: broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter
cuda.nvtx: mark range range_end range_pop range_push range_start
cuda.graphs: CUDAGraph graph make_graphed_callables
cuda.streams: Event ExternalStream Stream
mps: Event compile_shader current_allocated_memory driver_allocated_memory get_rng_state recommended_max_memory seed
    set_per_process_memory_fraction set_rng_state
xpu: Event Stream StreamContext current_device current_stream device device_of get_device_name get_device_properties
    get_rng_state mem_get_info set_device set_rng_state set_stream stream
accelerator: current_device_idx current_device_index current_stream set_device_idx set_device_index set_stream
utils.cpp_extension: BuildExtension CUDAExtension CppExtension SyclExtension include_paths library_paths load
    load_inline
""",
    ONE: """
distributed: P2POp batch_isend_irecv irecv isend recv recv_object_list send send_object_list split_group shrink_group
    new_subgroups new_subgroups_by_enumeration DeviceMesh init_device_mesh FileStore HashStore PrefixStore Store
    TCPStore ProcessGroupGloo ProcessGroupNCCL GradBucket Reducer rendezvous register_rendezvous_handler
distributed.distributed_c10d: P2POp PrefixStore ProcessGroupGloo Store
distributed.device_mesh: DeviceMesh init_device_mesh
distributed.checkpoint: FileSystemReader FileSystemWriter async_save load load_state_dict save save_state_dict
    StorageReader StorageWriter
distributed.checkpoint.state_dict: StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict
    set_model_state_dict set_optimizer_state_dict set_state_dict
distributed.tensor: DTensor Partial Placement Replicate Shard distribute_module distribute_tensor
distributed.tensor.parallel: ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleOutput RowwiseParallel
    SequenceParallel loss_parallel parallelize_module
distributed.optim: DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer
distributed.algorithms.join: Join JoinHook Joinable
distributed.algorithms.ddp_comm_hooks.default_hooks: allreduce_hook bf16_compress_hook fp16_compress_hook
    fp16_compress_wrapper bf16_compress_wrapper
distributed.pipelining: Pipe PipelineStage Schedule1F1B ScheduleGPipe ScheduleInterleaved1F1B SplitPoint pipe_split
    pipeline
distributed.rpc: RRef get_worker_info init_rpc remote rpc_async rpc_sync shutdown TensorPipeRpcBackendOptions
distributed.fsdp: FullOptimStateDictConfig FullStateDictConfig LocalOptimStateDictConfig LocalStateDictConfig
    OptimStateDictConfig ShardedOptimStateDictConfig ShardedStateDictConfig StateDictConfig StateDictSettings
distributed.fsdp.wrap: CustomPolicy enable_wrap wrap
nn.parallel: gather parallel_apply replicate scatter
multiprocessing: get_all_sharing_strategies get_sharing_strategy
""",
    GRAPH: """
fx: Graph GraphModule Interpreter Node Proxy Tracer Transformer map_arg replace_pattern symbolic_trace
fx.experimental.proxy_tensor: get_proxy_mode make_fx
fx.experimental.symbolic_shapes: ShapeEnv
fx.graph: CodeGen Graph PythonCode
fx.graph_module: GraphModule
fx.interpreter: Interpreter Transformer
fx.node: Node map_aggregate map_arg
fx.passes.shape_prop: ShapeProp TensorMetadata
fx.proxy: Attribute Proxy TraceError TracerBase
fx._symbolic_trace: Tracer symbolic_trace
export: Dim ExportedProgram ShapesCollection export load register_dataclass save unflatten
autograd.graph: GradientEdge Node get_gradient_edge increment_version register_multi_grad_hook
    allow_mutation_on_saved_tensors
overrides: TorchFunctionMode
utils._python_dispatch: TorchDispatchMode
utils.flop_counter: FlopCounterMode
library: Library impl define register_fake register_autocast
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
    "runnel.data.pack_collate and runnel.nn.functional.varlen_attn take sequences of different lengths": """
nested: as_nested_tensor masked_select narrow nested_tensor nested_tensor_from_jagged to_padded_tensor
""",
    "runnel.where and masks of bools do the same": """
masked: MaskedTensor as_masked_tensor masked_tensor
""",
    "tensors are floats, integers and bools": """
ao.quantization: DeQuantStub FakeQuantize HistogramObserver MinMaxObserver QConfig QuantStub QuantWrapper convert
    default_dynamic_qconfig default_qconfig fuse_modules get_default_qat_qconfig get_default_qconfig prepare prepare_qat
    quantize_dynamic
quantization: DeQuantStub FakeQuantize HistogramObserver MinMaxObserver QConfig QuantStub QuantWrapper convert
    default_dynamic_qconfig default_qconfig fuse_modules get_default_qat_qconfig get_default_qconfig prepare prepare_qat
    quantize_dynamic
ao.nn.quantized: Conv2d FloatFunctional Linear
nn.quantized: FloatFunctional
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
torch: ByteStorage DoubleStorage FloatStorage HalfStorage LongStorage TypedStorage UntypedStorage
""",
    "print(runnel.compile(fn).program(x).measure()) measures a program": """
utils.benchmark: Compare Fuzzer Measurement Timer
""",
}

# "module.name" -> the sentence
SENTENCES: Final = {
    f"{row.partition(':')[0].strip()}.{name}": sentence
    for sentence, rows in REFUSALS.items()
    for row in rows.strip().replace("\n    ", " ").splitlines()
    for name in row.partition(":")[2].split()
}


def __getattr__(name: str) -> Any:
    """Return the class for "module.name"."""
    if name not in SENTENCES:
        raise AttributeError(name)
    module, _, own = name.rpartition(".")
    path = f"torch.{own}" if module == "torch" else f"torch.{name}"

    def refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
        try:
            raise UnsupportedError(f"[{path}] is not supported: {SENTENCES[name]}.")
        except UnsupportedError as error:
            tracebacks.end_at_user(error)
            raise

    members = {"__new__": refuse, "__module__": f"runnel.compat.{path.rpartition('.')[0]}", "__doc__": SENTENCES[name]}
    kind = globals()[name] = type(own, (), members)
    return kind
