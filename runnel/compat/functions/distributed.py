"""``torch.distributed`` for a world of one process: collectives, wrappers of modules, and their settings.

The results are PyTorch's for one process. A larger world raises UnsupportedError in :func:`init_process_group`.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from enum import Enum, IntEnum
from typing import Any, Final

from runnel.core.errors import UnsupportedError
from runnel.data import sampling
from runnel.nn.module import Module
from runnel.nn.utils.parameters import clip_grad_norm_

default_pg_timeout: Final = timedelta(minutes=30)


class ReduceOp(IntEnum):
    """Ways to combine the tensors of all processes; of one process each is the tensor itself."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # PyTorch's class of these numbers


class Backend(str):
    """The name of a library for communication. It has no effect."""

    GLOO, NCCL, MPI, UCC, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "undefined"


class ProcessGroup:
    """A group of processes, which has only this one."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def rank(self) -> int:
        """Return 0."""
        return 0

    def size(self) -> int:
        """Return 1."""
        return 1


class Work:
    """A collective with ``async_op=True``, which is finished at once."""

    def wait(self, timeout: Any = None) -> bool:
        """Return True."""
        return True

    is_completed = is_success = wait


class group:
    """The default group, ``group.WORLD``; None before :func:`init_process_group`."""

    WORLD: ProcessGroup | None = None


GroupMember = group


def _default() -> ProcessGroup:
    if group.WORLD is None:
        raise ValueError("[distributed] init_process_group must be called first; there is no default group.")
    return group.WORLD


def init_process_group(
    backend: Any = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    **options: Any,
) -> None:
    """Make the default group, of one process.

    The size of the world is ``world_size``, or WORLD_SIZE in the environment, or 1. UnsupportedError unless it is 1.
    """
    if group.WORLD is not None:
        raise ValueError("[init_process_group] the default group must not exist; it was made before.")
    size = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", 1))
    if size != 1 or rank > 0:
        raise UnsupportedError(
            f"[init_process_group] world_size must be 1 and rank 0; got {size} and {rank}. One process trains, on all "
            "of its cores."
        )
    group.WORLD = ProcessGroup(str(backend or "gloo").lower())


def destroy_process_group(group: Any = None) -> None:
    """Forget the default group, unless ``group`` is another one."""
    if group in (None, _default()):
        GroupMember.WORLD = None


def is_initialized() -> bool:
    """Return True after :func:`init_process_group`."""
    return group.WORLD is not None


def get_rank(group: Any = None) -> int:
    """Return 0. ValueError without a default group."""
    return _default().rank()


def get_world_size(group: Any = None) -> int:
    """Return 1. ValueError without a default group."""
    return _default().size()


def get_backend(group: Any = None) -> str:
    """Return the name that :func:`init_process_group` got."""
    return str((group or _default()).backend)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return 0."""
    return 0


def get_process_group_ranks(group: Any = None) -> list[int]:
    """Return [0]."""
    return [0]


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return ``group_rank``, which must be 0."""
    _only("get_global_rank", group_rank)
    return 0


get_group_rank = get_global_rank


def new_group(ranks: Sequence[int] | None = None, timeout: Any = None, backend: Any = None, **options: Any) -> Any:
    """Return a group with the process 0."""
    for rank in ranks or ():
        _only("new_group", rank)
    return ProcessGroup(str(backend or get_backend()))


def _only(name: str, rank: int | None) -> None:
    """Check that ``rank`` is a process of the world."""
    if rank not in (None, 0):
        raise ValueError(f"[{name}] a rank must be 0 in a world of one process; got {rank}.")


# --- collectives ---


def _finished(async_op: bool) -> Work | None:
    _default()
    return Work() if async_op else None


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Leave ``tensor``, which is the sum, mean, ... of one process."""
    return _finished(async_op)


def reduce(
    tensor: Any, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False, **rank: Any
) -> Work | None:
    """Leave ``tensor``."""
    _only("reduce", dst)
    return _finished(async_op)


def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False, **rank: Any
) -> Work | None:
    """Leave ``tensor``, which comes from this process."""
    _only("broadcast", src)
    return _finished(async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Return at once."""
    return _finished(async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Return at once."""
    _default()


def all_gather(tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Copy ``tensor`` into the one tensor of the list."""
    tensor_list[0].copy_(tensor)
    return _finished(async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy ``input_tensor`` into ``output_tensor``, which may have an axis of size 1 before its axes."""
    output_tensor.copy_(input_tensor.reshape(output_tensor.shape))
    return _finished(async_op)


def gather(
    tensor: Any, gather_list: Any = None, dst: int | None = None, group: Any = None, async_op: bool = False, **rank: Any
) -> Work | None:
    """Copy ``tensor`` into the one tensor of the list."""
    _only("gather", dst)
    return all_gather(gather_list, tensor, group, async_op)


def scatter(
    tensor: Any,
    scatter_list: Any = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    **rank: Any,
) -> Work | None:
    """Copy the one tensor of the list into ``tensor``."""
    _only("scatter", src)
    tensor.copy_(scatter_list[0])
    return _finished(async_op)


def reduce_scatter(
    output: Any, input_list: list[Any], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy the one tensor of the list into ``output``."""
    output.copy_(input_list[0])
    return _finished(async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy ``input`` into ``output``."""
    return all_gather_into_tensor(output, input, group, async_op)


def all_to_all(
    output_tensor_list: list[Any], input_tensor_list: list[Any], group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy the one input into the one output."""
    return all_gather(output_tensor_list, input_tensor_list[0], group, async_op)


def all_to_all_single(output: Any, input: Any, *sizes: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Copy ``input`` into ``output``."""
    return all_gather_into_tensor(output, input, group, async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put a copy of ``obj`` into the list."""
    _default()
    object_list[0] = copy.deepcopy(obj)


def gather_object(obj: Any, object_gather_list: Any = None, dst: int | None = None, *rest: Any, **rank: Any) -> None:
    """Put a copy of ``obj`` into the list."""
    _only("gather_object", dst)
    all_gather_object(object_gather_list, obj)


def scatter_object_list(output: list[Any], input: Any = None, src: int | None = None, *rest: Any, **rank: Any) -> None:
    """Put a copy of the one input into the one output."""
    _only("scatter_object_list", src)
    all_gather_object(output, input[0])


def broadcast_object_list(object_list: list[Any], src: int | None = None, *rest: Any, **rank: Any) -> None:
    """Leave the objects."""
    _only("broadcast_object_list", src)
    _default()


# --- ``torch.distributed.nn``: collectives with gradients ---


def returned(tensor: Any, *args: Any, **options: Any) -> Any:
    """Return ``tensor``, through which gradients flow."""
    _default()
    return tensor


def gathered(tensor: Any, *args: Any, **options: Any) -> tuple[Any, ...]:
    """Return ``tensor`` of each process, through which gradients flow: (tensor,)."""
    _default()
    return (tensor,)


# --- wrappers of modules ---


class DataParallel(Module):
    """A module that calls ``module``, like PyTorch's on a machine without GPUs. Keys of its state dict begin with
    "module."."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(module: Any, inputs: Any, device_ids: Any = None, *args: Any, module_kwargs: Any = None) -> Any:
    """Return ``module(*inputs)``."""
    several = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*several, **(module_kwargs or {}))


class DistributedDataParallel(DataParallel):
    """A module that calls ``module``: one process has all gradients. ValueError without a default group."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, **options: Any) -> None:
        super().__init__(module)
        _default()

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Run a block unchanged."""
        yield

    join = no_sync


class FullyShardedDataParallel(DistributedDataParallel):
    """A module that calls ``module`` and has its attributes: one process holds all Parameters."""

    def __init__(self, module: Module, process_group: Any = None, *args: Any, **options: Any) -> None:
        super().__init__(module)

    def __getattr__(self, name: str) -> Any:
        if name == "module":
            raise AttributeError(name)
        return getattr(self.module, name)

    @staticmethod
    @contextmanager
    def state_dict_type(module: Module, *options: Any, **named: Any) -> Iterator[None]:
        """Run a block in which state dicts are whole, as always here."""
        yield

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, *options: Any, **named: Any) -> Any:
        """Return ``optim.state_dict()``."""
        return optim.state_dict()

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Clip the gradients of all Parameters to a total norm."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)


class ShardingStrategy(Enum):
    """Ways to share Parameters between processes; of one process all are the same."""

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class StateDictType(Enum):
    """Ways to save shared Parameters."""

    FULL_STATE_DICT, LOCAL_STATE_DICT, SHARDED_STATE_DICT = range(1, 4)


class StateDictConfig:
    """Settings of state dicts, which hold everything and lie in the CPU's memory."""

    def __init__(self, **options: Any) -> None:
        vars(self).update(options)


class BackwardPrefetch(Enum):
    """Times to fetch the next Parameters."""

    BACKWARD_PRE, BACKWARD_POST = range(1, 3)


class CPUOffload:
    """A setting without effect: Parameters always lie in the CPU's memory."""

    def __init__(self, offload_params: bool = False) -> None:
        self.offload_params = offload_params


def always_wrap_policy(*args: Any, **options: Any) -> bool:
    """Return True: how Parameters are shared has no effect with one process."""
    return True


size_based_auto_wrap_policy = transformer_auto_wrap_policy = lambda_auto_wrap_policy = always_wrap_policy
ModuleWrapPolicy = set


# --- data and processes ---


class DistributedSampler(sampling.DistributedSampler):
    """A sampler of a share of a dataset, by default of all of it, as one process has it."""

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, *args: Any, **options: Any
    ):
        super().__init__(dataset, num_replicas or 1, rank or 0, *args, **options)


def spawn(
    fn: Any, args: Sequence[Any] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> None:  # fmt: skip
    """Call ``fn(0, *args)`` in this process. UnsupportedError for more processes than one."""
    if nprocs != 1:
        raise UnsupportedError(f"[spawn] nprocs must be 1; got {nprocs}. One process trains, on all of its cores.")
    fn(0, *args)
