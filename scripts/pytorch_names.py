"""Compare PyTorch's names for networks with Runnel's, for the page that `scripts/site.py` adds to the site.

PyTorch's names and arguments come from ``tests/suites/pytorch/names.json``, which a script asked PyTorch for.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests" / "suites" / "pytorch" / "names.json"

GPU = "for GPUs and accelerators; programs run on the CPU"
INNER = "of PyTorch's inner workings"
REASONS = {
    "torch.nn.Container": "deprecated; `nn.Module`",
    "torch.nn.CrossMapLRN2d": "`nn.LocalResponseNorm` is the same for odd sizes",
    "torch.nn.DataParallel": "one process; programs use all cores. In `runnel.compat.torch` it calls the module",
    "torch.nn.LinearCrossEntropyOptions": "says how PyTorch divides the work; the compiler decides that here",
    "torch.nn.factory_kwargs": INNER,
    "torch.nn.functional.ScalingType": GPU,
    "torch.nn.functional.SwizzleType": GPU,
    "torch.nn.functional.assert_int_or_pair": INNER,
    "torch.nn.functional.grouped_mm": GPU,
    "torch.nn.functional.scaled_grouped_mm": GPU,
    "torch.nn.functional.scaled_mm": GPU,
    "torch.nn.utils.rnn.PackedSequence_": INNER,
    "torch.nn.utils.rnn.bind": INNER,
    "torch.nn.Module.ipu": GPU,
    "torch.nn.Module.mtia": GPU,
    "torch.nn.Module.xpu": GPU,
}
DENSE = "tensors are dense; SparseAdam takes gradients of rows that were read"
UNQUANTIZED = "tensors are floats, integers, bools and complex numbers; none is quantized"
REMOVED = "PyTorch itself has removed it: it raises RuntimeError there"
SCRIPTS = "of TorchScript's inner workings; functions run as they are"
# Patterns of names in PyTorch's largest modules that Runnel lacks, and the reason.
MISSING = (
    (
        r"sparse_\w+|\w*(ccol|crow|col|row)_indices(_copy)?|indices(_copy)?|values(_copy)?|to_sparse\w*|to_padded_tensor",
        DENSE,
    ),
    (r"hsmm|dsmm|hspmm|spmm|smm|saddmm|sspaddmm|native_norm|resize_as_sparse_", DENSE),
    (r"(fake_)?quantize_\w+|quantized_\w+|q_\w+|int_repr|qscheme|dequantize|empty_quantized", UNQUANTIZED),
    (r"fbgemm_\w+|choose_qparams_optimized|fused_moving_avg_obs_fake_quant|Q\w+Storage", UNQUANTIZED),
    (r"eig|symeig|solve|lstsq|matrix_rank|reinforce", REMOVED),
    (r"resize|resize_as", "deprecated; `reshape`, or `resize_` in place"),
    (r"(cudnn|miopen|mkldnn)_\w+|to_mkldnn|batch_norm_\w+|profiler_\w+", "of one library that PyTorch computes with"),
    (r"cuda|xpu|ipu|mtia|record_stream|Stream|StreamObjType|Event|get_device_module", GPU),
    (r"\w*autocast\w*", "`torch.autocast` sets it for a block"),
    (r"is_inference_mode_enabled", "`inference_mode` is `no_grad`: `is_grad_enabled`"),
    (
        r"\w*Storage|StorageBase|storage|storage_type|untyped_storage",
        "tensors are values; `x.numpy()` shows the elements",
    ),
    (r"share_memory_|is_shared|prepare_multiprocessing_environment|Capsule", "memory is not shared between processes"),
    (r"Sym\w+|sym_constrain_\w+|sym_fresh_size", "sizes are ints"),
    (r"chalf", "there is no complex32"),
    (r"fork|wait|Future|FutureType", "one program runs at a time, on all threads"),
    (r"import_ir_module\w*|parse_\w+|merge_type_from_type_comment|unify_type_list|\w*Script\w*|\w*Type", SCRIPTS),
    (r"AliasDb|Argument|ArgumentSpec|Block|CallStack|Code|CompilationUnit|CompleteArgumentSpec|ErrorReport", SCRIPTS),
    (
        r"ExecutionPlan|FunctionSchema|Gradient|Graph|GraphExecutorState|IODescriptor|JITException|Node|Use|Value",
        SCRIPTS,
    ),
    (
        r"ConcreteModuleTypeBuilder|DeepCopyMemoTable|DeserializationStorageContext|FileCheck|LockingLogger|LoggerBase",
        SCRIPTS,
    ),
    (r"NoopLogger|OperatorInfo|PyTorchFile\w+|SerializationStorageContext|StaticModule|Tag|TracingState|Type", SCRIPTS),
    (r"BufferDict|ModuleDict|ParameterDict", "`nn.ModuleDict`, `nn.ParameterDict`"),
    (r"hash_tensor", "`hash(x.numpy().tobytes())`"),
    (r"Tensor", "`torch.Tensor`"),
    (r"AcceleratorError|Benchmark\w+|DisableTorch\w+|Dispatch\w+|ExcludeDispatchKeyGuard|FatalError", INNER),
    (r"ThroughputBenchmark|classproperty|compiled_with_cxx11_abi|get_file_path|slice_inverse", INNER),
    (r"thread_safe_generator|as_subclass|index|module_load", INNER),
)
NOTES = {
    "torch.nn.Softmax": "`dim` is -1 unless given; PyTorch chooses by the number of axes",
    "torch.nn.functional.softmax": "`dim` is -1 unless given; PyTorch chooses by the number of axes",
    "torch.nn.BCELoss": "NaN for an input outside [0, 1], where PyTorch raises an error",
    "torch.nn.functional.binary_cross_entropy": "NaN for an input outside [0, 1], where PyTorch raises an error",
    "torch.nn.functional.ctc_loss": "gradients are the function's own; PyTorch's are right only after `log_softmax`",
    "torch.nn.utils.parametrizations.orthogonal": "`matrix_exp` unless given, for all shapes; without `householder`",
    "torch.nn.init.trunc_normal_": "other numbers for the same seed",
}
# Arguments without effect here, or deprecated in PyTorch: the tables do not list them.
UNIVERSAL = {
    "device",
    "dtype",
    "inplace",
    "size_average",
    "reduce",
    "_stacklevel",
    "generator",
    "args",
    "kwargs",
    "foreach",
}
REST = """
## What PyTorch's largest modules have and Runnel lacks

Everything else that can be called in `torch`, `torch.Tensor` and the modules for special functions, transforms, linear
algebra and testing is in `runnel.compat.torch` under its name.

| module | available | missing, by reason |
| --- | --- | --- |
"""
HEAD = """# PyTorch's names for networks

Of the {every} names in PyTorch {version}'s modules for networks, {there} ({share:.1f} %) exist under the same name in
`runnel.nn` and its modules. {alike} of them take all of PyTorch's arguments and have no known difference; the tables
list only the others. State dicts load both ways.

* "without" names arguments that are not supported.
* `inplace=` is accepted and changes nothing, since tensors are values. `size_average=` and `reduce=`, which PyTorch has
  deprecated, work in losses.
* Methods that move to a device, such as `Module.cuda`, exist and raise `DeviceError`.

[From PyTorch](../migrate/pytorch.md#the-four-differences-that-matter) describes what else differs.
"""


def ours(path: str) -> Any:
    """Return Runnel's counterpart of one of PyTorch's modules or classes."""
    if path.endswith(".Module"):
        return importlib.import_module("runnel.nn").Module
    return importlib.import_module(path.replace("torch", "runnel", 1))


def taken(value: Any) -> set[str] | None:
    """Return the names of arguments in every accepted spelling; None if any name is accepted."""
    from runnel.compat.spelling import MEANINGS

    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    return {*parameters, *(word for word, meant in MEANINGS.items() if parameters.keys() & set(meant))}


def difference(path: str, name: str, arguments: list[str] | None, value: Any) -> str:
    """Return a phrase about what differs, or an empty string."""
    known = taken(value)
    lacking = [] if arguments is None or known is None else [a for a in arguments if a not in known | UNIVERSAL]
    parts = [f"without {', '.join(f'`{a}`' for a in lacking)}"] if lacking else []
    note = NOTES.get(f"{path}.{name}")
    return "; ".join(parts + ([note] if note else []))


def public(path: str) -> Any:
    """Return the counterpart of one of PyTorch's largest modules, or of its class of tensors."""
    if path == "torch.Tensor":
        return importlib.import_module("runnel").Tensor
    return importlib.import_module("runnel.compat." + path)


def rest(whole: dict[str, list[str]]) -> str:
    """Return the table of the largest modules: how many names exist, and the missing ones by reason."""
    rows = REST
    for path, members in whole.items():
        place = public(path)
        missing: dict[str, list[str]] = {}
        for name in members:
            if not hasattr(place, name):
                reasons = [reason for pattern, reason in MISSING if re.fullmatch(pattern, name)]
                if not reasons:
                    raise SystemExit(
                        f"scripts/pytorch_names.py: give a reason for the missing {path}.{name}, or add it."
                    )
                missing.setdefault(reasons[0], []).append(f"`{name}`")
        told = ". ".join(f"{reason[0].upper()}{reason[1:]}: {', '.join(names)}" for reason, names in missing.items())
        absent = sum(map(len, missing.values()))
        rows += f"| `{path}` | {len(members) - absent} of {len(members)} | {told} |\n".replace("|  |", "| |")
    return rows


def text() -> str:
    """Return the page in Markdown."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    names: dict[str, dict[str, Any]] = recorded["names"]
    reasons, every, there, alike, tables = dict(REASONS), 0, 0, 0, ""
    for path, members in names.items():
        place, rows = ours(path), ""
        for name, arguments in members.items():
            every += 1
            if hasattr(place, name):
                there += 1
                told = difference(path, name, arguments, getattr(place, name))
                alike += not told
            else:
                told = f"missing: {reasons.pop(f'{path}.{name}')}"
            rows += f"| `{name}` | {told} |\n" if told else ""
        if rows:
            tables += f"\n## `{path}`\n\n| name | difference |\n| --- | --- |\n{rows}"
    tables += rest(recorded["whole"])
    if reasons:
        raise SystemExit(f"scripts/pytorch_names.py: remove the reasons for names that exist: {', '.join(reasons)}.")
    share = 100 * there / every
    return HEAD.format(version=recorded["torch"], there=there, every=every, share=share, alike=alike) + tables
