#!/usr/bin/env python3
"""Writes docs/pytorch.md: of each name of PyTorch's modules for networks, what differs here, or why it is not there.

PyTorch's names and arguments are those of ``tests/suites/pytorch/names.json``, which PyTorch itself was asked for.
``scripts/pytorch_names.py --check`` writes nothing and fails if the page is out of date.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "pytorch.md"
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
    "torch.nn.Module.compile": "`rn.compile(model)`",
    "torch.nn.Module.ipu": GPU,
    "torch.nn.Module.mtia": GPU,
    "torch.nn.Module.share_memory": "memory is not shared between processes; pass a state",
    "torch.nn.Module.xpu": GPU,
}
DENSE = "tensors are dense; SparseAdam takes gradients of rows that were read"
UNQUANTIZED = "tensors are floats, integers, bools and complex numbers; none is quantized"
REMOVED = "PyTorch itself has removed it: it raises RuntimeError there"
SCRIPTS = "of TorchScript's inner workings; functions run as they are"
# Of what can be called in PyTorch's largest modules: patterns of whole names, and why these are not there.
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
    "torch.nn.functional.ctc_loss": "gradients are the function's own; PyTorch's are right behind `log_softmax` alone",
    "torch.nn.utils.parametrizations.orthogonal": "`matrix_exp` unless given, for all shapes; without `householder`",
    "torch.nn.init.trunc_normal_": "other numbers for the same seed, as all that is drawn",
}
# Arguments that change nothing here, or are deprecated there: no table names them.
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
## What can be called in PyTorch's largest modules, and is not there

Of `torch`, `torch.Tensor` and the modules for special functions, transforms, linear algebra and tests everything else
that can be called is in `runnel.compat.torch` under its name; most of it is in `runnel`, too.

| module | there | not there |
| --- | --- | --- |
"""
HEAD = """# PyTorch's names for networks

Written by `scripts/pytorch_names.py` for PyTorch {version}: {there} of {every} names are there ({share:.1f} %), under
the same name in `runnel.nn` and its modules. Arguments have PyTorch's names and defaults, and state dicts load both
ways. What differs stands behind a name; "without" are arguments that are not taken. `size_average=` and `reduce=`,
which PyTorch has deprecated, are not taken anywhere; `inplace=` is taken and changes nothing, since tensors are values.
"""


def ours(path: str) -> Any:
    """The module, or the class, that stands for one of PyTorch's."""
    if path.endswith(".Module"):
        return importlib.import_module("runnel.nn").Module
    return importlib.import_module(path.replace("torch", "runnel", 1))


def taken(value: Any) -> set[str] | None:
    """The names that can be given as arguments, under whatever spelling; None where any can."""
    from runnel.core.spelling import MEANINGS

    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    return {*parameters, *(word for word, meant in MEANINGS.items() if parameters.keys() & set(meant))}


def difference(path: str, name: str, arguments: list[str] | None, value: Any) -> str:
    """What stands behind a name that is there."""
    known = taken(value)
    lacking = [] if arguments is None or known is None else [a for a in arguments if a not in known | UNIVERSAL]
    parts = [f"without {', '.join(f'`{a}`' for a in lacking)}"] if lacking else []
    note = NOTES.get(f"{path}.{name}")
    return "; ".join(parts + ([note] if note else []))


def public(path: str) -> Any:
    """What stands for one of PyTorch's largest modules, or for its class of tensors."""
    if path == "torch.Tensor":
        return importlib.import_module("runnel").Tensor
    return importlib.import_module("runnel.compat." + path)


def rest(whole: dict[str, list[str]]) -> str:
    """The table of the largest modules: how many names are there, and which are not, by their reasons."""
    rows = REST
    for path, members in whole.items():
        place = public(path)
        missing: dict[str, list[str]] = {}
        for name in members:
            if not hasattr(place, name):
                reasons = [reason for pattern, reason in MISSING if re.fullmatch(pattern, name)]
                if not reasons:
                    raise SystemExit(f"scripts/pytorch_names.py: say why {path}.{name} is not there, or build it.")
                missing.setdefault(reasons[0], []).append(f"`{name}`")
        told = ". ".join(f"{reason[0].upper()}{reason[1:]}: {', '.join(names)}" for reason, names in missing.items())
        absent = sum(map(len, missing.values()))
        rows += f"| `{path}` | {len(members) - absent} of {len(members)} | {told} |\n".replace("|  |", "| |")
    return rows


def text() -> str:
    """The page."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    names: dict[str, dict[str, Any]] = recorded["names"]
    reasons, every, there, tables = dict(REASONS), 0, 0, ""
    for path, members in names.items():
        place = ours(path)
        tables += f"\n## `{path}`\n\n| name | |\n| --- | --- |\n"
        for name, arguments in members.items():
            every += 1
            if hasattr(place, name):
                there += 1
                told = difference(path, name, arguments, getattr(place, name))
            else:
                told = f"not there: {reasons.pop(f'{path}.{name}')}"
            tables += f"| `{name}` | {told} |\n".replace("|  |", "| |")
    tables += rest(recorded["whole"])
    if reasons:
        raise SystemExit(f"scripts/pytorch_names.py: there is a reason against what is there: {', '.join(reasons)}.")
    return HEAD.format(version=recorded["torch"], there=there, every=every, share=100 * there / every) + tables


def main(arguments: list[str]) -> int:
    page = text()
    if arguments == ["--check"]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
            print("docs/pytorch.md is out of date; run scripts/pytorch_names.py.", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
