"""Runnel's and PyTorch's side: the same code, under ``WORKLOADS_IN=runnel`` or ``torch``."""

from __future__ import annotations

import os

import control
import images
import science
import text
from names import torch
from serving import serve

if __name__ == "__main__":
    if "WORKLOADS_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["WORKLOADS_THREADS"]))
    torch.manual_seed(0)
    serve({**text.WORKLOADS, **images.WORKLOADS, **control.WORKLOADS, **science.WORKLOADS})
