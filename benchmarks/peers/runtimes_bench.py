"""Inference of the benchmark cases in ONNX Runtime and OpenVINO, in float32, from models that PyTorch exports.

    python runtimes_bench.py [CASE ...]

Needs torch, onnx, onnxscript, onnxruntime and openvino.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import onnxruntime
import openvino
import torch
from measuring import THREADS, chosen, report
from torch_bench import INFER


def exported(case: str, folder: str) -> tuple[str, Any]:
    """Write the network of a case as an ONNX file; return its path and an input."""
    torch.manual_seed(0)
    make, draw = INFER[case]
    model, x = make().eval(), draw()
    path = f"{folder}/model.onnx"
    torch.onnx.export(model, (x,), path, dynamo=False, opset_version=17)
    return path, x.numpy()


def in_onnxruntime(path: str, x: Any) -> Callable[[], Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: x}
    return lambda: session.run(None, feed)


def in_openvino(path: str, x: Any) -> Callable[[], Any]:
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": THREADS}
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda: request.infer({0: x})


RUNTIMES = {
    f"onnxruntime {onnxruntime.__version__}": in_onnxruntime,
    f"openvino {openvino.__version__[:8]}": in_openvino,
}

if __name__ == "__main__":
    for case in chosen("runtimes", INFER):
        with tempfile.TemporaryDirectory() as folder:
            path, x = exported(case, folder)
            for peer, make in RUNTIMES.items():
                report(peer, case, "fp32", lambda make=make, path=path, x=x: make(path, x))  # type: ignore[misc]
